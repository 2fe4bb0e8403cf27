//! gRPC's retry throttling, in the integers of its Java and C cores.
//!
//! Every failed attempt costs a token, every success returns a fraction of one, and retries go only while more
//! than half of the tokens are there. A retry itself is not charged: its failure is.
//!
//! # Source
//!
//! gRPC proposal A6, "gRPC Retry Design", section *Throttling Retry Attempts and Hedged RPCs*: tokens count in
//! thousandths, digits of the ratio beyond the third are ignored, the bucket begins full.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_failures_and_eleven_successes_go_as_the_design_document_counts() {
        let policy = GrpcPolicy::default();
        let mut tokens = policy.max_milli;
        let mut seen = [(0, false); 6];
        for step in &mut seen {
            tokens = policy.after_failure(tokens);
            *step = (tokens, policy.allows(tokens));
        }
        let expected =
            [(9000, true), (8000, true), (7000, true), (6000, true), (5000, false), (4000, false)];
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
