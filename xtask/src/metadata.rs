//! What cargo knows of the workspace.

use std::path::PathBuf;

use serde_json::Value;

use crate::run::cargo_output;

/// A member of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Whether it may go to the registry.
    pub(crate) published: bool,
    /// Its features but `default`, in the order of their names.
    pub(crate) features: Vec<String>,
    pub(crate) examples: Vec<Example>,
    pub(crate) has_library: bool,
    /// The manifest, as cargo reads it.
    pub(crate) manifest: Value,
}

/// An example, and the features without which it does not compile.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) features: String,
}

/// The members of the workspace.
pub(crate) fn packages() -> Result<Vec<Package>, String> {
    Ok(list(&metadata()?["packages"]).iter().map(Package::of).collect())
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// All of it.
pub(crate) fn metadata() -> Result<Value, String> {
    serde_json::from_str(&cargo_output(&["metadata", "--format-version", "1", "--no-deps"])?)
        .map_err(|error| format!("cargo metadata: {error}"))
}

/// The elements of a list; none if it is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Package {
    fn of(manifest: &Value) -> Self {
        let features = manifest["features"].as_object().into_iter().flat_map(|features| features.keys());
        let targets = list(&manifest["targets"]);
        let of_kind = |kind: &'static str| targets.iter().filter(move |target| is(target, kind));
        Self {
            name: text(&manifest["name"]),
            published: manifest["publish"].is_null(),
            features: features.filter(|feature| *feature != "default").cloned().collect(),
            examples: of_kind("example").map(Example::of).collect(),
            has_library: of_kind("lib").next().is_some(),
            manifest: manifest.clone(),
        }
    }
}

impl Example {
    fn of(target: &Value) -> Self {
        let features: Vec<String> = list(&target["required-features"]).iter().map(text).collect();
        Self { name: text(&target["name"]), features: features.join(",") }
    }
}

fn is(target: &Value, kind: &str) -> bool {
    list(&target["kind"]).iter().any(|known| known == kind)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
