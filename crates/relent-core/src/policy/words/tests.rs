//! Two presets in words.

use super::*;
use crate::preset::Preset;

#[test]
fn a_policy_tells_what_its_numbers_come_to() {
    assert_eq!(
        Policy::live().in_words(),
        "\
ends      at the latest 5s after it began; no attempt begins with 100ms or less to go
attempts  at most 5, each given up after 2s
waits     up to 200ms, 400ms, 800ms, 1.6s (full jitter)
hints     obeyed, with jitter above, up to 1m; a longer one ends the call
repeats   only what surely was not carried out, unless a call says that it is safe or keyed
budget    loan: a failed retry costs 1, or 5 if throttled; one that succeeds is paid back; a first success earns 0.1
breaker   none
given up  its caller is told
"
    );
    assert_eq!(
        Preset::MicrosoftStandard.policy().in_words(),
        "\
ends      at the latest 30s after it began
lets in   1000 at once, and refuses the rest
attempts  at most 4, each given up after 10s
waits     up to 2.756s, 2.922s, 5.732s (Polly's second jitter)
hints     obeyed exactly, in place of the wait, up to 1d; a longer one is cut
repeats   only what surely was not carried out, unless a call says that it is safe or keyed
budget    none
breaker   opens where 10 % fail of at least 100 in 30s, for 5s; then 1 probe
given up  its caller is told
"
    );
}
