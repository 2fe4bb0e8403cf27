//! One switch that stops all retries now: for the whole process, and for each pipeline.
//!
//! When retries make an outage worse, whoever is on call must not have to find out which policies to change.
//! First attempts go on, so the switch takes nothing away that a service without retries would have.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether calls may be tried again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Retries {
    /// As the policy says.
    On,
    /// First attempts only.
    Off,
}

/// Stops all retries of this process, now: a call that fails ends with its failure, and one that waits for its
/// next attempt ends when the wait is over. Their reason is
/// [`Refused(Switch)`](relent_core::StopReason::Refused).
pub fn retries_off() {
    PROCESS.set(Retries::Off);
}

/// Takes [`retries_off`] back. A pipeline that was switched off by itself stays so.
pub fn retries_on() {
    PROCESS.set(Retries::On);
}

/// How the switch of the process stands.
pub fn retries() -> Retries {
    PROCESS.state()
}

/// A switch. It orders nothing else in memory: whoever reads it has nothing to read that came before.
#[derive(Debug)]
pub(crate) struct Switch {
    off: AtomicBool,
}

impl Switch {
    pub(crate) const fn on() -> Self {
        Self { off: AtomicBool::new(false) }
    }

    pub(crate) fn set(&self, retries: Retries) {
        self.off.store(retries == Retries::Off, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> Retries {
        if self.off.load(Ordering::Relaxed) { Retries::Off } else { Retries::On }
    }
}

static PROCESS: Switch = Switch::on();
