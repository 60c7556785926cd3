//! The data that a subflow has carried, as the data level sees it.

/// Data that was sent on a subflow.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The most recent run of contiguous data.
    run: DataRun,
    /// The end of the last short segment of new data, as a subflow offset.
    short_end: u64,
    /// Bytes that another subflow had carried before.
    reinjected: u64,
}

/// A run of data on a subflow with a constant difference between data and subflow offsets.
#[derive(Clone, Copy, Debug)]
struct DataRun {
    shift: u64,
    /// Data offsets of the first byte, and of the byte after the last.
    from: u64,
    end: u64,
}

impl Default for DataRun {
    fn default() -> Self {
        DataRun { shift: 0, from: 1, end: 1 }
    }
}

impl Carried {
    /// `len` bytes of data from `data` on are sent at subflow offset `subflow`, after all earlier
    /// data.
    #[inline]
    pub(super) fn on_sent(&mut self, subflow: u64, data: u64, len: u64) {
        let shift = data.wrapping_sub(subflow);
        if shift != self.run.shift {
            self.run = DataRun { shift, from: data, end: data };
        }
        self.run.end = data + len;
    }

    /// Another subflow had carried these bytes before.
    pub(super) fn on_reinjected(&mut self, bytes: u64) {
        self.reinjected += bytes;
    }

    pub(super) fn reinjected(&self) -> u64 {
        self.reinjected
    }

    /// A short segment of new data ends at subflow offset `end`.
    #[inline]
    pub(super) fn on_short(&mut self, end: u64) {
        self.short_end = end;
    }

    /// Returns `true` if a short segment is unacknowledged on the subflow, which has acknowledged up
    /// to `una`.
    #[inline]
    pub(super) fn awaits_short(&self, una: u64) -> bool {
        una < self.short_end
    }

    /// The difference between data and subflow offsets, if all data from `una` to `end` lies on the
    /// subflow in order and without repetitions.
    pub(super) fn shift(&self, una: u64, end: u64) -> Option<u64> {
        let DataRun { shift, from, end: run_end } = self.run;
        (run_end == end && from <= una).then_some(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_anew_where_data_is_repeated_or_left_out() {
        let mut carried = Carried::default();
        let mut run = |subflow, data, len| {
            carried.on_sent(subflow, data, len);
            (carried.run.from, carried.run.end)
        };
        run(1, 1, 1000);
        assert_eq!(run(1001, 1001, 500), (1, 1501));
        assert_eq!(run(1501, 1, 1000), (1, 1001));
        assert_eq!(run(2501, 1001, 100), (1, 1101));
        assert_eq!(run(2601, 5001, 100), (5001, 5101));
    }
}
