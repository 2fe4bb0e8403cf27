//! The project's own chores. `cargo xtask` alone lists them.

mod bench;
mod cases;
mod examples;
mod features;
mod fuzz;
mod imports;
mod loom;
mod metadata;
mod mutants;
mod package;
mod run;
mod services;
mod test;
mod tidy;

use std::{env, process::ExitCode};

use run::cargo;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["ci"] => lint().and_then(|()| fuzz::briefly()).and_then(|()| test::run(&[])),
        ["lint"] => lint(),
        ["test", rest @ ..] => test::run(rest),
        ["tidy"] => tidy::run(),
        ["tables"] => tables(),
        ["bench", rest @ ..] => bench::run(rest),
        ["soak", rest @ ..] => bench::soak(rest),
        ["fuzz", "briefly"] => fuzz::briefly(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["loom"] => loom::run(),
        ["examples"] => examples(),
        ["features"] => features::run(),
        ["package"] => package::run(),
        ["services"] => services::run(),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["clients"] => test::clients(),
        ["cases"] => cases::run(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// All that must hold besides the tests: format, house rules, lints, each feature alone, packages, docs.
fn lint() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    tidy::run()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"], &[])?;
    features::run()?;
    package::check()?;
    cargo(&["doc", "--workspace", "--no-deps", "--all-features"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Runs the examples by themselves; `test` runs them too.
fn examples() -> Result<(), String> {
    match examples::run()? {
        (_, 0) => Ok(()),
        (_, failed) => Err(format!("{failed} examples do not run to their end")),
    }
}

/// Writes the golden timelines anew; review them as a diff.
fn tables() -> Result<(), String> {
    cargo(
        &["test", "--package", "relent-core", "--all-features", "--test", "golden"],
        &[("RELENT_BLESS", "1")],
    )?;
    println!("golden timelines are written; look at them with: git diff crates/relent-core/tests/golden");
    Ok(())
}

const HELP: &str = "\
cargo xtask COMMAND

  ci               `lint`, a brief `fuzz`, `test`: what must hold before something lands
  lint             format, house rules, lints, each feature alone, packages, docs
  test [FILTER]    every test of the workspace, doc tests and examples included; ends with `N passed, N failed, N skipped`
  tidy             the import table, and house rules that a compiler does not know
  tables           write the golden timelines anew
  bench NAME       `accept`: durable 201s a second; `ledger`: the store alone; `deliver`: deliveries a second;
                   `budget`, `limits`: what each kind costs a call, beside its peers;
                   `calls`: whole calls, refusals, each
                   policy alone and two threads, beside every peer, with instructions where valgrind is installed and
                   what comes of each bar (`calls --strict` fails where one is not met);
                   `http`: what a request costs beside the bare clients of hyper-util and reqwest;
                   `sim`: simulated attempts a second, beside a bare event loop
  fuzz [SECONDS [TARGET]]
                   every parser of a header, each for that long (10); needs a C++ compiler
  soak MINUTES     the kill loop, for as long as you like
  loom             every interleaving of the controls' atomics
  examples         runs every example with the features that it asks for and no others
  features         lints every library alone, and with each of its features alone; part of `lint`
  package          packs every crate, builds each from its package, and runs the front page in a fresh crate
  services         the services that tests need (PostgreSQL): found, started or installed; prints where they are
  mutants [PART]   faults planted one by one in the code that decides, and which of them no test notices: `retry`,
                   `budget`, `breaker`, `settlement`, and of the live controls `live-budget`, `live-breaker`,
                   `live-limits`; all of them take hours
  clients          probes clients that we did not write, and our own, against their cards, one after the other: for a
                   machine that does nothing else; some minutes
  cases            which behaviour cases are cited by which test
";
