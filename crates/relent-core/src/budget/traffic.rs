//! How many calls the last minute saw, in two words.
//!
//! Each word holds one slot of a minute, `slot << 35 | calls`, and slots take turns: the even ones stand in the
//! first word, the odd ones in the second. A call is one addition to the word of its slot; the first call of a
//! slot replaces the word of the slot before last, which is of no use any more. So the two slots that a reader
//! needs are never half written, whatever runs meanwhile.
//!
//! 35 bits count 572 million calls a second, more than additions to one shared word can be made.

use crate::time::Timestamp;

/// What counting one call does to the word of its slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counted {
    /// The slot goes on: add one to the word.
    SameSlot,
    /// A slot begins: this is the new word.
    NewSlot(u64),
}

/// Which of the two words a call at `now` is counted in.
#[inline]
pub const fn place(now: Timestamp) -> usize {
    (slot_at(now) & 1) as usize
}

/// Counting one call at `now` in the word of its [`place`]. A clock that went back counts into what is there.
#[inline]
pub const fn count(word: u64, now: Timestamp) -> Counted {
    match slot_at(now) > slot_of(word) {
        true => Counted::NewSlot((slot_at(now) << CALL_BITS) | 1),
        false => Counted::SameSlot,
    }
}

/// Calls within the last minute, in thousandths: this slot's, and of the slot before it the share that is still
/// within a minute. A clock that went back reads as the beginning of the newest slot.
#[inline]
pub const fn calls_milli(words: [u64; 2], now: Timestamp) -> u64 {
    let slot = slot_at(now);
    let [this, other] = turned(words, slot);
    // Whoever asks has just been counted, as a rule, so that this slot has begun and is the newest.
    if slot_of(this) != slot || slot_of(other) > slot {
        return calls_milli_at_the_edge(words, now);
    }
    let this_milli = calls_of(this) * 1000;
    match slot_of(other) + 1 == slot {
        true => this_milli + share_milli(calls_of(other), now.as_nanos() - slot * SLOT),
        false => this_milli,
    }
}

/// [`calls_milli`] where nobody was counted in this slot yet, or the clock went back.
#[cold]
const fn calls_milli_at_the_edge(words: [u64; 2], now: Timestamp) -> u64 {
    let [even, odd] = words;
    let present = later(slot_at(now), later(slot_of(even), slot_of(odd)));
    let [this, other] = turned(words, present);
    let last = if slot_of(other) + 1 == present { calls_of(other) } else { 0 };
    let this = if slot_of(this) == present { calls_of(this) } else { 0 };
    this * 1000 + share_milli(last, now.as_nanos().saturating_sub(present * SLOT))
}

/// Of the calls of the slot before, those that are still within a minute.
#[inline]
const fn share_milli(calls: u64, into_slot: u64) -> u64 {
    let left_micros = (SLOT - into_slot) / 1000;
    calls * left_micros / (SLOT / 1_000_000)
}

/// The word of that slot, and the other.
#[inline]
const fn turned([even, odd]: [u64; 2], slot: u64) -> [u64; 2] {
    if slot & 1 == 0 { [even, odd] } else { [odd, even] }
}

const fn later(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

const fn slot_at(now: Timestamp) -> u64 {
    now.as_nanos() / SLOT
}

const fn slot_of(word: u64) -> u64 {
    word >> CALL_BITS
}

const fn calls_of(word: u64) -> u64 {
    word & ((1 << CALL_BITS) - 1)
}

/// A slot: one minute in nanoseconds. The last that a timestamp can name needs 29 bits.
const SLOT: u64 = 60_000_000_000;
const CALL_BITS: u32 = 35;

#[cfg(test)]
mod tests {
    use super::*;

    const fn word(slot: u64, calls: u64) -> u64 {
        (slot << CALL_BITS) | calls
    }

    #[test]
    fn of_the_slot_before_counts_what_is_still_within_a_minute() {
        let words = [word(4, 10), word(3, 600)];
        let at = |seconds| calls_milli(words, Timestamp::from_secs(seconds));
        assert_eq!(at(240), 610_000, "a slot begins: all of the one before");
        assert_eq!(at(270), 310_000, "half a minute in: half of it");
        assert_eq!(
            calls_milli(words, Timestamp::from_nanos(300_000_000_000 - 1)),
            10_000,
            "its end: nothing"
        );
        assert_eq!(at(300), 10_000, "the next slot: this one is the one before");
        assert_eq!(at(330), 5_000);
        assert_eq!(at(360), 0, "a minute without a call: nothing");
        assert_eq!(calls_milli(words, Timestamp::MAX), 0);
    }

    #[test]
    fn a_clock_that_went_back_reads_as_the_beginning_of_the_newest_slot() {
        let words = [word(4, 10), word(3, 600)];
        for seconds in [0, 100, 239] {
            assert_eq!(calls_milli(words, Timestamp::from_secs(seconds)), 610_000);
        }
        assert_eq!(count(words[0], Timestamp::from_secs(125)), Counted::SameSlot);
    }

    #[test]
    fn the_first_call_of_a_slot_replaces_the_slot_before_last() {
        let minute = |minutes: u64| Timestamp::from_secs(60 * minutes);
        assert_eq!(count(word(3, 600), minute(5)), Counted::NewSlot(word(5, 1)));
        assert_eq!(count(word(5, 1), minute(5)), Counted::SameSlot);
        assert_eq!(place(minute(5)), 1);
        assert_eq!(count(0, Timestamp::ZERO), Counted::SameSlot, "the empty word is slot 0 without calls");
    }

    #[test]
    fn a_full_word_and_the_last_instant_do_not_overflow() {
        let last = slot_at(Timestamp::MAX);
        let full = (1 << CALL_BITS) - 1;
        let words = [word(last, full), word(last - 1, full)];
        let begins = Timestamp::from_nanos(last * SLOT);
        assert_eq!(calls_milli(words, begins), 2 * full * 1000);
    }
}
