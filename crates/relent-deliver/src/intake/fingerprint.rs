//! By what a replay is told from a conflict.

use relent::{Idempotency, Timestamp};
use sha2::{Digest, Sha256};

use super::{Submission, When};

/// SHA-256 over everything the sender said but the key, under which it is looked up.
///
/// What was left out is written as such and not as its default, so that a changed default turns no replay into a
/// conflict. Times are written as they were said. Every part has its length before it, so that no two different
/// submissions are written alike; headers are sorted by name, since a JSON object has no order.
pub(super) fn of(submission: &Submission) -> [u8; 32] {
    let mut hash = Hash(Sha256::new());
    hash.put(b"relent submission 1");
    hash.put(submission.method.as_bytes());
    hash.put(submission.url.as_bytes());
    let mut headers: Vec<_> =
        submission.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    hash.count(headers.len());
    for (name, value) in headers {
        hash.put(name.as_bytes());
        hash.put(value.as_bytes());
    }
    hash.put(&submission.body);
    hash.when(submission.not_before);
    hash.when(submission.deadline);
    hash.maybe(submission.policy.as_deref());
    hash.maybe(submission.repeat.map(Idempotency::name));
    hash.count(submission.labels.len());
    for (name, value) in &submission.labels {
        hash.put(name.as_bytes());
        hash.put(value.as_bytes());
    }
    hash.0.finalize().into()
}

struct Hash(Sha256);

impl Hash {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn put(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.update(part);
    }

    fn maybe(&mut self, part: Option<&str>) {
        self.count(usize::from(part.is_some()));
        self.put(part.unwrap_or_default().as_bytes());
    }

    fn when(&mut self, when: Option<When>) {
        let (kind, nanos) = match when {
            None => (0, 0),
            Some(When::At(at)) => (1, at.as_nanos()),
            Some(When::In(length)) => (2, Timestamp::ZERO.after(length).as_nanos()),
        };
        self.count(kind);
        self.0.update(nanos.to_le_bytes());
    }
}
