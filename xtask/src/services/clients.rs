//! What the clients that relent did not write run on: curl, Node.js and Python, from Debian's packages.

use super::{Effort, as_root, is_installed, say};

/// What `RELENT_TEST_REQUIRE` calls it, the commands that must be there, and the packages that bring them.
const TOOLS: &[(&str, &[&str], &[&str])] = &[
    ("curl", &["curl"], &["curl"]),
    ("node", &["node", "npm"], &["nodejs", "npm"]),
    ("python3", &["python3"], &["python3", "python3-venv"]),
];

/// Has each tool for which `effort` says more than to look. One that is only looked for is not missed here: the tests
/// that need it say that they are skipped.
pub(super) fn have(effort: impl Fn(&str) -> Effort) -> Result<(), String> {
    let missing = |commands: &[&str]| commands.iter().any(|command| !is_installed(command));
    let wanted =
        TOOLS.iter().filter(|(name, commands, _)| effort(name) == Effort::Install && missing(commands));
    let packages: Vec<&str> = wanted.flat_map(|(_, _, packages)| *packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(", ");
    if !is_installed("apt-get") {
        return Err(format!(
            "{names} must be there, and there is no apt-get to install them: install them yourself"
        ));
    }
    say(&format!("{names}: installed from Debian's packages"));
    as_root(&["apt-get", "update", "--quiet"])?;
    as_root(&[&["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"], &packages[..]].concat())
}
