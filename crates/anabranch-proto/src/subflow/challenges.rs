//! Limit on challenge ACKs. RFC 5961 §7.

use anabranch_wire::{Duration, Instant};

/// RFC 5961 §7: maximum number of challenge ACKs per second and subflow.
const CHALLENGES_PER_SECOND: u8 = 10;

/// The challenge ACKs that were sent lately: the start of a second and their number in it. They are
/// limited per subflow so that nobody can read another connection's state from the rate
/// (CVE-2016-5696).
#[derive(Debug, Default)]
pub(super) struct Challenges(Option<Box<(Instant, u8)>>);

impl Challenges {
    /// Returns `true` if another one may be sent, and counts it.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        let (since, sent) = &mut **self.0.get_or_insert_with(|| Box::new((now, 0)));
        if now.saturating_since(*since) >= Duration::from_secs(1) {
            (*since, *sent) = (now, 0);
        }
        let admits = *sent < CHALLENGES_PER_SECOND;
        *sent += u8::from(admits);
        admits
    }
}
