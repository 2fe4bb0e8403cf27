//! gRPC's retry throttling, in the integers of its Java and C cores.
//!
//! Every failed attempt costs a token, every success returns a fraction of one, and retries go only while more
//! than half of the tokens are there. A retry itself is not charged: its failure is.
//!
//! # Source
//!
//! gRPC proposal A6, "gRPC Retry Design", section *Throttling Retry Attempts and Hedged RPCs*: tokens count in
//! thousandths, digits of the ratio beyond the third are ignored, the bucket begins full.

use alloc::format;

use crate::policy::Invalid;

/// gRPC's two numbers, in thousandths of a token.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct GrpcPolicy {
    /// What the bucket holds, at most 1,000 tokens (1,000,000 here).
    pub max_milli: u32,
    /// What a success returns.
    pub ratio_milli: u32,
}

impl Default for GrpcPolicy {
    /// The design document's example: ten tokens, a tenth back.
    fn default() -> Self {
        Self { max_milli: 10_000, ratio_milli: 100 }
    }
}

impl GrpcPolicy {
    /// The two numbers as a service config writes them. Digits of the ratio beyond the third are dropped:
    /// `0.5466` is 546 thousandths, as the design document says. A ratio without a point is that many whole
    /// tokens.
    ///
    /// # Errors
    ///
    /// [`Invalid`] where `max_tokens` is not within 1 to 1,000 or the ratio is not a decimal number above zero.
    pub fn new(max_tokens: u32, token_ratio: &str) -> Result<Self, Invalid> {
        let reason = || format!("{token_ratio:?} is not a decimal number; write one such as 0.1");
        let ratio_milli = milli(token_ratio).ok_or_else(|| Invalid::new("budget.token_ratio", reason()))?;
        let policy = Self { max_milli: max_tokens.saturating_mul(1000), ratio_milli };
        policy.check()?;
        Ok(policy)
    }

    /// Whether a retry may go: strictly more than half.
    pub const fn allows(&self, tokens: u32) -> bool {
        tokens > self.max_milli / 2
    }

    /// The tokens after a failed attempt.
    pub const fn after_failure(&self, tokens: u32) -> u32 {
        tokens.saturating_sub(1000)
    }

    /// The tokens after a successful attempt.
    pub fn after_success(&self, tokens: u32) -> u32 {
        tokens.saturating_add(self.ratio_milli).min(self.max_milli)
    }
}

/// A decimal number in thousandths, further digits dropped.
fn milli(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let thousandths =
        fraction.bytes().chain([b'0'; 3]).take(3).fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'));
    whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn digits_of_the_ratio_beyond_the_third_are_dropped() {
        let ratio =
            |text| GrpcPolicy::new(10, text).map(|policy| policy.ratio_milli).map_err(|error| error.field);
        for (text, expected) in
            [("0.5466", 546), ("0.1", 100), ("0.57", 570), ("1", 1000), ("2.0009", 2000), ("0.001", 1)]
        {
            assert_eq!(ratio(text), Ok(expected), "{text}");
        }
        for text in ["0.0009", "0", "", ".", "1.", ".5", "-0.1", "1e3", "0,1", " 0.1", "5000000"] {
            assert_eq!(ratio(text), Err("budget.token_ratio".to_string()), "{text:?}");
        }
    }

    #[test]
    fn the_bucket_holds_from_three_to_a_thousand_tokens() {
        for (max_tokens, fits) in
            [(0, false), (1, false), (2, false), (3, true), (1000, true), (1001, false), (u32::MAX, false)]
        {
            assert_eq!(GrpcPolicy::new(max_tokens, "0.1").is_ok(), fits, "{max_tokens}");
        }
    }

    #[test]
    fn six_failures_and_eleven_successes_go_as_the_design_document_counts() {
        let policy = GrpcPolicy::default();
        let mut tokens = policy.max_milli;
        let mut seen = [(0, false); 6];
        for step in &mut seen {
            tokens = policy.after_failure(tokens);
            *step = (tokens, policy.allows(tokens));
        }
        let expected = [(9000, true), (8000, true), (7000, true), (6000, true), (5000, false), (4000, false)];
        assert_eq!(seen, expected);
        for _ in 0..11 {
            tokens = policy.after_success(tokens);
        }
        assert_eq!((tokens, policy.allows(tokens)), (5100, true));
    }

    #[test]
    fn tokens_stay_between_nothing_and_full() {
        let policy = GrpcPolicy::default();
        assert_eq!(policy.after_failure(400), 0);
        assert_eq!(policy.after_success(9_950), 10_000);
    }
}
