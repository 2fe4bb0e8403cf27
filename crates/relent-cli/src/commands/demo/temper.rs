//! How the demo's receiver behaves, as a pure function: an order's number and the seed say what happens to it.
//!
//! The shares are those of a bad day: 70 % of the orders go through at once, 26 % meet trouble that passes, and
//! 4 % meet trouble that lasts until somebody mends the receiver.

use std::time::Duration;

use relent_core::SplitMix64;

/// What an order meets at the receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Temper {
    /// No trouble.
    Calm,
    /// Trouble in its first requests, then none.
    Passing(Trouble, u32),
    /// Trouble until the receiver is mended.
    Lasting(Trouble),
}

/// One way in which a request goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trouble {
    /// 503: overloaded.
    Overloaded,
    /// The connection is closed without an answer; nothing was done.
    HangsUp,
    /// The order is carried out, but the answer comes after the sender has given up.
    Slow,
    /// 429 with `Retry-After: 1`.
    TooOften,
    /// 422: the receiver does not know a field of the order.
    Refused,
    /// 503 with `Retry-After: 3600`: closed for the day.
    Closed,
}

impl Temper {
    /// What the order with this number meets. Of any thousand consecutive orders exactly 700 are calm, 260 meet
    /// passing trouble, 20 are refused, 15 meet an overload that lasts and 5 a closed door.
    pub(super) fn of(order: u32, seed: u64) -> Self {
        // A stride without a factor in common with 1000 visits every place once in a thousand orders, and
        // spreads the kinds evenly over fewer.
        let place = (u64::from(order) * 617 + seed % 1000) % 1000;
        let chance = SplitMix64::at(seed, u64::from(order)).bits();
        match place {
            0..20 => Self::Lasting(Trouble::Refused),
            20..35 => Self::Lasting(Trouble::Overloaded),
            35..40 => Self::Lasting(Trouble::Closed),
            40..300 => Self::passing(chance),
            _ => Self::Calm,
        }
    }

    fn passing(chance: u64) -> Self {
        let again = u32::from(chance & 0x100 != 0);
        match chance % 100 {
            0..50 => Self::Passing(Trouble::Overloaded, 1 + again + u32::from(chance & 0x200 != 0)),
            50..75 => Self::Passing(Trouble::HangsUp, 1 + again),
            75..92 => Self::Passing(Trouble::TooOften, 1 + again),
            _ => Self::Passing(Trouble::Slow, 1),
        }
    }

    /// The trouble of the order's request with this number, counted from 1; none if it is carried out.
    pub(super) fn trouble(self, request: u32, mended: Mended) -> Option<Trouble> {
        match (self, mended) {
            (Self::Passing(trouble, times), _) if request <= times => Some(trouble),
            (Self::Lasting(trouble), Mended::NotYet) => Some(trouble),
            _ => None,
        }
    }
}

impl Trouble {
    /// How many seconds the sender is asked to stay away.
    pub(super) const fn asks(self) -> Option<u32> {
        match self {
            Self::TooOften => Some(1),
            Self::Closed => Some(3600),
            Self::Overloaded | Self::HangsUp | Self::Slow | Self::Refused => None,
        }
    }
}

/// Whether somebody has mended the receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mended {
    NotYet,
    Yes,
}

/// How long a slow answer takes: longer than the demo's attempt time-out by a margin that a busy machine keeps.
pub(super) const SLOW: Duration = Duration::from_secs(7);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_orders_meet_what_the_table_says_under_any_seed() {
        for seed in [0, 1, 617, u64::MAX] {
            let tempers: Vec<Temper> = (1..=1000).map(|order| Temper::of(order, seed)).collect();
            let count = |wanted: fn(&Temper) -> bool| tempers.iter().filter(|temper| wanted(temper)).count();
            assert_eq!(count(|temper| *temper == Temper::Calm), 700);
            assert_eq!(count(|temper| matches!(temper, Temper::Passing(..))), 260);
            assert_eq!(count(|temper| *temper == Temper::Lasting(Trouble::Refused)), 20);
            assert_eq!(count(|temper| *temper == Temper::Lasting(Trouble::Overloaded)), 15);
            assert_eq!(count(|temper| *temper == Temper::Lasting(Trouble::Closed)), 5);
            for trouble in [Trouble::Overloaded, Trouble::HangsUp, Trouble::TooOften, Trouble::Slow] {
                let met =
                    tempers.iter().any(|temper| matches!(temper, Temper::Passing(met, _) if *met == trouble));
                assert!(met, "{trouble:?} is among a thousand under seed {seed}");
            }
        }
    }

    #[test]
    fn trouble_passes_or_lasts_until_it_is_mended() {
        let passing = Temper::Passing(Trouble::HangsUp, 2);
        assert_eq!(passing.trouble(2, Mended::NotYet), Some(Trouble::HangsUp));
        assert_eq!(passing.trouble(3, Mended::NotYet), None);
        let lasting = Temper::Lasting(Trouble::Refused);
        assert_eq!(lasting.trouble(99, Mended::NotYet), Some(Trouble::Refused));
        assert_eq!(lasting.trouble(99, Mended::Yes), None);
        assert_eq!(Temper::Calm.trouble(1, Mended::NotYet), None);
    }

    #[test]
    fn another_seed_gives_other_trouble() {
        let under = |seed| (1..=100).map(|order| Temper::of(order, seed)).collect::<Vec<_>>();
        assert_eq!(under(1), under(1));
        assert_ne!(under(1), under(2));
    }
}
