//! A place in a file that is being read: it knows its path, forgives how keys are spelled, and remembers what of the
//! file was looked at, so that the rest can be named.

use std::{cell::RefCell, collections::BTreeSet, time::Duration};

use serde_json::Value;

use crate::{read::Key, subject::Unread};

/// What was looked at.
#[derive(Default)]
pub(super) struct Seen(RefCell<BTreeSet<String>>);

/// A place in a file.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub value: &'a Value,
    pub keys: Vec<Key>,
    seen: &'a Seen,
    separator: &'static str,
}

/// What is read of each section that is one of those asked for, wherever in the file it stands, but not of sections
/// within it.
pub(super) fn wherever<T>(
    tree: &Value,
    separator: &'static str,
    is_one: impl Fn(&Node<'_>) -> bool,
    read: impl Fn(&Node<'_>) -> T,
) -> Vec<T> {
    let seen = Seen::default();
    let (mut found, mut left) = (Vec::new(), vec![Node::top(tree, &seen, separator)]);
    while let Some(node) = left.pop() {
        match is_one(&node) {
            true => found.push(read(&node)),
            false => left.extend(node.children().into_iter().rev()),
        }
    }
    found
}

impl<'a> Node<'a> {
    /// The top of a file whose paths are written with that separator.
    pub(super) fn top(value: &'a Value, seen: &'a Seen, separator: &'static str) -> Self {
        Self { value, keys: Vec::new(), seen, separator }
    }

    /// The path, as people of this format write it.
    pub(super) fn path(&self) -> String {
        path(&self.keys, self.separator)
    }

    /// The path of a key below, whether it is there or not.
    pub(super) fn path_of(&self, names: &str) -> String {
        let mut keys = self.keys.clone();
        keys.extend(names.split('.').map(|name| Key::Name(name.to_owned())));
        path(&keys, self.separator)
    }

    /// What stands under a key, or under keys joined by dots. Case, dashes and underscores mean nothing: so do the
    /// readers of these formats compare keys.
    pub(super) fn get(&self, names: &str) -> Option<Self> {
        names.split('.').try_fold(self.clone(), |node, name| node.child(name))
    }

    fn child(&self, name: &str) -> Option<Self> {
        let table = self.value.as_object()?;
        let (key, value) =
            table.get_key_value(name).or_else(|| table.iter().find(|(key, _)| plain(key) == plain(name)))?;
        (!value.is_null()).then(|| self.below(Key::Name(key.clone()), value))
    }

    /// Every entry of a table, or of a list.
    pub(super) fn children(&self) -> Vec<Self> {
        match self.value {
            Value::Object(table) => {
                table.iter().map(|(key, value)| self.below(Key::Name(key.clone()), value)).collect()
            }
            Value::Array(list) => {
                list.iter().enumerate().map(|(index, value)| self.below(Key::Index(index), value)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The last key of the path.
    pub(super) fn name(&self) -> &str {
        match self.keys.last() {
            Some(Key::Name(name)) => name,
            _ => "",
        }
    }

    fn below(&self, key: Key, value: &'a Value) -> Self {
        let mut keys = self.keys.clone();
        keys.push(key);
        Self { value, keys, seen: self.seen, separator: self.separator }
    }

    /// Remembers that this and all below was looked at.
    pub(super) fn look(&self) {
        self.seen.0.borrow_mut().insert(self.path());
        self.children().iter().for_each(Self::look);
    }

    /// Whatever below was not looked at.
    pub(super) fn unread(&self) -> Vec<Unread> {
        if self.seen.0.borrow().contains(&self.path()) {
            return Vec::new();
        }
        let children = self.children();
        match children.is_empty() {
            true if self.value.is_null() || self.value.as_object().is_some() => Vec::new(),
            true => vec![self.refuse("not read")],
            false => children.iter().flat_map(Self::unread).collect(),
        }
    }

    /// What stands here cannot be read, or is not.
    pub(super) fn refuse(&self, why: impl Into<String>) -> Unread {
        Unread { path: self.path(), why: why.into() }
    }

    /// The text; of a number or a truth value, as it is written.
    pub(super) fn text(&self) -> Result<String, Unread> {
        self.look();
        let text = match self.value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            _ => return Err(self.refuse("a single value is expected here")),
        };
        match text.contains("${") || text.contains("{{") {
            true => Err(self.refuse(format!("\"{text}\" is filled in elsewhere"))),
            false => Ok(text),
        }
    }

    /// A whole number.
    pub(super) fn count(&self) -> Result<u32, Unread> {
        let text = self.text()?;
        let digits = text.strip_suffix(".0").unwrap_or(&text);
        digits.parse().map_err(|_| self.refuse(format!("\"{text}\" is not a whole number")))
    }

    /// A number, in thousandths; what is less than one is dropped.
    pub(super) fn thousandths(&self) -> Result<u32, Unread> {
        let text = self.text()?;
        let number: f64 = text.parse().map_err(|_| self.refuse(format!("\"{text}\" is not a number")))?;
        let milli = (number * 1000.0 + 1e-6).floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
        match (0.0..4_000_000_000.0).contains(&milli) {
            true => Ok(milli as u32),
            false => Err(self.refuse(format!("{text} is out of range"))),
        }
    }

    /// `true` or `false`, whatever their case.
    pub(super) fn truth(&self) -> Result<bool, Unread> {
        let text = self.text()?;
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.refuse(format!("\"{text}\" is neither true nor false"))),
        }
    }

    /// The texts of a list; one text alone, or several between commas, are a list too.
    pub(super) fn texts(&self) -> Result<Vec<String>, Unread> {
        match self.value {
            Value::Array(_) => self.children().iter().map(Self::text).collect(),
            _ => Ok(self
                .text()?
                .split(',')
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
                .collect()),
        }
    }

    /// Seconds as protocol buffers write them in JSON: `1.5s`.
    pub(super) fn seconds(&self) -> Result<Duration, Unread> {
        let text = self.text()?;
        let number =
            text.strip_suffix('s').filter(|number| number.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
        let length = number.and_then(|_| relent_core::parse_duration(&text).ok());
        // Envoy's files are read by people's hands too: 25ms is understood there.
        let length = length.or_else(|| relent_core::parse_duration(&text).ok());
        length.ok_or_else(|| self.refuse(format!("\"{text}\" is not a duration like \"1.5s\"")))
    }
}

/// A path as people of a format write it: `a:b:0`, `a.b[0]`.
pub(super) fn path(keys: &[Key], separator: &str) -> String {
    let mut path = String::new();
    for key in keys {
        match key {
            Key::Name(name) => {
                if !path.is_empty() {
                    path += separator;
                }
                path += name;
            }
            Key::Index(index) if separator == ":" => path += &format!(":{index}"),
            Key::Index(index) => path += &format!("[{index}]"),
        }
    }
    path
}

/// A key without what its reader forgives.
fn plain(key: &str) -> String {
    key.chars().filter(|letter| !matches!(letter, '-' | '_')).flat_map(char::to_lowercase).collect()
}
