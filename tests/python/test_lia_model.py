"""LIA's windows alone, without an engine: why goal 1 of RFC 6356 is missed with unequal loss.

Each round trip, a path sends its window, loses each packet with a fixed probability, and halves its
window after a loss. Round-trip times are equal. There are no timeouts, no headers and no queues.
"""

from collections.abc import Sequence

import numpy as np
import pytest

ROUNDS = 100_000


def rate(losses: Sequence[float], *, linked: bool) -> float:
    """Packets per round trip, over all paths."""
    random = np.random.default_rng(6356).random((ROUNDS, len(losses)))
    windows, sent = [10.0] * len(losses), 0.0
    for draws in random:
        total = sum(windows)
        # RFC 6356 §3: α / total with equal round-trip times.
        increase = max(windows) / total**2 if linked else float("inf")
        for n, (loss, draw) in enumerate(zip(losses, draws, strict=True)):
            window = windows[n]
            sent += window
            if draw < 1 - (1 - loss) ** window:
                windows[n] = max(2.0, window / 2)
            else:
                windows[n] += window * min(increase, 1 / window)
    return sent / ROUNDS


@pytest.fixture(scope="module")
def tcp() -> float:
    return rate([0.001], linked=False)


def test_with_unequal_loss_lia_gets_less_than_tcp_over_the_better_path(tcp: float) -> None:
    # nsdi11-lia measures 0.97 of the goodput of one subflow over the better path.
    assert 0.94 < rate([0.001, 0.01], linked=True) / tcp < 0.98


def test_with_equal_loss_lia_gets_more(tcp: float) -> None:
    assert 1.05 < rate([0.001, 0.001], linked=True) / tcp < 1.13
