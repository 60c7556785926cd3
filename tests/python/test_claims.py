import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from anabranch.results.bounds import Bound, above, at_least, at_most, below, within
from anabranch.results.claims import (
    Claim,
    Condition,
    Measured,
    Outcome,
    Verdict,
    each,
    judge,
    outcome,
    verdict,
)
from anabranch.results.estimates import Estimate, mean
from anabranch.results.folder import NothingMeasured, Results

NONE = pl.DataFrame()
RESULTS = Results({}, {}, NONE, NONE, NONE, NONE, NONE, NONE)
SINCE = ("2026-11-20", "this project")
AT_LEAST_3 = at_least(3, *SINCE)
MET, VIOLATED, OPEN = Outcome.MET, Outcome.VIOLATED, Outcome.OPEN


def estimate(low: float, value: float, high: float, seeds: int = 5) -> Estimate:
    return Estimate(value, low, high, seeds)


def condition(found: Estimate, bound: Bound = AT_LEAST_3) -> Condition:
    return Condition("x", lambda _: found, bound)


def measured(found: Estimate, bound: Bound = AT_LEAST_3) -> Measured:
    return Measured(condition(found, bound), "x", found)


IS_MET = condition(estimate(4, 5, 6))
IS_VIOLATED = condition(estimate(1, 2, 2.5))
IS_OPEN = condition(estimate(2, 3.5, 4))


@pytest.mark.parametrize(
    ("low", "high", "bound", "expected"),
    [
        (3.1, 3.3, at_least(3, *SINCE), MET),
        (2.7, 2.9, at_least(3, *SINCE), VIOLATED),
        (2.9, 3.1, at_least(3, *SINCE), OPEN),
        (2.9, 3.1, at_most(3, *SINCE), OPEN),
        (2.7, 2.9, at_most(3, *SINCE), MET),
        # One end of the interval is exactly the end of the range.
        (3.0, 3.2, at_least(3, *SINCE), MET),
        (3.0, 3.2, above(3, *SINCE), OPEN),
        (2.8, 3.0, at_most(3, *SINCE), MET),
        (2.8, 3.0, below(3, *SINCE), OPEN),
        (2.8, 3.0, above(3, *SINCE), VIOLATED),
        # The interval has no width.
        (3.0, 3.0, at_least(3, *SINCE), MET),
        (3.0, 3.0, above(3, *SINCE), VIOLATED),
        (3.0, 3.0, below(3, *SINCE), VIOLATED),
        # The range has two ends.
        (3.1, 3.9, within(3, 4, *SINCE), MET),
        (2.9, 3.1, within(3, 4, *SINCE), OPEN),
        (3.9, 4.1, within(3, 4, *SINCE), OPEN),
        (2.9, 4.1, within(3, 4, *SINCE), OPEN),
        (4.1, 4.2, within(3, 4, *SINCE), VIOLATED),
        (2.8, 2.9, within(3, 4, *SINCE), VIOLATED),
    ],
)
def test_outcome_looks_at_the_whole_interval(
    low: float, high: float, bound: Bound, expected: Outcome
) -> None:
    assert outcome(bound, estimate(low, (low + high) / 2, high)) is expected


def expected_verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict by the table of the module's documentation."""
    table = {
        frozenset[Outcome](): Verdict.NOT_APPLICABLE,
        frozenset({MET}): Verdict.REPRODUCED,
        frozenset({OPEN}): Verdict.OPEN,
        frozenset({VIOLATED}): Verdict.NOT_REPRODUCED,
        frozenset({MET, OPEN}): Verdict.OPEN,
        frozenset({MET, VIOLATED}): Verdict.PARTLY,
        frozenset({OPEN, VIOLATED}): Verdict.NOT_REPRODUCED,
        frozenset({MET, OPEN, VIOLATED}): Verdict.PARTLY,
    }
    return table[frozenset(outcomes)]


@pytest.mark.parametrize("count", range(5))
def test_verdict_of_every_combination_of_outcomes(count: int) -> None:
    for outcomes in itertools.product(Outcome, repeat=count):
        assert verdict(outcomes) is expected_verdict(outcomes), outcomes


@pytest.mark.parametrize(
    ("found", "bound", "more"),
    [
        # The arm towards the end is 1.5, and the end is 0.5 away: 3² = 9 times the 5 seeds.
        (estimate(2, 3.5, 4), at_least(3, *SINCE), 40),
        # The value is below the end: the upper arm, 0.6, has to shrink to 0.3.
        (estimate(2.5, 2.7, 3.3), at_least(3, *SINCE), 15),
        # Both ends lie inside the interval; the nearer one needs (1 / 0.5)² = 4 times the seeds.
        (estimate(2.5, 3.5, 4.5), within(3, 4, *SINCE), 15),
        (estimate(2.0, 3.0, 4.0), at_least(3, *SINCE), None),
        (estimate(float("-inf"), 3.5, 4.0), at_least(3, *SINCE), None),
        # At least one more seed, if the interval only touches the end.
        (estimate(3.0, 3.5, 4.0), above(3, *SINCE), 1),
    ],
)
def test_more_seeds_would_decide_what_is_open(
    found: Estimate, bound: Bound, more: int | None
) -> None:
    assert measured(found, bound).outcome is OPEN
    assert measured(found, bound).more_samples == more


def test_an_open_condition_says_how_many_more_would_decide() -> None:
    words = measured(estimate(2, 3.5, 4)).text()
    assert words == "x = 3.50 [2.00, 4.00] (≥ 3: open; about 40 more seeds would decide)"
    settings = dataclasses.replace(estimate(2, 3.5, 4), sample="settings")
    assert "about 40 more settings" in measured(settings).text()
    assert "no number of seeds would decide" in measured(estimate(2, 3, 4)).text()


def test_the_intervals_of_many_conditions_hold_together() -> None:
    # The normal quantile is 1.960 for one interval, and 2.807 for one of ten.
    sample = np.random.default_rng(1).normal(5, 1, 400)
    one = Condition("x", lambda _: mean(sample), AT_LEAST_3)
    alone, among_ten = (
        judge(claim([one] * count), RESULTS).conditions[0].estimate for count in (1, 10)
    )
    widths = [found.high - found.low for found in (alone, among_ten)]
    assert widths[1] / widths[0] == pytest.approx(2.807 / 1.960, rel=0.08)
    assert alone == mean(sample)


def claim(conditions: Sequence[Condition], why_not: str | None = None) -> Claim:
    return Claim("c", "It is so.", "somebody", tuple(conditions), lambda _: why_not)


def test_a_failed_precondition_keeps_the_claim_from_being_judged() -> None:
    judgement = judge(claim([IS_VIOLATED], "3G carried nothing"), RESULTS)
    assert judgement.verdict is Verdict.NOT_APPLICABLE
    assert judgement.measured == "3G carried nothing"
    assert judgement.as_json()["conditions"] == []


def nothing(_: Results) -> Estimate:
    raise NothingMeasured("no block was delivered")


def test_a_claim_about_nothing_is_not_applicable() -> None:
    judgement = judge(claim([Condition("x", nothing, AT_LEAST_3)]), RESULTS)
    assert (judgement.verdict, judgement.reason) == (
        Verdict.NOT_APPLICABLE,
        "no block was delivered",
    )


def test_json_has_what_readers_need() -> None:
    found = judge(claim([IS_MET]), RESULTS).as_json()
    assert {"id", "source", "check", "measured", "verdict"} <= found.keys()
    assert found["verdict"] == "reproduced"
    assert found["measured"] == "x = 5.00 [4.00, 6.00] (≥ 3: met)"
    (only,) = found["conditions"]
    assert (only["interval"], only["band"], only["seeds"]) == ([4, 6], None, 5)
    assert only["bound"] == {
        "low": 3, "high": None, "strict": False, "unit": "", "stated": [], "since": "2026-11-20",
        "reason": "this project",
    }  # fmt: skip


def test_of_many_conditions_the_violated_and_the_least_favourable_are_shown() -> None:
    exact = [condition(estimate(value, value, value)) for value in (3, 4, 5, 6, 2)]
    text = judge(claim(exact), RESULTS).measured
    assert text == (
        "1 of 5 violated: x = 2.00 (≥ 3: violated); "
        "4 of 5 met: least favourable: x = 3.00 (≥ 3: met)"
    )


def test_margin_knows_the_direction() -> None:
    assert measured(estimate(1, 2, 3), at_most(4, *SINCE)).margin == 0.5
    assert measured(estimate(1, 2, 3), at_least(4, *SINCE)).margin == -0.5
    assert measured(estimate(1, 2, 3), above(0, *SINCE)).margin == 2
    assert measured(estimate(1, 2, 3), within(1, 4, *SINCE)).margin == 1


def reading(*values: float) -> tuple[Condition, dict[str, Results]]:
    """A condition whose value is 5 in RESULTS, and these values in variants."""
    variants = {f"variant {n}": dataclasses.replace(RESULTS) for n in range(len(values))}
    found = {id(RESULTS): 5.0} | {
        id(variant): value for variant, value in zip(variants.values(), values, strict=True)
    }

    def measure(results: Results) -> Estimate:
        value = found[id(results)]
        return estimate(value, value, value)

    return Condition("x", measure, AT_LEAST_3), variants


def test_a_band_is_the_range_over_all_variants() -> None:
    condition, variants = reading(4.0, 6.0)
    judgement = judge(claim([condition]), RESULTS, variants)
    assert judgement.measured == "x = 5.00, band 4.00 to 6.00 (≥ 3: met)"
    assert judgement.as_json()["conditions"][0]["band"] == [4, 6]
    assert judgement.sensitivity == ""
    assert judge(claim([condition]), RESULTS).measured == "x = 5.00 (≥ 3: met)"


def test_a_variant_may_overturn_a_verdict() -> None:
    condition, variants = reading(2.5, 6.0)
    judgement = judge(claim([condition]), RESULTS, variants)
    assert judgement.verdict is Verdict.REPRODUCED
    assert judgement.sensitivity == "variant 0: not reproduced"
    assert judgement.as_json()["overturned_by"] == {"variant 0": "not_reproduced"}


def test_no_variant_overturns_what_is_open() -> None:
    condition, variants = reading(2.5, 6.0)
    judgement = judge(claim([condition, IS_OPEN]), RESULTS, variants)
    assert (judgement.verdict, judgement.overturned_by) == (Verdict.OPEN, ())


def test_what_the_values_themselves_give_is_not_overturned() -> None:
    # The interval of the second condition leaves open what its value, 3.5, meets.
    condition, variants = reading(2.5, 6.0)
    below_it = dataclasses.replace(condition, bound=at_most(4, *SINCE))
    judgement = judge(claim([below_it, IS_OPEN]), RESULTS, variants)
    assert judgement.verdict is Verdict.NOT_REPRODUCED
    assert judgement.sensitivity == "variant 0: reproduced"


def test_a_variant_in_which_nothing_was_measured_has_no_verdict() -> None:
    condition, variants = reading(4.0)

    def measure(results: Results) -> Estimate:
        return condition.measure(results) if results is RESULTS else nothing(results)

    judgement = judge(claim([Condition("x", measure, AT_LEAST_3)]), RESULTS, variants)
    assert judgement.sensitivity == "variant 0: not applicable"
    assert judgement.conditions[0].band is None


def never(_: Results) -> Estimate:
    raise AssertionError("nothing is measured for a text")


def check(*conditions: Condition, where: str = "") -> str:
    return Claim("c", "s", "o", conditions, where=where).check


def test_the_check_lists_conditions_with_their_units() -> None:
    faster = Condition("goodput", never, at_least(7.4, *SINCE, unit="Mbit/s"))
    sooner = Condition("delay, a / b", never, below(1.0, *SINCE))
    assert check(faster, sooner) == "goodput ≥ 7.4 Mbit/s; delay, a / b < 1"


def test_the_check_names_the_setting_and_what_a_threshold_comes_from() -> None:
    bound = at_least(180, *SINCE, unit="Mbit/s", basis="90 % of the sum")
    full = Condition("goodput", never, bound)
    assert check(full, where="in a LAN") == "in a LAN: goodput ≥ 180 Mbit/s, 90 % of the sum"


def test_the_check_has_both_ends_of_a_range() -> None:
    assert check(Condition("share", never, within(0.4, 0.6, *SINCE))) == "share 0.4 to 0.6"


def test_the_check_has_one_line_for_a_group_and_says_how_many_conditions_it_has() -> None:
    bound = at_least(0.9, *SINCE)
    buffers = (Condition(f"share at {kb} kB", never, bound) for kb in (100, 200, 400))
    assert check(*each("share at every buffer", buffers)) == (
        "share at every buffer ≥ 0.9 (each of 3)"
    )


def test_a_report_may_word_a_quantity_with_measured_numbers() -> None:
    stated = dataclasses.replace(IS_MET, describe=lambda _: "x (at 200 kB)")
    text = judge(claim([stated]), RESULTS).measured
    assert text == "x (at 200 kB) = 5.00 [4.00, 6.00] (≥ 3: met)"
    assert check(stated) == "x ≥ 3"
