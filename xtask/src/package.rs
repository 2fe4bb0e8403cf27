//! What would go to the registry: that every crate says what a registry needs and brings its licences along, and, by
//! command, that each builds from what it packs and that its front page runs as it stands.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

use serde_json::Value;

use crate::{
    metadata::{Package, list, packages, target_folder},
    run::{cargo, cargo_output, cargo_output_in, root},
};

/// The manifests and the lists of files: cheap enough for every lint.
pub(crate) fn check() -> Result<(), String> {
    let mut faults = Vec::new();
    for package in published()? {
        manifest(&package, &mut faults);
        let files = packed(&package)?;
        for file in FILES.iter().filter(|file| !files.lines().any(|packed| packed == **file)) {
            faults.push(format!("{}: {file} is not packed", package.name));
        }
    }
    for fault in &faults {
        eprintln!("package: {fault}");
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(format!("{count} things are missing from packages")),
    }
}

/// Packs every crate, builds each from its package, and pastes the library's front page into a fresh crate.
///
/// It all goes into a folder named after what is packed: cargo unpacks a package once and knows it again by its folder,
/// its name and its version, so in one folder for all it would build what was packed before the last change.
pub(crate) fn run() -> Result<(), String> {
    check()?;
    let packages = published()?;
    let fresh = target_folder()?.join("packages").join(format!("{:016x}", digest(&packages)?));
    let envs = [("CARGO_TARGET_DIR", &*fresh.to_string_lossy()), ("CARGO_PROFILE_DEV_DEBUG", "none")];
    let mut args = vec!["package", "--allow-dirty"];
    for package in &packages {
        args.extend(["--package", &package.name]);
    }
    cargo(&args, &envs)?;
    paste(&packages, &fresh, &envs)?;
    fs::remove_dir_all(&fresh).map_err(|error| failed(&fresh.display().to_string(), error))
}

fn published() -> Result<Vec<Package>, String> {
    Ok(packages()?.into_iter().filter(|package| package.published).collect())
}

fn manifest(package: &Package, faults: &mut Vec<String>) {
    let (name, manifest) = (&package.name, &package.manifest);
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if manifest[field].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{name}: Cargo.toml has no {}", field.replace('_', "-")));
        }
    }
    for (field, most) in [("keywords", 5), ("categories", 5)] {
        if !(1..=most).contains(&list(&manifest[field]).len()) {
            faults.push(format!("{name}: Cargo.toml needs 1 to {most} {field}"));
        }
    }
    if !package.features.is_empty() && manifest["metadata"]["docs"]["rs"]["all-features"] != true {
        faults.push(format!("{name}: [package.metadata.docs.rs] must say all-features = true"));
    }
    for dependency in list(&manifest["dependencies"]) {
        let in_use = dependency["kind"] != "dev" && !dependency["path"].is_null();
        if in_use && dependency["req"] == "*" {
            faults.push(format!("{name}: {} has a path and no version", dependency["name"]));
        }
    }
}

/// Of all that the packages are made of.
fn digest(packages: &[Package]) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    let mut take_in = |file: &Path| {
        let bytes = fs::read(file).map_err(|error| failed(&file.display().to_string(), error))?;
        (file, bytes).hash(&mut hasher);
        Ok::<_, String>(())
    };
    for shared in ["Cargo.toml", "Cargo.lock"] {
        take_in(&root().join(shared))?;
    }
    for package in packages {
        let folder = root().join("crates").join(&package.name);
        // Some are made while packing, of those that are there.
        for file in packed(package)?.lines().map(|file| folder.join(file)).filter(|file| file.is_file()) {
            take_in(&file)?;
        }
    }
    Ok(hasher.finish())
}

/// The names of a package's files, a line each.
fn packed(package: &Package) -> Result<String, String> {
    cargo_output(&["package", "--package", &package.name, "--list", "--allow-dirty"])
}

/// Runs the first example of the library's front page as its reader would: pasted into a crate outside the
/// workspace, with the dependencies that it names, here from the packages.
fn paste(packages: &[Package], target: &Path, envs: &[(&str, &str)]) -> Result<(), String> {
    let packed = target.join("package");
    let fresh = packed.join("front-page");
    let front_page =
        fs::read_to_string(root().join(FRONT_PAGE)).map_err(|error| failed(FRONT_PAGE, error))?;
    let program = fenced(&front_page, "```").ok_or("the front page has no example")?;
    let dependencies = fenced(&front_page, "```toml").ok_or("the front page names no dependencies")?;
    let mut manifest = format!("[package]\nname = \"front-page\"\nedition = \"2024\"\n\n{dependencies}");
    manifest += "\n[workspace]\n\n[patch.crates-io]\n";
    for package in packages.iter().filter(|package| package.has_library) {
        let folder = packed.join(format!("{}-{}", package.name, version(&package.manifest)));
        manifest += &format!("{} = {{ path = {folder:?} }}\n", package.name);
    }
    write(&fresh.join("Cargo.toml"), &manifest)?;
    write(&fresh.join("src/main.rs"), &program)?;
    let path = fresh.join("Cargo.toml").display().to_string();
    let printed = cargo_output_in(envs, &["run", "--quiet", "--manifest-path", &path])?;
    match printed.trim() {
        "6 apples" => Ok(()),
        other => Err(format!("the front page prints \"{other}\"")),
    }
}

/// The first fenced block of a module's docs that is opened by exactly this line, as a reader sees it.
fn fenced(text: &str, opening: &str) -> Option<String> {
    let mut lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = lines.by_ref().map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.find(|line| *line == opening)?;
    let block = lines.take_while(|line| *line != "```");
    Some(block.filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect())
}

fn version(manifest: &Value) -> &str {
    manifest["version"].as_str().unwrap_or_default()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().ok_or("a file stands in a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| failed(&path.display().to_string(), error))
}

fn failed(file: &str, error: std::io::Error) -> String {
    format!("{file}: {error}")
}

const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
const FRONT_PAGE: &str = "crates/relent/src/lib.rs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_page_gives_its_program_and_its_dependencies() {
        let page = "//! Retries.\n//!\n//! ```\n//! # hidden\n//! fn main() {\n//!     run();\n//! }\n//! ```\n//!\n//! ```toml\n//! a = 1\n//! ```\n\nmod x;\n//! ```\n";
        assert_eq!(fenced(page, "```").unwrap(), "fn main() {\n    run();\n}\n");
        assert_eq!(fenced(page, "```toml").unwrap(), "a = 1\n");
        assert_eq!(fenced(page, "```text"), None);
    }
}
