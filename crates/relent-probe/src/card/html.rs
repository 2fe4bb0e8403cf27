//! The card as one page: no script, no font, no image, nothing from elsewhere.

use std::{fmt::Write as _, time::Duration};

use super::{Card, Grade, Told};

pub(super) fn of(card: &Card) -> String {
    let Grade { passed, failed, undecided } = card.grade();
    let all = passed + failed + undecided;
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Report card</title><style>{STYLE}</style></head><body>\n<h1>Report \
         card</h1>\n<p><code>{}</code></p>\n<p class=\"grade\">{passed} of {all} checks passed, {failed} failed, \
         {undecided} undecided</p>\n",
        escaped(&card.command)
    );
    out += "<h2>What was seen</h2>\n<table>\n";
    for fact in &card.facts {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escaped(fact.name),
            escaped(&fact.value)
        );
    }
    out += "</table>\n";
    out += &plot(card);
    out += "<h2>Checks</h2>\n<table>\n<tr><th>check</th><th>verdict</th><th>seen</th><th>demand</th></tr>\n";
    for check in &card.checks {
        let verdict = check.verdict.name();
        let _ = writeln!(
            out,
            "<tr class=\"{verdict}\"><td><code>{}</code></td><td>{verdict}</td><td>{}</td><td>{} <small>{}</small></td></tr>",
            check.name,
            escaped(check.verdict.why()),
            escaped(check.demands),
            escaped(check.source)
        );
    }
    out += "</table>\n<h2>Trials</h2>\n<table>\n<tr><th>trial</th><th>method</th><th>the dependency</th><th>runs</th>\
            <th>attempts</th></tr>\n";
    for trial in &card.trials {
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            trial.name,
            trial.method,
            escaped(&trial.script),
            trial.runs.len(),
            attempts(trial)
        );
    }
    out + "</table>\n</body></html>\n"
}

fn attempts(trial: &Told) -> String {
    let counts = || trial.runs.iter().map(|run| run.attempts);
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, Some(most)) => most.to_string(),
        _ => "not run".to_owned(),
    }
}

/// The instants of every copy's retries, its first failure at the left edge: columns are copies in step.
fn plot(card: &Card) -> String {
    let Some(outage) = card.trials.iter().find(|trial| trial.name == crate::suite::plan::OUTAGE) else {
        return String::new();
    };
    let instants: Vec<Vec<f64>> = outage
        .runs
        .iter()
        .map(|run| {
            let mut at = Duration::ZERO;
            run.waits.iter().map(|wait| (at += *wait, at.as_secs_f64()).1).collect()
        })
        .collect();
    let last = instants.iter().flatten().copied().fold(0.0, f64::max);
    if last <= 0.0 {
        return String::new();
    }
    let height = instants.len() * ROW + 24;
    let mut out = format!(
        "<h2>{} copies, their first failures laid over each other</h2>\n<svg viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"the instants of all retries\">\n",
        instants.len()
    );
    for (row, run) in instants.iter().enumerate() {
        let y = row * ROW + ROW / 2;
        for at in run {
            let x = at / last * f64::from(WIDTH - 20) + 10.0;
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"2.5\"/>");
        }
    }
    let base = height - 8;
    let _ = writeln!(
        out,
        "<text x=\"10\" y=\"{base}\">0 s</text><text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{last:.2} s</text>\n</svg>",
        WIDTH - 10
    );
    out
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(letter),
        }
        out
    })
}

const WIDTH: u32 = 900;
const ROW: usize = 8;
const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;\
background:#fff}table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}th,td{text-align:left;vertical-align:top;\
padding:.3rem .6rem;border-bottom:1px solid #ddd}code{font-size:.95em}.grade{font-size:1.3rem}small{color:#666;display:block}\
tr.failed td:nth-child(2){color:#a40000;font-weight:600}tr.passed td:nth-child(2){color:#116611}\
tr.undecided td:nth-child(2){color:#7a5a00}svg{width:100%;height:auto;background:#f7f7f7}circle{fill:#1f4e8c}\
text{font-size:11px;fill:#444}@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#333}\
small{color:#999}svg{background:#202020}circle{fill:#8ab4f8}text{fill:#bbb}tr.failed td:nth-child(2){color:#ff8a80}\
tr.passed td:nth-child(2){color:#81c995}tr.undecided td:nth-child(2){color:#e8c46a}}";
