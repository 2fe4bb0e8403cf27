//! Each library and each feature by itself: what compiles only beside another crate of the workspace, or beside another
//! feature, fails for whoever wants the one.

use crate::{
    metadata::{Package, packages},
    run::cargo,
};

/// Lints every library alone: without any feature, with each, and with all.
pub(crate) fn run() -> Result<(), String> {
    for package in packages()?.iter().filter(|package| package.has_library && package.published) {
        lint(package, &["--no-default-features"])?;
        for feature in &package.features {
            lint(package, &["--no-default-features", "--features", feature])?;
        }
        if package.features.len() > 1 {
            lint(package, &["--all-features"])?;
        }
    }
    Ok(())
}

fn lint(package: &Package, features: &[&str]) -> Result<(), String> {
    let library = ["clippy", "--quiet", "--package", &package.name, "--lib"];
    cargo(&[&library[..], features, &["--", "-D", "warnings"]].concat(), &[])
}
