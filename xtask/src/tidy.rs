//! House rules that a compiler does not know. Each says what it wants; none is silenced but by changing the rule.

use crate::{imports, run::rust_files};

/// Checks every rule and lists all that is wrong.
pub(crate) fn run() -> Result<(), String> {
    let mut faults = Vec::new();
    imports::check(&mut faults)?;
    for (name, text) in rust_files()? {
        if !name.starts_with("xtask/") {
            check_file(&name, &text, &mut faults);
        }
    }
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(format!("{count} house rules are broken")),
    }
}

fn check_file(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > WALL {
        faults.push(format!("{name}: {lines} lines; a file does one thing in at most {WALL}"));
    }
    let needs_none = name.contains("/examples/") || name.ends_with("/tests.rs");
    if !text.starts_with("//!") && !needs_none {
        faults.push(format!("{name}: begins without a module doc that says why it exists"));
    }
    if !name.contains("/src/") {
        return; // tests, benches and examples may plant what libraries may not
    }
    let code = library_code(text);
    for rule in RULES {
        if rule.allowed.iter().any(|allowed| name.starts_with(allowed)) || !name.starts_with(rule.within) {
            continue;
        }
        for (number, line) in code.lines().enumerate() {
            if is_comment(line) || (rule.patterns == Patterns::Allowed && is_pattern(line)) {
                continue;
            }
            if let Some(word) = rule.words.iter().find(|word| line.contains(**word)) {
                faults.push(format!("{name}:{}: `{word}`: {}", number + 1, rule.says));
            }
        }
    }
}

/// What stands before the unit tests at the bottom of a file.
fn library_code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Whether the line takes a value apart instead of making one.
fn is_pattern(line: &str) -> bool {
    line.contains("=>")
        || line.contains("if let ")
        || line.contains("matches!(")
        || line.trim_end().ends_with('|')
}

/// Whether a rule is about making values only.
#[derive(Clone, Copy, PartialEq)]
enum Patterns {
    Allowed,
    Checked,
}

struct Rule {
    /// Where the rule applies.
    within: &'static str,
    /// The only places that may.
    allowed: &'static [&'static str],
    /// What may not stand elsewhere.
    words: &'static [&'static str],
    /// Whether the words may stand in patterns.
    patterns: Patterns,
    /// Why.
    says: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        within: "crates/",
        allowed: &[
            "crates/relent-idempotency-postgres/",
            "crates/relent-idempotency-sqlite/",
            "crates/relent-ledger-sqlite/",
        ],
        words: &["SELECT ", "INSERT INTO", "UPDATE message", "DELETE FROM", "PRAGMA "],
        patterns: Patterns::Checked,
        says: "SQL stands only in the stores",
    },
    Rule {
        within: "crates/",
        allowed: &[
            "crates/relent-cli/",
            "crates/relent-core/src/policy/text",
            "crates/relent-ledger-sqlite/src/row.rs",
            "crates/relent-check/src/read",
            "crates/relent-check/src/view.rs",
            "crates/relent-sim/src/scenario/text.rs",
        ],
        words: &["serde_json::", "#[serde("],
        patterns: Patterns::Checked,
        says: "JSON and TOML field names stand only at the edges",
    },
    Rule {
        within: "crates/",
        allowed: &["crates/relent-core/src/retry.rs"],
        words: &[">= max_attempts", "> max_attempts", "< max_attempts", ">= max)", "attempts >= "],
        patterns: Patterns::Checked,
        says: "only RetryPolicy::decide compares attempts with a maximum",
    },
    Rule {
        within: "crates/relent-deliver/src",
        allowed: &[],
        words: &[
            "Settlement::Ack",
            "Settlement::DeadLetter",
            "Settlement::Defer",
            "Settlement::Leave",
            "Settlement::Retry",
        ],
        patterns: Patterns::Allowed,
        says: "only Settlement::of and Settlement::interrupted make settlements",
    },
    Rule {
        within: "crates/relent-ledger",
        allowed: &[],
        words: &["RetryPolicy", "Verdict", "Classification"],
        patterns: Patterns::Checked,
        says: "a store never sees a policy or a verdict",
    },
    Rule {
        within: "crates/",
        allowed: &[
            "crates/relent-cli/",
            "crates/relent-idempotency/src/suite",
            "crates/relent-ledger/src/suite",
        ],
        words: &["println!", "eprintln!", "std::env::var", "process::exit"],
        patterns: Patterns::Checked,
        says: "a library neither prints nor reads the environment",
    },
    Rule {
        within: "crates/",
        allowed: &["crates/relent/src/clock"],
        words: &["Instant::now", "SystemTime::now", "thread::sleep"],
        patterns: Patterns::Checked,
        says: "only relent/src/clock/ reads a clock or sleeps",
    },
];

const WALL: usize = 500;
