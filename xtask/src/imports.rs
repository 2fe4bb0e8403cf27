//! Who may import whom. A new line here is the rarest kind of change and needs its reason in an ADR.

use crate::metadata::metadata;

/// A crate, the crates of relent that it may use, and everything from outside.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const TABLE: &[Row] = &[
    ("relent-core", &[], &["serde"]),
    // loom under `cfg(loom)` alone
    ("relent", &["relent-core"], &["loom", "opentelemetry", "pin-project-lite", "tokio", "tracing"]),
    (
        "relent-tower",
        &["relent"],
        &[
            "bytes",
            "h2",
            "http",
            "http-body",
            "httpdate",
            "hyper",
            "hyper-util",
            "pin-project-lite",
            "tower-layer",
            "tower-service",
            "uuid",
        ],
    ),
    (
        "relent-reqwest",
        &["relent", "relent-tower"],
        &["async-trait", "http", "pin-project-lite", "reqwest", "reqwest-middleware", "tower-service"],
    ),
    (
        "relent-idempotency",
        &["relent"],
        &[
            "async-trait",
            "bytes",
            "getrandom",
            "http",
            "http-body",
            "http-body-util",
            "pin-project-lite",
            "sha2",
            "tokio",
            "tower-layer",
            "tower-service",
            "tracing",
        ],
    ),
    (
        "relent-idempotency-postgres",
        &["relent", "relent-idempotency"],
        &["async-trait", "deadpool-postgres", "http", "tokio", "tokio-postgres"],
    ),
    (
        "relent-idempotency-sqlite",
        &["relent", "relent-idempotency"],
        &["async-trait", "http", "rusqlite", "tokio"],
    ),
    ("relent-ledger", &["relent-core"], &["async-trait", "bytes", "uuid"]),
    (
        "relent-ledger-sqlite",
        &["relent-core", "relent-ledger"],
        &["async-trait", "bytes", "crc32fast", "rusqlite", "serde_json", "tokio"],
    ),
    (
        "relent-deliver",
        &["relent", "relent-ledger", "relent-tower"],
        &[
            "bytes",
            "http",
            "http-body-util",
            "hyper",
            "hyper-rustls",
            "hyper-util",
            "ipnet",
            "rustls",
            "sha2",
            "tokio",
            "tower-service",
            "webpki-roots",
        ],
    ),
    ("relent-probe", &["relent"], &["bytes", "http", "httparse", "httpdate", "rustix", "sha2", "tokio"]),
    ("relent-check", &["relent-core"], &["jsonc-parser", "serde", "serde-saphyr", "serde_json", "toml"]),
    ("relent-sim", &["relent-core"], &["libm", "maud", "serde", "toml"]),
    (
        "relent-cli",
        &[
            "relent",
            "relent-check",
            "relent-core",
            "relent-deliver",
            "relent-ledger",
            "relent-ledger-sqlite",
            "relent-probe",
            "relent-sim",
            "relent-tower",
        ],
        &[
            "anyhow",
            "axum",
            "base64",
            "bytes",
            "clap",
            "getrandom",
            "http",
            "http-body-util",
            "hyper",
            "hyper-rustls",
            "hyper-util",
            "indicatif",
            "ipnet",
            "prometheus-client",
            "rlimit",
            "serde",
            "serde_json",
            "serde_path_to_error",
            "subtle",
            "tempfile",
            "tokio",
            "toml",
            "tower-layer",
            "tower-service",
            "tracing",
            "tracing-subscriber",
        ],
    ),
];

/// Compares the manifests with the table, in both directions.
pub(crate) fn check(faults: &mut Vec<String>) -> Result<(), String> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if name == "xtask" || name == "relent-tests" {
            continue;
        }
        let Some((_, ours, outside)) = TABLE.iter().find(|(row, ..)| *row == name) else {
            faults.push(format!("{name}: the crate has no row in xtask/src/imports.rs"));
            continue;
        };
        let used: Vec<&str> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .collect();
        for dependency in &used {
            if !ours.contains(dependency) && !outside.contains(dependency) {
                faults
                    .push(format!("{name}: may not use {dependency} (the table is in xtask/src/imports.rs)"));
            }
        }
        for listed in ours.iter().chain(*outside).filter(|listed| !used.contains(listed)) {
            faults.push(format!("{name}: the table lists {listed}, which it does not use"));
        }
    }
    Ok(())
}
