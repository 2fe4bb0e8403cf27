//! Which attempts the present thread is inside of, so that retries within retries are seen.
//!
//! Four attempts that each make three are twelve, and the layer below sees no reason for it. While an attempt is
//! polled (or, blocking, runs), its frame stands on the thread's stack; a call that begins there knows whose
//! attempt it is part of. A task that the attempt spawns is polled elsewhere and knows nothing.

use std::{
    cell::Cell,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    thread_local,
};

use relent_core::Nesting;

/// What tells a dependency from others: its name's hash (64 bits, the same keys everywhere), or a number that no
/// other living pipeline has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Identity(u64);

impl Identity {
    pub(crate) fn of_name(name: &str) -> Self {
        Self(BuildHasherDefault::<DefaultHasher>::default().hash_one(name))
    }

    /// That of a pipeline without a name: the address of what its clones share.
    pub(crate) fn of_address<T>(shared: &std::sync::Arc<T>) -> Self {
        Self(std::sync::Arc::as_ptr(shared).addr() as u64)
    }
}

/// An attempt that is being polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    dependency: Identity,
    /// How many attempts one outermost call may come to here. `None`: without limit.
    attempts: Option<u32>,
}

impl Frame {
    const NONE: Self = Self { dependency: Identity(0), attempts: Some(1) };

    /// The frame of an attempt, of at most `own` in its call, which is not part of another's.
    #[inline]
    pub(crate) const fn new(dependency: Identity, own: Option<u32>) -> Self {
        Self { dependency, attempts: own }
    }

    /// [`Frame::new`], for a call of which one outermost call may make as many as there are `around` it.
    pub(crate) fn within(around: Option<u32>, dependency: Identity, own: Option<u32>) -> Self {
        Self { dependency, attempts: product(own, around) }
    }

    /// How many attempts one outermost call may come to here. `None`: without limit.
    pub(crate) const fn attempts(self) -> Option<u32> {
        self.attempts
    }

    /// Does some of the attempt's work, with the frame on the stack until it returns or panics.
    #[inline]
    pub(crate) fn around<R>(self, work: impl FnOnce() -> R) -> R {
        STACK.with(|stack| {
            let _popped_in_the_end = stack.push(self);
            work()
        })
    }

    /// [`Frame::around`], where the thread is [inside](is_inside) of no other attempt.
    #[inline(always)]
    pub(crate) fn around_outermost<R>(self, work: impl FnOnce() -> R) -> R {
        STACK.with(|stack| {
            stack.frames[0].set(self);
            stack.depth.set(1);
            let _popped_in_the_end = Popped { stack, depth: 0 };
            work()
        })
    }
}

/// Whether the thread is inside of any attempt.
#[inline]
pub(crate) fn is_inside() -> bool {
    STACK.with(|stack| stack.depth.get() > 0)
}

/// Where a call for this dependency stands that begins here, and how many attempts one outermost call may come
/// to around it.
pub(crate) fn here(dependency: Identity) -> (Nesting, Option<u32>) {
    STACK.with(|stack| stack.surround(dependency))
}

/// How many attempts `own` inside each of `around` are. `None`: without limit.
fn product(own: Option<u32>, around: Option<u32>) -> Option<u32> {
    Some(own?.saturating_mul(around?))
}

/// The attempts that the thread is inside of, the outermost first. Of more than [`DEEPEST`] the innermost are
/// only counted.
struct Stack {
    depth: Cell<usize>,
    frames: [Cell<Frame>; DEEPEST],
}

impl Stack {
    #[inline]
    fn push(&self, frame: Frame) -> Popped<'_> {
        let depth = self.depth.get();
        if let Some(place) = self.frames.get(depth) {
            place.set(frame);
        }
        self.depth.set(depth + 1);
        Popped { stack: self, depth }
    }

    fn surround(&self, dependency: Identity) -> (Nesting, Option<u32>) {
        let depth = self.depth.get().min(DEEPEST);
        let Some(innermost) = depth.checked_sub(1) else { return (Nesting::Outermost, Some(1)) };
        let same = self.frames[..depth].iter().any(|frame| frame.get().dependency == dependency);
        let nesting = if same { Nesting::SameDependency } else { Nesting::Within };
        (nesting, self.frames[innermost].get().attempts)
    }
}

/// Restores the stack, whatever happens.
struct Popped<'a> {
    stack: &'a Stack,
    depth: usize,
}

impl Drop for Popped<'_> {
    #[inline]
    fn drop(&mut self) {
        self.stack.depth.set(self.depth);
    }
}

/// Retries nested deeper than this are a mistake that no counting mends.
const DEEPEST: usize = 8;

thread_local! {
    static STACK: Stack = const {
        Stack { depth: Cell::new(0), frames: [const { Cell::new(Frame::NONE) }; DEEPEST] }
    };
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn frame(name: &str, own: u32) -> Frame {
        let dependency = Identity::of_name(name);
        Frame::within(here(dependency).1, dependency, Some(own))
    }

    #[test]
    fn who_is_inside_is_told_of_all_that_is_around() {
        let here = |name| here(Identity::of_name(name));
        assert_eq!(here("a"), (Nesting::Outermost, Some(1)));
        frame("a", 4).around(|| {
            assert_eq!(here("a"), (Nesting::SameDependency, Some(4)));
            assert_eq!(here("b"), (Nesting::Within, Some(4)));
            frame("b", 3).around(|| {
                assert_eq!(here("a"), (Nesting::SameDependency, Some(12)), "two levels up counts as well");
                assert_eq!(here("c"), (Nesting::Within, Some(12)));
            });
            assert_eq!(here("b"), (Nesting::Within, Some(4)));
        });
        assert_eq!(here("a").0, Nesting::Outermost);
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let panicked = catch_unwind(AssertUnwindSafe(|| frame("a", 4).around(|| panic!("as planned"))));
        assert!(panicked.is_err());
        assert_eq!(here(Identity::of_name("a")).0, Nesting::Outermost);
    }

    #[test]
    fn too_deep_is_still_inside() {
        fn down(levels: usize) {
            if levels > 0 {
                return frame("a", 2).around(|| down(levels - 1));
            }
            assert_eq!(here(Identity::of_name("b")), (Nesting::Within, Some(256)));
        }
        down(DEEPEST + 3);
        assert_eq!(here(Identity::of_name("a")).0, Nesting::Outermost);
    }

    #[test]
    fn without_a_limit_there_is_no_product() {
        assert_eq!(product(None, Some(3)), None);
        assert_eq!(product(Some(3), None), None);
        assert_eq!(product(Some(u32::MAX), Some(3)), Some(u32::MAX));
    }
}
