//! What a person reads and a program parses: tables, words for times and lengths, JSON.
//!
//! Text that came from a receiver or a sender may hold anything, and a terminal obeys what it is sent. So
//! [`plain`] stands between them: nothing that steers a terminal, turns the direction of writing or hides
//! reaches it as itself.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use relent::Timestamp;
use relent_core::Brief;
use serde::Serialize;

use crate::wire::{At, Seconds};

/// Rows under headings, the columns as wide as what is in them.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    widest: usize,
}

/// A column: its heading and the side its cells lean to.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    side: Side,
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// A column of words.
pub(crate) const fn words(heading: &'static str) -> Column {
    Column { heading, side: Side::Left }
}

/// A column of numbers.
pub(crate) const fn numbers(heading: &'static str) -> Column {
    Column { heading, side: Side::Right }
}

impl Table {
    /// A table without rows.
    pub(crate) fn new<const N: usize>(columns: [Column; N]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), widest: WIDEST }
    }

    /// The same with cells of any width.
    pub(crate) fn uncut(self) -> Self {
        Self { widest: usize::MAX, ..self }
    }

    /// Adds a row. Cells are made plain and cut to [`WIDEST`] characters: whoever needs all of a text asks for
    /// the message itself, or for JSON.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.iter().map(|cell| cut(&plain(cell), self.widest)).collect());
    }

    /// The table as lines, each indented by `indent` spaces. Headings that are all empty take no line.
    pub(crate) fn render(&self, indent: usize) -> String {
        let headings: Vec<String> = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let headed = headings.iter().any(|heading| !heading.is_empty());
        let lines: Vec<&Vec<String>> = headed.then_some(&headings).into_iter().chain(&self.rows).collect();
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for line in lines {
            let mut row = " ".repeat(indent);
            for ((cell, column), width) in line.iter().zip(&self.columns).zip(&widths) {
                let _ = match column.side {
                    Side::Left => write!(row, "{cell:<width$}  "),
                    Side::Right => write!(row, "{cell:>width$}  "),
                };
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Writes to standard output.
///
/// # Errors
///
/// Whatever the system says, where `println!` would panic: a full disk must not look like success.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A file that a page will be written to, opened before the work that the page is about: who waited for that must not
/// learn then that there is no such folder. What is in the file stays until the page is there.
pub(crate) struct PageFile {
    path: PathBuf,
}

impl PageFile {
    /// Opens it, made if it is not there.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the page in place of what was there, and says where it is.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub(crate) fn write(&self, page: &str) -> anyhow::Result<()> {
        let file = plain(&self.path.display().to_string());
        fs::write(&self.path, page).with_context(|| format!("writing {file}"))?;
        eprintln!("relent: the report is in {file}");
        Ok(())
    }
}

/// Writes a value to standard output as JSON, and ends the line.
///
/// # Errors
///
/// As [`print`].
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// The text without what a terminal would obey: control characters and the invisible ones that turn the
/// direction of writing stand as their escapes. Line ends and tabs too: a cell is one line.
pub(crate) fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        if steers(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
        out
    })
}

/// The same for text of many lines, each indented.
pub(crate) fn plain_block(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    text.lines().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{pad}{}", plain(&line.replace('\t', "    ")));
        out
    })
}

/// The first `width` characters; what was cut shows as an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A length for people: `2.417s`, `1h30m`.
pub(crate) fn length(length: Seconds) -> String {
    Brief(length.0).to_string()
}

/// An instant for people: `2026-11-30 13:45:07.123`, in UTC.
pub(crate) fn instant(at: At) -> String {
    at.to_string().replace('T', " ").trim_end_matches('Z').to_owned()
}

/// An instant seen from `now`: `in 4s`, `3m12s ago`.
pub(crate) fn relative(At(at): At, now: Timestamp) -> String {
    let whole = |length: Duration| Brief(Duration::from_secs(length.as_secs())).to_string();
    if at > now {
        return match at.since(now) {
            short if short < Duration::from_secs(1) => "in under 1s".to_owned(),
            long => format!("in {}", whole(long)),
        };
    }
    match now.since(at) {
        short if short < Duration::from_secs(1) => "now".to_owned(),
        long => format!("{} ago", whole(long)),
    }
}

/// A count with its noun: `1 attempt`, `2 attempts`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", thousands(number)),
    }
}

/// A number with its thousands apart: `12,345`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Control characters (C0, DEL, C1), and those that reorder or hide text: Unicode's bidirectional controls,
/// zero-width characters, line separators and the byte order mark.
fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The most characters of a cell in a table.
const WIDEST: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let mut table = Table::new([words("STATE"), numbers("COUNT"), words("")]);
        table.row(["waiting".to_owned(), "7".to_owned(), String::new()]);
        table.row(["dead".to_owned(), "1,204".to_owned(), "worth a look".to_owned()]);
        let text = "  STATE    COUNT\n  waiting      7\n  dead     1,204  worth a look\n";
        assert_eq!(table.render(2), text);
    }

    #[test]
    fn a_table_without_headings_has_no_empty_first_line() {
        let mut table = Table::new([words(""), numbers("")]);
        table.row(["accepted".to_owned(), "3".to_owned()]);
        assert_eq!(table.render(0), "accepted  3\n");
    }

    #[test]
    fn wide_text_is_cut_with_an_ellipsis_and_counts_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("ååååå", 4), "ååå…");
        let mut table = Table::new([words("")]);
        table.row(["x".repeat(500)]);
        assert_eq!(table.render(0).trim_end().chars().count(), WIDEST);
    }

    #[test]
    fn nothing_that_steers_a_terminal_passes() {
        let hostile = "\u{1b}[2J\u{7}\r\n\u{9b}31m\u{202e}evil\u{200b}\u{7f}";
        let shown = plain(hostile);
        assert!(!shown.chars().any(steers), "{shown:?}");
        assert!(shown.starts_with("\\u{1b}[2J"), "{shown}");
        assert!(!plain_block(hostile, 2).chars().any(|letter| letter != '\n' && steers(letter)));
    }

    #[test]
    fn an_instant_is_told_from_now() {
        let now = Timestamp::from_secs(1000);
        let at = |secs| relative(At(Timestamp::from_secs(secs)), now);
        assert_eq!(at(1004), "in 4s");
        assert_eq!(at(808), "3m12s ago");
        assert_eq!(at(1000), "now");
        assert_eq!(relative(At(now.after(Duration::from_millis(3))), now), "in under 1s");
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(count(1, "attempt"), "1 attempt");
        assert_eq!(count(1500, "attempt"), "1,500 attempts");
    }
}
