//! What a caller says of one request, beside the request itself.

use relent::{Idempotency, Timestamp};

/// What the caller of one request says about it, put into its extensions.
///
/// Without it a request goes by its method, by its idempotency key if it has one, and by the policy.
///
/// # Examples
///
/// A search by `POST`, which changes nothing:
///
/// ```
/// use http::Request;
/// use relent_tower::CallTerms;
///
/// let search = Request::post("https://api.example/search")
///     .extension(CallTerms::new().safe())
///     .body("{\"name\": \"apples\"}")?;
/// # Ok::<_, http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[must_use]
pub struct CallTerms {
    pub(crate) repeat: Option<Idempotency>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) seed: Option<u64>,
}

impl CallTerms {
    /// Nothing said yet.
    pub const fn new() -> Self {
        Self { repeat: None, deadline: None, seed: None }
    }

    /// Repeating it changes nothing, whatever its method.
    pub const fn safe(self) -> Self {
        self.with_repeat(Idempotency::Safe)
    }

    /// Its receiver honours a key. Every attempt carries the same one: the request's own, or one made for it.
    pub const fn keyed(self) -> Self {
        self.with_repeat(Idempotency::Keyed)
    }

    /// Repeating it may do its work twice: an attempt that may have been processed is the last.
    pub const fn unsafe_to_repeat(self) -> Self {
        self.with_repeat(Idempotency::Unsafe)
    }

    /// Whether it may be repeated. A route of the policy that says `repeat = "never"` stands.
    pub const fn with_repeat(self, repeat: Idempotency) -> Self {
        Self { repeat: Some(repeat), ..self }
    }

    /// It is of no use to the caller after `at`, on the pipeline's clock.
    pub const fn with_deadline(self, at: Timestamp) -> Self {
        Self { deadline: Some(at), ..self }
    }

    /// Draws its waits from this seed, so that a test's repeat.
    pub const fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }
}
