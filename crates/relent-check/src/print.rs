//! A report for people.

use std::fmt;

use relent_core::Brief;

use crate::{
    answer::{Answer, List, Question, Verdict},
    figure::{Figures, outage::thousandths, sample::Tally},
    finding::{Finding, Mend},
    report::Report,
};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (list, heading) in [(List::OneRetry, "its questions"), (List::CheckList, "the check list")] {
            writeln!(f, "  {heading}")?;
            self.answers
                .iter()
                .filter(|answer| answer.question.list() == list)
                .try_for_each(|one| answer(f, one, &self.place))?;
        }
        writeln!(f, "  the arithmetic")?;
        rows(&self.figures, &self.place)
            .into_iter()
            .try_for_each(|(what, text)| writeln!(f, "    {what:<WIDTH$}  {text}"))?;
        match self.findings.len() {
            0 if self.unread.is_empty() => writeln!(f, "  sound: nothing is found")?,
            0 => writeln!(f, "  sound: nothing is found in what was read")?,
            1 => writeln!(f, "  1 finding")?,
            count => writeln!(f, "  {count} findings")?,
        }
        self.findings.iter().try_for_each(|one| finding(f, one))?;
        if !self.limits.is_empty() {
            writeln!(f, "  beyond the settings of this file")?;
        }
        for limit in &self.limits {
            writeln!(f, "    {}: {}\n      {}", limit.name, limit.why, limit.advice)?;
        }
        if !self.unread.is_empty() {
            writeln!(f, "  not read")?;
        }
        self.unread.iter().try_for_each(|one| writeln!(f, "    {}: {}", one.path, one.why))
    }
}

fn answer(f: &mut fmt::Formatter<'_>, answer: &Answer, place: &str) -> fmt::Result {
    let word = match answer.verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Told => "",
        Verdict::CannotTell => "cannot tell",
    };
    write!(f, "    {:<WIDTH$}  ", answer.question.asked())?;
    if answer.question == Question::TransientOutcomes {
        return writeln!(f, "those that it repeats");
    }
    match (word, answer.says.as_str()) {
        ("", says) => f.write_str(says)?,
        (word, "") => f.write_str(word)?,
        (word, says) => write!(f, "{word}: {says}")?,
    }
    match answer.from.as_slice() {
        [] => writeln!(f),
        from => {
            let from: Vec<&str> = from.iter().map(|path| below(path, place)).collect();
            writeln!(f, "  [{}]", from.join(", "))
        }
    }
}

fn finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let field = if finding.field.is_empty() { String::new() } else { format!(" ({})", finding.field) };
    writeln!(f, "    {}{field}\n      {}", finding.name, finding.why)?;
    match &finding.mend {
        Mend::Set(edit) => writeln!(f, "      mend it: {}", edit.line.replace('\n', "\n               ")),
        Mend::Do(advice) => writeln!(f, "      {advice}"),
    }
}

fn rows(figures: &Figures, place: &str) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    rows.push((
        "bound of a call",
        figures.limit.as_ref().map_or("none that the file tells".into(), |(field, limit)| {
            format!("{} ({})", Brief(*limit), below(field, place))
        }),
    ));
    if figures.one_call != Some(1) {
        rows.push(("attempts that fit at best", at_best(figures)));
        rows.extend(figures.at_worst.map(|worst| {
            let count = worst.begin.map_or("more than a thousand".to_owned(), |begin| begin.to_string());
            let cut = worst.cut.map_or(String::new(), |left| format!(", the last cut to {}", Brief(left)));
            let spread = figures.timing_out.as_ref().map_or(String::new(), |tally| shares(tally, true));
            ("attempts that fit at worst", format!("{count}{cut}{spread}"))
        }));
    }
    rows.push(("longest that a caller waits", longest(figures)));
    rows.push((
        "attempts of one call",
        figures.one_call.map_or("without limit, or not told".into(), |one| format!("{one} at most")),
    ));
    rows.push(("in an outage", figures.outage.words.clone()));
    rows.extend(figures.through_layers.map(|(layers, milli)| {
        ("through the layers", format!("{} at the bottom for one at the top of {layers}", thousandths(milli)))
    }));
    rows.extend(recovery(figures));
    rows.extend(
        figures
            .one_host_in
            .filter(|hosts| *hosts > 1)
            .map(|hosts| ("one bad host", format!("opens the breaker in a pool of {hosts} or fewer"))),
    );
    rows
}

/// A path without that of the retry's own place, which stands above.
fn below<'a>(path: &'a str, place: &str) -> &'a str {
    let rest = path.strip_prefix(place).filter(|_| !place.is_empty());
    rest.and_then(|rest| rest.strip_prefix([':', '.'])).unwrap_or(path)
}

fn at_best(figures: &Figures) -> String {
    let best = figures.at_best.map_or("without limit, or not told".to_owned(), |best| best.to_string());
    let spread = figures.at_once.as_ref().map_or(String::new(), |tally| shares(tally, false));
    format!("{best}{spread}")
}

/// `: 3 in 82 % of such calls, 2 in 18 %`, where calls differ, and how many have an attempt cut short.
fn shares(tally: &Tally, with_cut: bool) -> String {
    let mut text = String::new();
    if tally.by_attempts.len() > 1 && tally.by_attempts.len() <= MOST_SHARES {
        let share = |(attempts, calls): (&u32, &u32)| format!("{attempts} in {} %", percent(tally, *calls));
        let shares: Vec<String> = tally.by_attempts.iter().rev().map(share).collect();
        text += &format!("; {} of such calls", shares.join(", "));
    }
    if with_cut && tally.cut_short > 0 {
        text += &format!("; one is cut short in {} % of such calls", percent(tally, tally.cut_short));
    }
    text
}

/// To the whole percent; what is there and rounds to none is not nothing.
fn percent(tally: &Tally, calls: u32) -> String {
    match (tally.share_milli(calls) + 5) / 10 {
        0 if calls > 0 => "less than 1".to_owned(),
        percent => percent.to_string(),
    }
}

fn longest(figures: &Figures) -> String {
    match (figures.longest, figures.longest_with_hints) {
        (None, _) => "not told, or nothing bounds it".into(),
        (Some(longest), Some(hinted)) if hinted > longest => {
            format!("{}; {} if it is asked to wait", Brief(longest), Brief(hinted))
        }
        (Some(longest), _) => Brief(longest).to_string(),
    }
}

fn recovery(figures: &Figures) -> Vec<(&'static str, String)> {
    let verdict = |recovers| if recovers { "it can recover" } else { "it cannot recover" };
    let mut rows = Vec::new();
    rows.extend(figures.open_loop.as_ref().map(|open| {
        let sum = format!(
            "{} × {} = {} attempts a second against {}: {}",
            open.load,
            thousandths(open.retries_milli.saturating_add(1000)),
            open.arrivals,
            open.capacity,
            verdict(open.recovers())
        );
        ("load after an outage", sum)
    }));
    rows.extend(figures.closed_loop.as_ref().map(|closed| {
        let sum = format!(
            "{} × {} in {} = {} attempts a second against {}: {}",
            closed.callers,
            closed.attempts,
            Brief(closed.round),
            closed.arrivals,
            closed.capacity,
            verdict(closed.recovers())
        );
        ("callers that are stuck", sum)
    }));
    rows
}

const WIDTH: usize = 36;
/// More kinds of calls than that are no picture.
const MOST_SHARES: usize = 5;
