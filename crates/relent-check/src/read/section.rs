//! Reading one retry of a foreign file: each setting is taken once, and with it where it came from.

use std::time::Duration;

use super::node::Node;
use crate::subject::{Days, Origin, Part, Subject, Unread};

/// A subject under way.
pub(super) struct Section<'a> {
    pub subject: Subject,
    pub node: Node<'a>,
}

impl<'a> Section<'a> {
    /// What is written under these keys, read; and the origin of the part.
    pub(super) fn take<T>(
        &mut self,
        part: Part,
        names: &str,
        read: impl Fn(&Node<'a>) -> Result<T, Unread>,
    ) -> Option<T> {
        let node = self.node.clone();
        self.take_at(&node, part, names, read)
    }

    /// The same below another node.
    pub(super) fn take_at<T>(
        &mut self,
        at: &Node<'a>,
        part: Part,
        names: &str,
        read: impl Fn(&Node<'a>) -> Result<T, Unread>,
    ) -> Option<T> {
        let Some(node) = at.get(names) else {
            // Another setting of the same part may be written.
            self.subject.origins.entry(part).or_insert_with(|| Origin::Default(at.path_of(names)));
            return None;
        };
        match read(&node) {
            Ok(value) => {
                let origins = &mut self.subject.origins;
                if !matches!(origins.get(&part), Some(Origin::Elsewhere(_))) {
                    origins.insert(part, Origin::Written(node.path()));
                }
                Some(value)
            }
            Err(unread) => {
                self.subject.unread.push(unread);
                self.subject.origins.insert(part, Origin::UNREADABLE);
                None
            }
        }
    }

    /// A .NET time span, and whether its reader takes it for days.
    pub(super) fn take_time_span(&mut self, part: Part, names: &str) -> Option<Duration> {
        let mut days = None;
        let node = self.node.get(names);
        let length = self.take(part, names, |node| {
            let text = node.text()?;
            super::timespan::parse(&text)
                .map(|span| span.length)
                .ok_or_else(|| node.refuse(format!("\"{text}\" is not a time like \"00:00:02\"")))
        });
        if let Some((node, text)) = node.and_then(|node| Some((node.clone(), node.text().ok()?))) {
            let meant = super::timespan::parse(&text).and_then(|span| span.meant);
            days = meant.map(|meant| Days {
                path: node.path(),
                written: text,
                meant: super::timespan::format(meant),
                part,
            });
        }
        self.subject.days.extend(days);
        length
    }

    /// The subject, with everything of the section that was not looked at.
    pub(super) fn done(mut self) -> Subject {
        if self.subject.is_unreadable(Part::Deadline) {
            // The default does not count: something is written.
            self.subject.policy.total_timeout = None;
        }
        self.subject.unread.extend(self.node.unread());
        self.subject
    }
}
