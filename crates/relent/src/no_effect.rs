//! A word between layers that do not know each other: nothing was done.

/// Marks an answer as that of a server which has done nothing: a refusal, say, of what came too late. Whoever guards the
/// work against being done twice may then let it be done by a repeat, whatever the answer's status.
///
/// Put it into the response's extensions. In axum: `(StatusCode::SERVICE_UNAVAILABLE, Extension(NoEffect))`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NoEffect;
