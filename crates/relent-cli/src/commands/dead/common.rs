//! Dead letters that have something in common: which they are, and what is done with all of them, once somebody has
//! seen how many and why.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
};

use http::Method;
use relent_core::StopReason;

use crate::{
    args::{CommonArgs, LettersArgs},
    client::{Client, escape},
    commands::{
        cancel::{Outcome, Wish, WrongState, all},
        ls::{LARGEST_PAGE, ask, place},
    },
    exit::{Exit, Misuse},
    output::{Table, count, numbers, plain, print_json, thousands, words},
    wire::{PageView, SummaryView},
};

/// What is done with a dead letter.
pub(super) struct Deed {
    pub(super) method: Method,
    /// Where, given its id.
    pub(super) path: fn(&str) -> String,
    /// As it is asked for, as it is asked about, and as it is told.
    pub(super) wish: &'static str,
    pub(super) question: &'static str,
    pub(super) done: &'static str,
}

/// What was found.
#[derive(Default)]
struct Found {
    chosen: Vec<SummaryView>,
    /// Those that go only where their reason is named.
    left_out: Vec<SummaryView>,
}

/// Does it with all that have in common what the flags say.
///
/// A letter is named with the cycle in which it was seen. If somebody sends it again meanwhile and it dies anew, perhaps
/// for a reason that nobody has chosen here, it is left as it is and told.
pub(super) async fn run(args: &LettersArgs, deed: &Deed) -> anyhow::Result<Exit> {
    let client = Client::new(&args.client)?;
    let found = find(&client, args).await?;
    eprint!("{}", plan(&found, args.limit, deed));
    if found.chosen.is_empty() {
        if args.client.json {
            print_json(&Vec::<Outcome>::new())?;
        }
        return Ok(Exit::Done);
    }
    if !args.yes && !agreed(deed)? {
        eprintln!("relent: nothing was done");
        return Ok(Exit::Failed);
    }
    let wish = |letter: SummaryView| Wish {
        method: deed.method.clone(),
        path: format!("{}?cycle={}", (deed.path)(&escape(&letter.id)), letter.cycle),
        id: letter.id,
        in_a_wrong_state: WrongState::Left,
    };
    let wishes = found.chosen.into_iter().map(wish).collect();
    all(&client, args.client.json, wishes, |outcomes| eprint!("{}", ended(outcomes, deed))).await
}

/// The list of those, up to its other parameters.
pub(super) fn path(common: &CommonArgs) -> String {
    let mut path = "/v1/dead?".to_owned();
    for (name, values) in [("reason", &common.reasons), ("destination", &common.destinations)] {
        for value in values {
            let _ = write!(path, "{name}={}&", escape(value));
        }
    }
    path
}

/// How many there are of each reason and for each destination, in a line.
pub(super) fn sums(letters: &[SummaryView]) -> String {
    if letters.is_empty() {
        return String::new();
    }
    let told = |by: fn(&SummaryView) -> &str, before: &str| {
        let counts = counted(letters.iter().map(by));
        let rest = counts.len().saturating_sub(MOST_TOLD);
        let told = counts.iter().take(MOST_TOLD);
        let mut told: Vec<String> =
            told.map(|(name, count)| format!("{} {before}{}", thousands(*count), plain(name))).collect();
        if rest > 0 {
            told.push(format!("{} more", thousands(rest as u64)));
        }
        told.join(", ")
    };
    let all = thousands(letters.len() as u64);
    format!("{all} shown: {}; {}\n", told(reason, ""), told(|letter| &letter.destination, "to "))
}

async fn find(client: &Client, args: &LettersArgs) -> anyhow::Result<Found> {
    let path = path(&args.common);
    let most = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut found = Found::default();
    let mut cursor: Option<String> = None;
    loop {
        let page: PageView<SummaryView> =
            ask(client, &place(&path, LARGEST_PAGE, cursor.as_deref())).await?.read()?;
        for letter in page.items {
            if found.chosen.len() == most {
                return Ok(found);
            }
            match args.common.reasons.is_empty() && only_by_name(&letter) {
                true => found.left_out.push(letter),
                false => found.chosen.push(letter),
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Whether a letter goes with others only where its reason is named: it may have been carried out already, or may take
/// the server down again, or nobody knows.
fn only_by_name(letter: &SummaryView) -> bool {
    match letter.reason.as_deref().and_then(StopReason::from_name) {
        Some(reason) => matches!(reason, StopReason::Ambiguous | StopReason::PoisonCrash),
        None => true,
    }
}

/// What is about to be done, and what is not.
fn plan(found: &Found, limit: Option<u32>, deed: &Deed) -> String {
    let Found { chosen, left_out } = found;
    let number = |letters: &[SummaryView]| count(letters.len() as u64, "dead letter");
    let newest = match limit {
        Some(limit) if chosen.len() as u64 == u64::from(limit) => " (no more than these, by --limit)",
        _ => "",
    };
    let mut out = match chosen.is_empty() {
        true => "relent: no dead letter is like that\n".to_owned(),
        false => format!("relent: to {}: {}{newest}\n{}", deed.wish, number(chosen), table(chosen)),
    };
    if !left_out.is_empty() {
        let _ = write!(
            out,
            "left out, since they go only where --reason names them: {}\n{}",
            number(left_out),
            table(left_out)
        );
    }
    out
}

fn table(letters: &[SummaryView]) -> String {
    let mut table = Table::new([numbers(""), words(""), words("")]);
    for ((reason, destination), count) in
        counted(letters.iter().map(|letter| (reason(letter), &*letter.destination)))
    {
        table.row([thousands(count), reason.to_owned(), destination.to_owned()]);
    }
    table.render(2)
}

fn reason(letter: &SummaryView) -> &str {
    letter.reason.as_deref().unwrap_or("no reason")
}

/// How often each is there, the most frequent first.
fn counted<T: Ord>(names: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(T, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Asks whoever sits there. Where nobody does, what was not agreed to beforehand is not done.
fn agreed(deed: &Deed) -> anyhow::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Misuse::new("nobody is there to be asked, so nothing was done: add --yes"));
    }
    eprint!("{} [y/N] ", deed.question);
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// How it went with all of them.
fn ended(outcomes: &[Outcome], deed: &Deed) -> String {
    let number =
        |which: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| which(outcome)).count() as u64;
    let done = number(|outcome| matches!(outcome, Outcome::Done(_)));
    let mut parts = vec![format!("{} {}", thousands(done), deed.done)];
    for (count, what) in [
        (number(|outcome| matches!(outcome, Outcome::Left { .. })), "changed meanwhile and left as they are"),
        (number(|outcome| matches!(outcome, Outcome::Refused { .. })), "refused"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", thousands(count)));
        }
    }
    format!("relent: {}\n", parts.join(", "))
}

/// More names than these make no line.
const MOST_TOLD: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        for yes in ["y\n", "Y\r\n", " yes \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yess\n", "send\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn a_list_is_asked_for_by_what_its_letters_have_in_common() {
        let common = CommonArgs {
            reasons: vec!["permanent".into(), "ambiguous".into()],
            destinations: vec!["https://shop.example:443".into()],
        };
        let asked =
            "/v1/dead?reason=permanent&reason=ambiguous&destination=https%3A%2F%2Fshop.example%3A443&";
        assert_eq!(path(&common), asked);
        assert_eq!(path(&CommonArgs { reasons: vec![], destinations: vec![] }), "/v1/dead?");
    }

    #[test]
    fn what_is_most_frequent_is_told_first() {
        assert_eq!(counted(["b", "a", "b", "c"].into_iter()), [("b", 2), ("a", 1), ("c", 1)]);
    }
}
