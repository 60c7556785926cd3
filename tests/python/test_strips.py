import re
from collections.abc import Mapping

from anabranch.reports.strips import strip
from anabranch.results.bounds import Bound, at_least, within
from anabranch.results.claims import Condition, Measured
from anabranch.results.estimates import Estimate

SINCE = ("2026-11-24", "this project")


def places(
    bound: Bound, low: float, high: float, band: tuple[float, float]
) -> Mapping[str, tuple[float, float]]:
    """The left and right ends of the bars of a strip, by their names."""
    found = Estimate((low + high) / 2, low, high, 5)
    measured = Measured(Condition("x", lambda _: found, bound), "x", found, band)
    bars = re.findall(r'class="(\w+)" x="([\d.-]+)" y="[\d.]+" width="([\d.]+)"', strip(measured))
    return {name: (float(x), float(x) + float(width)) for name, x, width in bars}


def test_a_bar_of_a_strip_lies_inside_another_if_its_values_do() -> None:
    bars = places(within(0.0, 10.0, *SINCE), 4, 5, (3, 6))
    assert bars["range"][0] < bars["band"][0] < bars["interval"][0]
    assert bars["interval"][1] < bars["band"][1] < bars["range"][1]


def test_a_range_without_an_end_reaches_the_edge() -> None:
    left, right = places(at_least(2, *SINCE), 4, 5, (3, 6))["range"]
    assert 0 < left < right == 240


def test_what_is_not_finite_has_no_strip() -> None:
    assert places(at_least(2, *SINCE), float("-inf"), 5, (3, 6)) == {}
