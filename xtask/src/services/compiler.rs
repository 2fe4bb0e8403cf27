//! A C++ compiler, which libFuzzer is built with.

use std::env;

use super::{Effort, install, is_installed};

/// Whether there is one.
pub(super) fn have(effort: Effort) -> Result<bool, String> {
    if let Ok(named) = env::var("CXX") {
        return match is_installed(&named) {
            true => Ok(true),
            false => Err(format!("CXX names {named}, and there is no such command")),
        };
    }
    if is_installed("c++") {
        return Ok(true);
    }
    if effort == Effort::Start {
        return Ok(false);
    }
    install(&["g++"])?;
    Ok(is_installed("c++"))
}
