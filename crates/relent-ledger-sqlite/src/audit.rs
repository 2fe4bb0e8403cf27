//! The check of a store against its own rules, counted from the rows.

use std::path::Path;

use relent_ledger::{Audit, Error};
use rusqlite::Connection;

use crate::{error::sqlite, open, read::on_one_state};

mod count;
mod rules;
mod words;

/// Checks the store in `path` (its folder or its database), reading only: beside a server that is using it, or
/// one that nobody uses.
///
/// # Errors
///
/// If there is no store there, or it cannot be read at all. What is wrong with it otherwise is a finding.
pub fn audit_file(path: &Path) -> Result<Audit, Error> {
    audit(&open::read_only(path)?)
}

/// Checks the store on one state of it.
pub(crate) fn audit(connection: &Connection) -> Result<Audit, Error> {
    on_one_state(connection, || {
        let mut findings = rules::integrity(connection)?;
        let counted = count::count(connection, &mut findings)?;
        rules::check(connection, &counted, &mut findings)?;
        words::check(connection, &mut findings)?;
        findings.sort_by_key(|finding| finding.rule);
        Ok(Audit { counted, findings })
    })
    .map_err(sqlite("check the store"))
}
