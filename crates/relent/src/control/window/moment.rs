//! The present instant, read when somebody needs it and then not again.

use relent_core::Timestamp;

/// Reads a clock at most once.
pub(crate) enum Moment<F> {
    Unread(Option<F>),
    Read(Timestamp),
}

impl<F: FnOnce() -> Timestamp> Moment<F> {
    pub(crate) const fn new(clock: F) -> Self {
        Self::Unread(Some(clock))
    }

    #[inline]
    pub(crate) fn get(&mut self) -> Timestamp {
        match self {
            Self::Read(now) => *now,
            Self::Unread(clock) => {
                // The clock is taken only here, and what is read replaces it at once.
                let now = clock.take().map_or(Timestamp::ZERO, |clock| clock());
                *self = Self::Read(now);
                now
            }
        }
    }
}
