//! What a batch changes in the counts, gathered in memory and written once.

use relent_core::StopReason;
use relent_ledger::State;
use rusqlite::{Connection, params};

/// One of the counts that are kept as the store goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    /// Messages ever accepted.
    Accepted,
    /// Attempts ever begun.
    Attempts,
    /// Messages in a state.
    State(State),
    /// Dead letters by reason.
    Dead(StopReason),
}

/// Changes of counts. A batch touches a handful, so a list serves.
#[derive(Debug, Default)]
pub(crate) struct Delta(Vec<(Count, i64)>);

impl Delta {
    pub(crate) fn add(&mut self, count: Count, change: i64) {
        match self.0.iter_mut().find(|(known, _)| *known == count) {
            Some((_, sum)) => *sum += change,
            None => self.0.push((count, change)),
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (count, change) in other.0 {
            self.add(count, change);
        }
    }

    /// Writes the changes.
    pub(crate) fn store(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO tally (name, value) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        )?;
        for (count, change) in self.0.iter().filter(|(_, change)| *change != 0) {
            statement.execute(params![count.name(), change])?;
        }
        Ok(())
    }
}

impl Count {
    /// The name of its row.
    fn name(self) -> String {
        match self {
            Self::Accepted => "accepted".into(),
            Self::Attempts => "attempts".into(),
            Self::State(state) => format!("state:{}", state.name()),
            Self::Dead(reason) => format!("dead:{}", reason.name()),
        }
    }

    /// The count whose row has that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name.split_once(':') {
            None if name == "accepted" => Some(Self::Accepted),
            None if name == "attempts" => Some(Self::Attempts),
            Some(("state", state)) => State::from_name(state).map(Self::State),
            Some(("dead", reason)) => StopReason::from_name(reason).map(Self::Dead),
            _ => None,
        }
    }
}
