//! Measurements: they live in benches, never in timed tests.

mod bars;
mod callgrind;
mod calls;
mod facts;

use crate::run::cargo;

/// Runs one bench by its short name.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let (package, bench) = match args {
        ["calls", flags @ ..] => return calls::run(flags),
        ["accept"] => ("relent-tests", "accept"),
        ["deliver"] => ("relent-tests", "deliver"),
        ["http"] => ("relent-reqwest", "http"),
        ["ledger"] => ("relent-ledger-sqlite", "accept"),
        ["sim"] => ("relent-sim", "sim"),
        [control @ ("budget" | "limits")] => ("relent", *control),
        _ => {
            return Err("name a bench: accept, budget, calls, deliver, http, ledger, limits or sim".into());
        }
    };
    if package == "relent-tests" {
        cargo(&["build", "--release", "--package", "relent-cli", "--bin", "relent"], &[])?;
    }
    cargo(&["bench", "--package", package, "--bench", bench], &[])
}

/// Runs the kill loop for that many minutes.
pub(crate) fn soak(args: &[&str]) -> Result<(), String> {
    let [minutes] = args else { return Err("say for how many minutes: cargo xtask soak 30".into()) };
    minutes.parse::<u32>().map_err(|_| format!("\"{minutes}\" is not a number of minutes"))?;
    cargo(&["build", "--package", "relent-cli", "--bin", "relent"], &[])?;
    let test = ["test", "--package", "relent-tests", "--test", "kill_nothing_lost", "--", "--nocapture"];
    cargo(&test, &[("RELENT_SOAK_MINUTES", minutes)])
}
