//! What the clients that relent did not write run on: curl, Node.js and Python, from Debian's packages.

use super::{install, is_installed};

/// The commands that must be there, and the packages that bring them.
const TOOLS: &[(&[&str], &[&str])] = &[
    (&["curl"], &["curl"]),
    (&["node", "npm"], &["nodejs", "npm"]),
    (&["python3"], &["python3", "python3-venv"]),
];

/// Has each of them.
pub(super) fn have() -> Result<(), String> {
    let missing = |commands: &[&str]| commands.iter().any(|command| !is_installed(command));
    let wanted = TOOLS.iter().filter(|(commands, _)| missing(commands));
    let packages: Vec<&str> = wanted.flat_map(|(_, packages)| *packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    install(&packages)
}
