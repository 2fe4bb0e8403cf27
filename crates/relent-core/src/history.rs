//! What has happened to one logical call: the whole decision state, of fixed size.
//!
//! A live call keeps it in memory, a store as versioned bytes that it does not understand. What was sent and
//! answered is another thing, the attempt log, and no decision reads it.

use core::{fmt, time::Duration};

use crate::{
    deadline::Deadlines,
    decision::{Wait, WaitOrigin, names},
    time::{Timestamp, saturating_nanos},
    verdict::{Cause, Neutral, Sent, Verdict},
};

/// The decision state of one call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct History {
    /// The call's whole supply of chance, drawn once at its birth.
    pub seed: u64,
    /// When the call (for a redriven message: its present cycle) began.
    pub started: Timestamp,
    /// When it stops being of use.
    pub deadlines: Deadlines,
    /// Whether it is safe to repeat.
    pub idempotency: Idempotency,
    /// Whether it runs inside another pipeline's attempt.
    pub nesting: Nesting,
    /// Attempts that count, in the present cycle.
    pub attempts: u32,
    /// Attempts whose worker died, in the present cycle; counted apart from `attempts`.
    pub losses: u32,
    /// The length of the last wait of our own, or zero. Decorrelated jitter grows from it, so a wait that the
    /// server asked for leaves it alone: a hint must not disturb the sequence.
    pub last_wait: Duration,
    /// What the last outcome meant. `None` before the first.
    pub last_verdict: Option<Verdict>,
    /// How often a person has sent it again.
    pub cycle: u32,
}

/// Whether a call may be repeated when nobody knows what it did. Said by the caller, never guessed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Idempotency {
    /// Repeating it changes nothing.
    Safe,
    /// The receiver honours a key that every attempt carries.
    Keyed,
    /// Repeating it may do it twice.
    #[default]
    Unsafe,
    /// It is not repeated, however safe that were: it costs too much. It has one attempt.
    Never,
}

names!(Idempotency { Safe => "safe", Keyed => "keyed", Unsafe => "unsafe", Never => "never" });

/// Where a call stands among pipelines.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Nesting {
    /// Inside no other.
    #[default]
    Outermost,
    /// Inside an attempt of a pipeline for another dependency.
    Within,
    /// Inside an attempt of a pipeline for the same dependency, which retries already.
    SameDependency,
}

names!(Nesting { Outermost => "outermost", Within => "within", SameDependency => "same_dependency" });

impl History {
    /// A call that begins at `started` and has not been tried.
    #[inline]
    pub const fn new(seed: u64, started: Timestamp, idempotency: Idempotency, deadlines: Deadlines) -> Self {
        Self {
            seed,
            started,
            deadlines,
            idempotency,
            nesting: Nesting::Outermost,
            attempts: 0,
            losses: 0,
            last_wait: Duration::ZERO,
            last_verdict: None,
            cycle: 0,
        }
    }

    /// Takes in what an attempt's outcome meant. Attempts and losses are counted apart; neutral outcomes are
    /// not counted.
    #[inline(always)]
    pub fn record(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Failure { cause: Cause::Lost, .. } => self.losses = self.losses.saturating_add(1),
            Verdict::Neutral(_) => {}
            Verdict::Success | Verdict::Permanent | Verdict::Failure { .. } => {
                self.attempts = self.attempts.saturating_add(1);
            }
        }
        self.last_verdict = Some(verdict);
    }

    /// Takes in the wait that was decided on.
    pub fn record_wait(&mut self, wait: &Wait) {
        if wait.origin == WaitOrigin::Backoff {
            self.last_wait = wait.length;
        }
    }

    /// How many outcomes the backoff has seen: the number of the wait that follows.
    pub const fn failures(&self) -> u32 {
        self.attempts.saturating_add(self.losses)
    }

    /// The same work, sent again by a person at `now`: a new cycle with a policy's full patience. What the
    /// earlier cycles used up does not send it straight back.
    #[must_use]
    pub const fn redriven(&self, now: Timestamp, deadlines: Deadlines) -> Self {
        Self {
            nesting: self.nesting,
            cycle: self.cycle.saturating_add(1),
            ..Self::new(self.seed, now, self.idempotency, deadlines)
        }
    }

    /// The bytes to store: a version, the fields, a checksum.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut out = Writer { bytes: [0; Self::LEN], at: 0 };
        out.put([VERSION]);
        out.put(self.seed.to_le_bytes());
        out.put(self.started.as_nanos().to_le_bytes());
        for deadline in [self.deadlines.total, self.deadlines.upstream, self.deadlines.business] {
            out.put([u8::from(deadline.is_some())]);
            out.put(deadline.unwrap_or_default().as_nanos().to_le_bytes());
        }
        out.put([self.idempotency as u8, self.nesting as u8]);
        out.put(self.attempts.to_le_bytes());
        out.put(self.losses.to_le_bytes());
        out.put(saturating_nanos(self.last_wait).to_le_bytes());
        out.put(verdict_bytes(self.last_verdict));
        out.put(self.cycle.to_le_bytes());
        let sum = checksum(&out.bytes[..out.at]);
        out.put(sum.to_le_bytes());
        out.bytes
    }

    /// Reads what [`History::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] says what is wrong: the length, the version, the checksum, or a field.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().map_err(|_| Unreadable("length"))?;
        if bytes[0] != VERSION {
            return Err(Unreadable("version"));
        }
        let (fields, sum) = bytes.split_at(Self::LEN - 4);
        if sum != checksum(fields).to_le_bytes() {
            return Err(Unreadable("checksum"));
        }
        let mut from = Reader { bytes: fields, at: 1 };
        Ok(Self {
            seed: from.u64(),
            started: Timestamp::from_nanos(from.u64()),
            deadlines: Deadlines {
                total: from.deadline(),
                upstream: from.deadline(),
                business: from.deadline(),
            },
            idempotency: from.one_of(Idempotency::ALL).ok_or(Unreadable("idempotency"))?,
            nesting: from.one_of(Nesting::ALL).ok_or(Unreadable("nesting"))?,
            attempts: from.u32(),
            losses: from.u32(),
            last_wait: Duration::from_nanos(from.u64()),
            last_verdict: verdict_from(from.take())?,
            cycle: from.u32(),
        })
    }

    /// The length of the stored bytes.
    pub const LEN: usize = 1 + 8 + 8 + 3 * 9 + 2 + 4 + 4 + 8 + VERDICT_LEN + 4 + 4;
}

/// Stored bytes that are not a history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unreadable(&'static str);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stored history is unreadable: wrong {}", self.0)
    }
}

impl core::error::Error for Unreadable {}

struct Writer {
    bytes: [u8; History::LEN],
    at: usize,
}

impl Writer {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&field);
        self.at += N;
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn deadline(&mut self) -> Option<Timestamp> {
        let [there] = self.take();
        let at = self.u64();
        (there != 0).then_some(Timestamp::from_nanos(at))
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let [index] = self.take();
        all.get(usize::from(index)).copied()
    }
}

/// Kind, cause, sent, whether the server asked, and for how long.
fn verdict_bytes(verdict: Option<Verdict>) -> [u8; VERDICT_LEN] {
    let mut bytes = [0; VERDICT_LEN];
    match verdict {
        None => {}
        Some(Verdict::Success) => bytes[0] = 1,
        Some(Verdict::Permanent) => bytes[0] = 2,
        Some(Verdict::Neutral(Neutral::Cancelled)) => bytes[0] = 3,
        Some(Verdict::Neutral(Neutral::OwnFault)) => bytes[0] = 4,
        Some(Verdict::Failure { cause, sent, server_wait }) => {
            bytes[..4].copy_from_slice(&[5, cause as u8, sent as u8, u8::from(server_wait.is_some())]);
            bytes[4..].copy_from_slice(&saturating_nanos(server_wait.unwrap_or_default()).to_le_bytes());
        }
    }
    bytes
}

fn verdict_from(bytes: [u8; VERDICT_LEN]) -> Result<Option<Verdict>, Unreadable> {
    const CAUSES: [Cause; 4] = [Cause::Error, Cause::Timeout, Cause::Throttled, Cause::Lost];
    const SENT: [Sent; 3] = [Sent::No, Sent::Maybe, Sent::RefusedBefore];
    let [kind, cause, sent, asked, nanos @ ..] = bytes;
    Ok(Some(match kind {
        0 => return Ok(None),
        1 => Verdict::Success,
        2 => Verdict::Permanent,
        3 => Verdict::Neutral(Neutral::Cancelled),
        4 => Verdict::Neutral(Neutral::OwnFault),
        5 => Verdict::Failure {
            cause: *CAUSES.get(usize::from(cause)).ok_or(Unreadable("cause"))?,
            sent: *SENT.get(usize::from(sent)).ok_or(Unreadable("sent"))?,
            server_wait: (asked != 0).then_some(Duration::from_nanos(u64::from_le_bytes(nanos))),
        },
        _ => return Err(Unreadable("verdict")),
    }))
}

/// FNV-1a in 32 bits: finds a flipped bit or a torn write; it is no defence against a forger.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

const VERSION: u8 = 1;
const VERDICT_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> History {
        History {
            seed: 0x0123_4567_89ab_cdef,
            started: Timestamp::from_nanos(2),
            deadlines: Deadlines {
                total: Some(Timestamp::from_nanos(3)),
                upstream: None,
                business: Some(Timestamp::from_nanos(4)),
            },
            idempotency: Idempotency::Keyed,
            nesting: Nesting::SameDependency,
            attempts: 5,
            losses: 6,
            last_wait: Duration::from_nanos(7),
            last_verdict: Some(Verdict::Failure {
                cause: Cause::Throttled,
                sent: Sent::RefusedBefore,
                server_wait: Some(Duration::from_nanos(8)),
            }),
            cycle: 9,
        }
    }

    /// What is stored today must be read by every later version: these bytes never change.
    #[test]
    fn the_first_version_of_the_stored_bytes_is_this() {
        #[rustfmt::skip]
        let stored = [
            1, // version
            0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, // seed
            2, 0, 0, 0, 0, 0, 0, 0, // started
            1, 3, 0, 0, 0, 0, 0, 0, 0, // total
            0, 0, 0, 0, 0, 0, 0, 0, 0, // upstream
            1, 4, 0, 0, 0, 0, 0, 0, 0, // business
            1, 2, // keyed, same dependency
            5, 0, 0, 0, 6, 0, 0, 0, // attempts, losses
            7, 0, 0, 0, 0, 0, 0, 0, // last wait
            5, 2, 2, 1, 8, 0, 0, 0, 0, 0, 0, 0, // failure, throttled, refused before, asked for
            9, 0, 0, 0, // cycle
        ];
        let bytes = full().to_bytes();
        assert_eq!(bytes[..History::LEN - 4], stored);
        assert_eq!(bytes[History::LEN - 4..], checksum(&stored).to_le_bytes());
        assert_eq!(checksum(b"foobar"), 0xbf9c_f968, "FNV-1a's published vector");
    }

    #[test]
    fn what_is_not_a_history_says_what_is_wrong() {
        let resummed = |at: usize, byte: u8| {
            let mut bytes = full().to_bytes();
            bytes[at] = byte;
            let sum = checksum(&bytes[..History::LEN - 4]).to_le_bytes();
            bytes[History::LEN - 4..].copy_from_slice(&sum);
            History::from_bytes(&bytes).unwrap_err()
        };
        assert_eq!(History::from_bytes(&[]), Err(Unreadable("length")));
        assert_eq!(History::from_bytes(&full().to_bytes()[1..]), Err(Unreadable("length")));
        assert_eq!(resummed(0, 2), Unreadable("version"));
        assert_eq!(resummed(44, 4), Unreadable("idempotency"));
        assert_eq!(resummed(45, 3), Unreadable("nesting"));
        assert_eq!(resummed(62, 6), Unreadable("verdict"));
        assert_eq!(resummed(63, 4), Unreadable("cause"));
        assert_eq!(resummed(64, 3), Unreadable("sent"));
        let mut torn = full().to_bytes();
        torn[20..].fill(0);
        assert_eq!(History::from_bytes(&torn), Err(Unreadable("checksum")));
    }

    #[test]
    fn attempts_and_losses_are_counted_apart_and_faults_of_our_own_not_at_all() {
        let error = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
        for (verdict, attempts, losses) in [
            (Verdict::Success, 1, 0),
            (Verdict::Permanent, 1, 0),
            (Verdict::TIMED_OUT, 1, 0),
            (error, 1, 0),
            (Verdict::LOST, 0, 1),
            (Verdict::Neutral(Neutral::OwnFault), 0, 0),
            (Verdict::Neutral(Neutral::Cancelled), 0, 0),
        ] {
            let mut history = History::new(1, Timestamp::ZERO, Idempotency::Safe, Deadlines::default());
            history.record(verdict);
            assert_eq!((history.attempts, history.losses), (attempts, losses), "{verdict:?}");
            assert_eq!(history.last_verdict, Some(verdict));
        }
    }
}
