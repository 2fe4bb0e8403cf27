//! Instructions, counted by callgrind: a figure that a busy machine does not move.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Whether valgrind is installed.
pub(crate) fn is_there() -> bool {
    let asked =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// The instructions of one call of that row.
pub(crate) fn per_call(bench: &Path, row: &str) -> Result<f64, String> {
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*counted_by_callgrind*",
        ])
        .arg(bench)
        .args(["make", row, &CALLS.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match total(&said) {
        Some(total) if output.status.success() && total > 0.0 => Ok(total / f64::from(CALLS)),
        _ => Err(format!("callgrind counts nothing of {row}: {said}")),
    }
}

/// From the line `==123== Collected : 456`.
fn total(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit(' ').next()?.parse().ok()
}

const CALLS: u32 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_stands_in_the_line_that_says_so() {
        let said = "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(total(said), Some(1_234_567.0));
        assert_eq!(total("==7== Segmentation fault"), None);
    }
}
