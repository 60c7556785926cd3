//! Largest value of a window of time. Kathleen Nichols' algorithm; Linux: `lib/win_minmax.c`.

/// A running maximum over the last values: the largest one, and the largest ones after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMaximum {
    /// Time and value.
    best: [(u64, u64); 3],
}

impl WindowedMaximum {
    /// The largest value.
    pub(super) fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Add a value at `time`. Values older than `window` no longer count.
    pub(super) fn add(&mut self, window: u64, time: u64, value: u64) {
        let new = (time, value);
        if value >= self.best[0].1 || time - self.best[2].0 > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1..].fill(new);
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        let age = time - self.best[0].0;
        if age > window {
            // Twice, as the second may be too old as well.
            for _ in 0..2 {
                if time - self.best[0].0 > window {
                    self.best = [self.best[1], self.best[2], new];
                }
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            self.best[1..].fill(new);
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_of_a_window_is_never_below_that_of_its_last_values() {
        // Against a plain computation. The algorithm keeps three values, so it may still hold a value
        // that has just left the window, but never misses the newest.
        let values = [5, 9, 3, 4, 8, 2, 1, 7, 7, 6, 1, 1, 1, 1, 1, 1, 3, 1];
        let mut maximum = WindowedMaximum::default();
        for (time, value) in values.into_iter().enumerate() {
            maximum.add(4, time as u64, value);
            let window = &values[time.saturating_sub(4)..=time];
            let exact = *window.iter().max().expect("not empty");
            assert!(maximum.get() <= exact && maximum.get() >= value, "at {time}");
        }
        assert_eq!(maximum.get(), 3);
    }

    #[test]
    fn a_value_expires_with_the_window() {
        let mut maximum = WindowedMaximum::default();
        maximum.add(10, 0, 100);
        for time in 1..=10 {
            maximum.add(10, time, 50);
            assert_eq!(maximum.get(), 100);
        }
        maximum.add(10, 11, 50);
        assert_eq!(maximum.get(), 50);
    }
}
