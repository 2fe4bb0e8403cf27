//! Every interleaving of the controls' atomics. Without `--cfg loom` these suites are empty, for loom takes the place of
//! the atomics in the library itself.

use crate::{
    metadata::target_folder,
    run::{cargo, root},
};

/// Runs the suites, in a target folder of their own: another `RUSTFLAGS` would have everything else built anew.
pub(crate) fn run() -> Result<(), String> {
    let suites = suites()?;
    if suites.is_empty() {
        return Err(format!("no loom suite in {FOLDER}"));
    }
    let target = target_folder()?.join("loom").display().to_string();
    let mut args = vec!["test", "--release", "--package", "relent", "--target-dir", &target];
    for suite in &suites {
        args.extend(["--test", suite]);
    }
    cargo(&args, &[("RUSTFLAGS", "--cfg loom")])
}

/// The names of the suites.
fn suites() -> Result<Vec<String>, String> {
    let failed = |error| format!("{FOLDER}: {error}");
    let mut suites = Vec::new();
    for entry in std::fs::read_dir(root().join(FOLDER)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if let Some(suite) = name.strip_suffix(".rs").filter(|suite| suite.starts_with("loom_")) {
            suites.push(suite.to_string());
        }
    }
    suites.sort();
    Ok(suites)
}

const FOLDER: &str = "crates/relent/tests";
