//! The examples, run as their readers would run them: each with the features that it asks for and no others, so
//! that one which needs none of tokio has none.

use serde_json::Value;

use crate::run::{cargo, cargo_output};

/// Runs every example of the workspace. How many came to their end, and how many did not.
pub(crate) fn run() -> Result<(u64, u64), String> {
    let examples = examples()?;
    let failed = examples.iter().filter(|example| !example.runs()).count() as u64;
    Ok((examples.len() as u64 - failed, failed))
}

struct Example {
    package: String,
    name: String,
    features: String,
}

impl Example {
    fn runs(&self) -> bool {
        let Self { package, name, features } = self;
        let example = ["run", "--quiet", "--package", package, "--example", name];
        let ran = cargo(&[&example[..], &["--no-default-features", "--features", features]].concat(), &[]);
        if let Err(why) = &ran {
            eprintln!("example {name}: {why}");
        }
        ran.is_ok()
    }
}

fn examples() -> Result<Vec<Example>, String> {
    let metadata: Value =
        serde_json::from_str(&cargo_output(&["metadata", "--format-version", "1", "--no-deps"])?)
            .map_err(|error| format!("cargo metadata: {error}"))?;
    let mut examples = Vec::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]).iter().filter(|target| is_example(target)) {
            examples.push(Example {
                package: text(&package["name"]),
                name: text(&target["name"]),
                features: list(&target["required-features"]).iter().map(text).collect::<Vec<_>>().join(","),
            });
        }
    }
    match examples.is_empty() {
        true => Err("the workspace has no example".into()),
        false => Ok(examples),
    }
}

fn is_example(target: &Value) -> bool {
    list(&target["kind"]).iter().any(|kind| kind == "example")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
