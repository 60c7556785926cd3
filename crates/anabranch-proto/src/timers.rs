//! Tables of named deadlines.

use std::marker::PhantomData;

use anabranch_wire::Instant;

/// The name of a deadline: an enumeration without gaps.
pub(crate) trait TimerKind: Copy + 'static {
    /// All names, in the order in which timers with the same deadline fire.
    const IN_ORDER: &'static [Self];

    /// Index of the deadline in a table.
    fn index(self) -> usize;
}

/// One deadline for each of `N` timers; [`Instant::FAR_FUTURE`] stands for "not running".
#[derive(Clone, Debug)]
pub(crate) struct TimerTable<T, const N: usize> {
    deadlines: [Instant; N],
    /// The earliest deadline that was set since [`TimerTable::take_earliest_set`].
    earliest_set: Instant,
    timers: PhantomData<T>,
}

impl<T: TimerKind, const N: usize> TimerTable<T, N> {
    pub(crate) fn new() -> Self {
        const { assert!(T::IN_ORDER.len() == N) };
        TimerTable {
            deadlines: [Instant::FAR_FUTURE; N],
            earliest_set: Instant::FAR_FUTURE,
            timers: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, timer: T, at: Instant) {
        self.earliest_set = self.earliest_set.min(at);
        self.deadlines[timer.index()] = at;
    }

    /// Set the timer, unless it already fires before `at`.
    pub(crate) fn set_if_earlier(&mut self, timer: T, at: Instant) {
        let deadline = &mut self.deadlines[timer.index()];
        *deadline = at.min(*deadline);
        self.earliest_set = self.earliest_set.min(at);
    }

    pub(crate) fn stop(&mut self, timer: T) {
        self.deadlines[timer.index()] = Instant::FAR_FUTURE;
    }

    pub(crate) fn stop_all(&mut self) {
        *self = TimerTable::new();
    }

    pub(crate) fn get(&self, timer: T) -> Option<Instant> {
        let at = self.deadlines[timer.index()];
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    pub(crate) fn is_running(&self, timer: T) -> bool {
        self.get(timer).is_some()
    }

    /// The earliest deadline, or [`Instant::FAR_FUTURE`].
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().fold(Instant::FAR_FUTURE, |next, at| next.min(*at))
    }

    /// The earliest deadline that was set since the last call, or [`Instant::FAR_FUTURE`]. Its timer
    /// may have been set again or stopped in the meantime.
    #[inline]
    pub(crate) fn take_earliest_set(&mut self) -> Instant {
        std::mem::replace(&mut self.earliest_set, Instant::FAR_FUTURE)
    }

    /// Stop and return a timer whose deadline is not later than `now`.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<T> {
        let expired = |timer: &&T| self.deadlines[timer.index()] <= now;
        let timer = *T::IN_ORDER.iter().find(expired)?;
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Duration;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Bell {
        Early,
        Late,
    }

    impl TimerKind for Bell {
        const IN_ORDER: &'static [Bell] = &[Bell::Late, Bell::Early];

        fn index(self) -> usize {
            self as usize
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn an_expired_timer_fires_once_and_the_earliest_deadline_is_next() {
        let mut timers = TimerTable::<Bell, 2>::new();
        timers.set(Bell::Early, at(40));
        timers.set(Bell::Late, at(200));
        assert_eq!(timers.next(), at(40));
        assert_eq!(timers.pop_expired(at(39)), None);
        assert_eq!(timers.pop_expired(at(40)), Some(Bell::Early));
        assert_eq!(timers.pop_expired(at(40)), None);
        assert_eq!((timers.next(), timers.is_running(Bell::Early)), (at(200), false));
    }

    #[test]
    fn the_earliest_deadline_that_was_set_is_known_once() {
        let mut timers = TimerTable::<Bell, 2>::new();
        timers.set(Bell::Early, at(40));
        timers.set(Bell::Early, at(60));
        assert_eq!(timers.take_earliest_set(), at(40));
        assert_eq!(timers.take_earliest_set(), Instant::FAR_FUTURE);
        timers.set_if_earlier(Bell::Early, at(50));
        assert_eq!((timers.next(), timers.take_earliest_set()), (at(50), at(50)));
    }

    #[test]
    fn those_with_the_same_deadline_fire_in_their_order() {
        let mut timers = TimerTable::<Bell, 2>::new();
        timers.set(Bell::Early, at(40));
        timers.set(Bell::Late, at(50));
        timers.set_if_earlier(Bell::Late, at(40));
        timers.set_if_earlier(Bell::Early, at(60));
        assert_eq!(timers.pop_expired(at(40)), Some(Bell::Late));
        assert_eq!(timers.pop_expired(at(40)), Some(Bell::Early));
    }
}
