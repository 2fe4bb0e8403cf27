//! The examples, run as their readers would run them: each with the features that it asks for and no others, so
//! that one which needs none of tokio has none.

use std::time::Duration;

use crate::{
    metadata::{Example, packages},
    run::{cargo, cargo_within},
};

/// Runs every example of the workspace. How many came to their end, and how many did not.
pub(crate) fn run() -> Result<(u64, u64), String> {
    let (mut passed, mut failed) = (0, 0);
    for package in packages()? {
        for example in &package.examples {
            match run_one(&package.name, example) {
                Ok(()) => passed += 1,
                Err(why) => {
                    eprintln!("example {}: {why}", example.name);
                    failed += 1;
                }
            }
        }
    }
    match passed + failed {
        0 => Err("the workspace has no example".into()),
        _ => Ok((passed, failed)),
    }
}

fn run_one(package: &str, example: &Example) -> Result<(), String> {
    let mut args = vec!["--quiet", "--package", package, "--example", &example.name];
    args.push("--no-default-features");
    if !example.features.is_empty() {
        args.extend(["--features", &example.features]);
    }
    cargo(&[&["build"][..], &args].concat(), &[])?;
    cargo_within(LIMIT, &[&["run"][..], &args].concat())
}

/// An example shows something and ends.
const LIMIT: Duration = Duration::from_secs(60);
