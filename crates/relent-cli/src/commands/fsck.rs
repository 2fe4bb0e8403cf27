//! `relent fsck`: a store against its own rules. It reads only, on one state of the store, so it may run beside
//! the server.

use std::path::Path;

use relent_ledger::{Audit, State, Tally};
use serde::Serialize;

use crate::{
    args::FsckArgs,
    exit::{Exit, Misuse},
    output::{Table, count, numbers, plain, print, print_json, thousands, words},
};

/// Carries it out: 0 for a sound store, 1 for findings or a store that cannot be read, 2 where there is none.
pub(crate) async fn run(args: FsckArgs) -> anyhow::Result<Exit> {
    let store = args.data.join(STORE);
    if !store.is_file() {
        return Err(Misuse::new(format!(
            "there is no store in {}: {STORE} is missing; name a server's data folder with --data",
            args.data.display()
        )));
    }
    let path = store.clone();
    // The audit reads the whole file: off the threads that must stay free.
    let audit = tokio::task::spawn_blocking(move || relent_ledger_sqlite::audit_file(&path)).await??;
    match args.json {
        true => print_json(&View::new(&store, &audit))?,
        false => print(&describe(&store, &audit))?,
    }
    Ok(if audit.is_sound() { Exit::Done } else { Exit::Failed })
}

#[derive(Serialize)]
struct View {
    store: String,
    sound: bool,
    accepted: u64,
    #[serde(flatten)]
    states: std::collections::BTreeMap<&'static str, u64>,
    attempts: u64,
    findings: Vec<FindingView>,
}

#[derive(Serialize)]
struct FindingView {
    rule: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    detail: String,
}

impl View {
    fn new(store: &Path, audit: &Audit) -> Self {
        let finding = |finding: &relent_ledger::Finding| FindingView {
            rule: finding.rule.name(),
            id: finding.id.map(|id| id.to_string()),
            detail: finding.detail.clone(),
        };
        Self {
            store: store.display().to_string(),
            sound: audit.is_sound(),
            accepted: audit.counted.accepted,
            states: State::ALL.iter().map(|state| (state.name(), audit.counted.count(*state))).collect(),
            attempts: audit.counted.attempts,
            findings: audit.findings.iter().map(finding).collect(),
        }
    }
}

fn describe(store: &Path, audit: &Audit) -> String {
    let mut text =
        format!("{}, counted row by row\n{}\n", plain(&store.display().to_string()), counts(&audit.counted));
    if audit.is_sound() {
        return text + "sound: every rule holds\n";
    }
    let mut table = Table::new([words("RULE"), words("ID"), words("WHAT IS WRONG")]).uncut();
    for finding in &audit.findings {
        let id = finding.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        table.row([finding.rule.name().to_owned(), id, finding.detail.clone()]);
    }
    text += &table.render(0);
    text + &format!("\nnot sound: {}\n", count(audit.findings.len() as u64, "finding"))
}

fn counts(tally: &Tally) -> String {
    let mut table = Table::new([words(""), numbers("")]);
    table.row(["accepted".to_owned(), thousands(tally.accepted)]);
    for state in State::ALL {
        table.row([format!("  {}", state.name().replace('_', " ")), thousands(tally.count(state))]);
    }
    table.row(["attempts".to_owned(), thousands(tally.attempts)]);
    table.render(0)
}

/// The store's file in a data folder.
const STORE: &str = "relent.db";
