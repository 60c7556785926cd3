import tracemalloc

import numpy as np
import pytest

from anabranch.results.estimates import Estimate, estimate, mean, median, number
from conftest import ratio_of_medians


def test_median_has_an_interval_around_it() -> None:
    found = median(np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]))
    assert found.value == 6
    assert 1 <= found.low < 6 < found.high <= 11
    assert found.seeds == 11


def test_the_interval_is_the_same_every_time() -> None:
    sample = np.array([3.0, 1, 4, 1, 5, 9, 2, 6])
    assert median(sample) == median(sample)


def test_equal_numbers_and_single_seeds_have_no_width() -> None:
    assert median(np.array([2.0, 2, 2])) == Estimate(2, 2, 2, 3)
    assert median(np.array([7.0])) == Estimate(7, 7, 7, 1)
    assert estimate(ratio_of_medians, np.array([6.0, 6]), np.array([2.0, 2])) == Estimate(
        3, 3, 3, 2
    )


def test_one_constant_sample_does_not_spoil_the_interval() -> None:
    found = estimate(ratio_of_medians, np.array([8.0, 9, 10, 11, 12]), np.array([2.0] * 5))
    assert found.value == 5
    assert 4 <= found.low <= 5 <= found.high <= 6


def test_nearly_constant_samples_fall_back_to_percentiles() -> None:
    found = median(np.array([1.0, 1, 1, 1, 1, 1, 1, 5]))
    assert found.value == 1
    assert np.isfinite([found.low, found.high]).all()


def test_a_large_sample_needs_neither_its_square_in_memory_nor_another_interval() -> None:
    sample = np.random.default_rng(1).normal(10, 1, 10_000)
    tracemalloc.start()
    found = mean(sample)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 400e6
    half_width = 1.96 * sample.std() / 100
    assert found.value - found.low == pytest.approx(half_width, rel=0.1)
    assert found.high - found.value == pytest.approx(half_width, rel=0.1)


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        estimate(lambda a, axis: np.mean(a, axis=axis), np.array([]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.12345, "0.123"),
        (1.2345, "1.23"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
        (-1.2345, "−1.23"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_text_of_an_estimate() -> None:
    assert Estimate(4.0, 3.5, 4.5, 5).text("ms") == "4.00 [3.50, 4.50] ms"
    assert Estimate(4.0, 4.0, 4.0, 1).text() == "4.00"
    assert Estimate(4.0, 3.999, 4.001, 5).text("ms") == "4.00 ms", "no wider than what is shown"


def test_rounding_errors_are_zero() -> None:
    assert [number(each) for each in (9.33e-16, -4.4e-15, 0.0)] == ["0.00"] * 3
    assert number(2.5e-7) == "2.5e-07"
