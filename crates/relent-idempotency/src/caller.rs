//! Whose key it is: two callers may use the same key, and neither may see what the other was answered.

use std::{fmt, sync::Arc};

use http::{HeaderName, request::Parts};
use sha2::{Digest, Sha256};

/// Whose keys these are. Stored with every record, so it holds no secret.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Caller(Arc<str>);

impl Caller {
    /// The longest name that is stored as it is; of a longer one its digest is.
    pub const MAX_LEN: usize = 255;

    /// A caller by a name that may be stored and shown: a tenant's or an account's id.
    pub fn named(name: &str) -> Self {
        if name.len() <= Self::MAX_LEN && !name.contains('\0') {
            Self(name.into())
        } else {
            Self::secret(name.as_bytes())
        }
    }

    /// A caller by what only it knows, such as its token: SHA-256 of it is stored, never the secret itself.
    pub fn secret(secret: &[u8]) -> Self {
        let mut name = String::from("sha256:");
        for byte in Sha256::digest(secret) {
            name.push_str(&format!("{byte:02x}"));
        }
        Self(name.into())
    }

    /// The name as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tells whose request it is. There is no default: to forget the caller would give one tenant's answers to another
/// that happens to use the same key.
///
/// A closure will do:
///
/// ```
/// use http::request::Parts;
/// use relent_idempotency::{Caller, Callers};
///
/// #[derive(Clone)]
/// struct Account(u64); // put into the request's extensions by your authentication
///
/// let callers = |parts: &Parts| parts.extensions.get::<Account>().map(|account| Caller::named(&account.0.to_string()));
/// # fn is_callers(_: impl Callers) {}
/// # is_callers(callers);
/// ```
pub trait Callers: Send + Sync + 'static {
    /// Whose request it is. `None` if that cannot be told: the request is refused with 403, for its key would be
    /// nobody's.
    fn caller(&self, parts: &Parts) -> Option<Caller>;
}

impl<F> Callers for F
where
    F: Fn(&Parts) -> Option<Caller> + Send + Sync + 'static,
{
    fn caller(&self, parts: &Parts) -> Option<Caller> {
        self(parts)
    }
}

/// All requests are one caller's. For a service with one client, or behind a gateway that makes keys unique.
///
/// With several clients, one of them that guesses another's key and request is given that other's answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everyone;

impl Callers for Everyone {
    fn caller(&self, _: &Parts) -> Option<Caller> {
        Some(Caller::named(""))
    }
}

/// The caller is whoever sends this value in this header, such as `authorization`. A digest of it is stored. A client
/// that renews its token between two attempts is another caller to this: where tokens are short-lived, name the account
/// instead.
///
/// A request without the header, or with several lines of it, is nobody's.
#[derive(Clone, Debug)]
pub struct ByHeader(pub HeaderName);

impl Callers for ByHeader {
    fn caller(&self, parts: &Parts) -> Option<Caller> {
        let mut lines = parts.headers.get_all(&self.0).iter();
        let line = lines.next().filter(|_| lines.next().is_none())?;
        Some(Caller::secret(line.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, header::AUTHORIZATION};

    use super::*;

    #[test]
    fn a_secret_is_not_stored() {
        let (parts, ()) =
            Request::post("/").header(AUTHORIZATION, "Bearer hush").body(()).unwrap().into_parts();
        let caller = ByHeader(AUTHORIZATION).caller(&parts).unwrap();
        assert!(!caller.as_str().contains("hush") && caller.as_str().starts_with("sha256:"), "{caller}");
        assert_eq!(caller, Caller::secret(b"Bearer hush"));
        assert_ne!(caller, Caller::secret(b"Bearer other"));
    }

    #[test]
    fn no_header_or_several_are_nobody() {
        let none = Request::post("/").body(()).unwrap().into_parts().0;
        let two = Request::post("/").header(AUTHORIZATION, "a").header(AUTHORIZATION, "b");
        assert_eq!(ByHeader(AUTHORIZATION).caller(&none), None);
        assert_eq!(ByHeader(AUTHORIZATION).caller(&two.body(()).unwrap().into_parts().0), None);
    }

    #[test]
    fn a_name_too_long_to_store_is_digested() {
        let long = "x".repeat(256);
        assert_eq!(Caller::named(&long), Caller::secret(long.as_bytes()));
        assert_eq!(Caller::named("tenant-17").as_str(), "tenant-17");
    }
}
