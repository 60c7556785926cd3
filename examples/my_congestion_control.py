"""Your own congestion control: NewReno (RFC 5681, RFC 6582), like the built-in `new_reno`.

.venv/bin/anabranch run examples/wifi_3g.toml \
    --congestion-control examples/my_congestion_control.py:NewReno
"""

from anabranch.policy import (
    UNLIMITED,
    AckSample,
    CongestionControl,
    CongestionEvent,
    ExternalReduction,
    Idle,
    MssChanged,
    Recovery,
    Start,
    SubflowView,
    SynLost,
    Timeout,
    Underused,
    Undo,
)


class NewReno(CongestionControl):
    """Grows by one segment per window, halves on loss, and keeps the window in whole segments."""

    def __init__(self, start: Start) -> None:
        self.mss = start.mss
        self.initial_window = start.initial_window
        self.cwnd = start.initial_window
        self.ssthresh = UNLIMITED
        self.credit = 0.0  # growth of less than a segment, in bytes
        self.before: tuple[int, int] | None = None  # cwnd and ssthresh before the last reduction

    def on_ack(self, sample: AckSample, me: int, peers: tuple[SubflowView, ...]) -> None:
        """Slow start up to the threshold, then congestion avoidance with the remaining bytes."""
        if not sample.cwnd_limited:
            return
        in_slow_start = min(sample.acked, max(self.ssthresh - self.cwnd, 0))
        self.cwnd += in_slow_start
        self.credit += (sample.acked - in_slow_start) * self.mss / self.cwnd
        while self.credit >= self.mss:
            self.credit -= self.mss
            self.cwnd += self.mss

    def on_congestion_event(
        self, event: CongestionEvent, me: int, peers: tuple[SubflowView, ...]
    ) -> None:
        """React to losses and idle times. A loss halves the data in flight, RFC 5681 §3.1."""
        match event:
            case SynLost():
                self.cwnd = self.mss
            case Recovery(flight_size=flight_size):
                self.reduce(flight_size)
                self.cwnd = self.ssthresh
            case Timeout(flight_size=flight_size, first=first):
                if first:
                    self.reduce(flight_size)
                self.cwnd = self.mss
                self.credit = 0.0
            case Undo():
                if self.before is not None:
                    cwnd, self.ssthresh = self.before
                    self.cwnd = max(self.cwnd, cwnd)
                    self.before = None
            case Idle(idle_ns=idle_ns, rto_ns=rto_ns):
                # Halve for each RTO of idle time, down to the initial window. RFC 2861 §3.2.
                restart = min(self.initial_window, self.cwnd)
                self.ssthresh = max(self.ssthresh, self.cwnd // 4 * 3)
                self.cwnd = max(self.cwnd >> min(idle_ns // max(rto_ns, 1), 63), restart)
            case Underused(used=used):
                # Go halfway to the used window, or to the initial window. RFC 2861 §3.2.
                used = max(used, self.initial_window)
                if used < self.cwnd:
                    self.ssthresh = max(self.ssthresh, self.cwnd // 4 * 3)
                    self.cwnd = self.whole_segments((self.cwnd + used) // 2)
            case MssChanged(mss=mss):
                self.initial_window = self.initial_window // self.mss * mss
                self.cwnd = max(self.cwnd // self.mss, 1) * mss
                self.mss = mss

    def on_external_reduction(self, reduction: ExternalReduction) -> None:
        """Halve the window, and also the threshold unless slow start shall continue."""
        in_slow_start = self.cwnd < self.ssthresh
        self.cwnd = max(self.whole_segments(self.cwnd // 2), self.mss)
        if reduction == "halve_both":
            self.ssthresh = max(self.cwnd, 2 * self.mss)
        elif not in_slow_start:
            self.ssthresh = max(self.whole_segments(self.ssthresh // 2), 2 * self.mss)
        self.credit = 0.0

    def reduce(self, flight_size: int) -> None:
        """Set the threshold to half of the data in flight."""
        self.before = (self.cwnd, self.ssthresh)
        self.ssthresh = max(self.whole_segments(flight_size // 2), 2 * self.mss)
        self.credit = 0.0

    def whole_segments(self, byte_count: int) -> int:
        """Round bytes down to whole segments."""
        return byte_count - byte_count % self.mss
