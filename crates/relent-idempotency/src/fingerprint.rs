//! By what a repeat is told from another request under the same key.

use std::fmt;

use http::Method;
use sha2::{Digest, Sha256};

use crate::Caller;

/// SHA-256 over a request's method, resource, caller and body.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a request. `resource` is its path with the query.
    ///
    /// Bodies are compared byte by byte: the same JSON with its fields in another order is another request. Headers do
    /// not count; a client may send another `traceparent` with a repeat, or authenticate anew.
    pub fn of(caller: &Caller, method: &Method, resource: &str, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // Every part has its length before it, so that no two different requests are written alike.
        for part in [b"relent idempotency 1", caller.as_str().as_bytes(), method.as_str().as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        for part in [resource.as_bytes(), body] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        for byte in &self.0[..4] {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(caller: &str, method: Method, resource: &str, body: &str) -> Fingerprint {
        Fingerprint::of(&Caller::named(caller), &method, resource, body.as_bytes())
    }

    #[test]
    fn every_part_counts_and_no_two_are_written_alike() {
        let all = [
            of("a", Method::POST, "/loans", "{}"),
            of("b", Method::POST, "/loans", "{}"),
            of("a", Method::PATCH, "/loans", "{}"),
            of("a", Method::POST, "/payouts", "{}"),
            of("a", Method::POST, "/loans?now", "{}"),
            of("a", Method::POST, "/loans", "{} "),
            of("a", Method::POST, "/loans{}", ""),
            of("", Method::POST, "a/loans", "{}"),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all.iter().skip(index + 1).all(|other| one != other), "{index}");
        }
        assert_eq!(all[0], of("a", Method::POST, "/loans", "{}"));
    }
}
