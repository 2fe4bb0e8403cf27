//! Which behaviour cases, by their ids such as `RA-06`, are cited by which test file.

use std::collections::BTreeMap;

use crate::run::rust_files;

/// Prints every cited case with the files that cite it. These chores cite none: what they write is an example.
pub(crate) fn run() -> Result<(), String> {
    let mut cited: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let files = rust_files()?;
    for (name, text) in files.into_iter().filter(|(name, _)| !name.starts_with("xtask/")) {
        for id in ids(&text) {
            let files = cited.entry(id).or_default();
            if !files.contains(&name) {
                files.push(name.clone());
            }
        }
    }
    for (id, files) in &cited {
        println!("{id}  {}", files.join(", "));
    }
    println!("{} cases are cited", cited.len());
    Ok(())
}

/// The ids in a text: two capitals of a known kind, a hyphen, two digits.
fn ids(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(4))
        .filter(|&at| {
            KINDS.contains(&&text.as_bytes()[at..at + 2])
                && bytes[at + 2] == b'-'
                && bytes[at + 3].is_ascii_digit()
                && bytes[at + 4].is_ascii_digit()
                && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
        })
        .map(|at| text[at..at + 5].to_string())
        .collect()
}

const KINDS: [&[u8]; 16] = [
    b"RA", b"BO", b"RT", b"BU", b"TO", b"CB", b"LI", b"HE", b"ID", b"ST", b"DL", b"RD", b"WH", b"JB", b"TS",
    b"CL",
];
