import dataclasses
from collections.abc import Sequence

import polars as pl
import pytest

from anabranch.results.claims import (
    Claim,
    Condition,
    Measured,
    Outcome,
    Verdict,
    between,
    each,
    judge,
    verdict,
)
from anabranch.results.estimates import Estimate
from anabranch.results.folder import NothingMeasured, Results

NONE = pl.DataFrame()
RESULTS = Results({}, {}, NONE, NONE, NONE, NONE, NONE, NONE)


def known(low: float, value: float, high: float, sign: str, threshold: float) -> Condition:
    return Condition("x", lambda _: Estimate(value, low, high, 5), sign, threshold)


def condition(low: float, value: float, high: float, sign: str, threshold: float) -> Measured:
    return known(low, value, high, sign, threshold).judge(RESULTS)


@pytest.mark.parametrize(
    ("low", "high", "sign", "outcome"),
    [
        (3.1, 3.3, "≥", Outcome.MET),
        (2.7, 2.9, "≥", Outcome.VIOLATED),
        (2.9, 3.1, "≥", Outcome.OPEN),
        (2.9, 3.1, "≤", Outcome.OPEN),
        (2.7, 2.9, "≤", Outcome.MET),
        # One end of the interval is exactly the threshold.
        (3.0, 3.2, "≥", Outcome.MET),
        (3.0, 3.2, ">", Outcome.OPEN),
        (2.8, 3.0, "≤", Outcome.MET),
        (2.8, 3.0, "<", Outcome.OPEN),
        # The interval has no width.
        (3.0, 3.0, "≥", Outcome.MET),
        (3.0, 3.0, ">", Outcome.VIOLATED),
        (3.0, 3.0, "<", Outcome.VIOLATED),
    ],
)
def test_outcome_looks_at_the_whole_interval(
    low: float, high: float, sign: str, outcome: Outcome
) -> None:
    assert condition(low, (low + high) / 2, high, sign, 3.0).outcome is outcome


MET = condition(4, 5, 6, "≥", 3)
VIOLATED = condition(1, 2, 2.5, "≥", 3)
OPEN = condition(2, 3.5, 4, "≥", 3)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([MET], Verdict.REPRODUCED),
        ([MET, MET], Verdict.REPRODUCED),
        ([VIOLATED], Verdict.NOT_REPRODUCED),
        ([VIOLATED, VIOLATED], Verdict.NOT_REPRODUCED),
        ([OPEN], Verdict.PARTLY),
        ([MET, VIOLATED], Verdict.PARTLY),
        ([MET, OPEN], Verdict.PARTLY),
        ([VIOLATED, OPEN], Verdict.PARTLY),
        ([], Verdict.NOT_APPLICABLE),
    ],
)
def test_verdict(conditions: Sequence[Measured], expected: Verdict) -> None:
    assert verdict(conditions) is expected


def claim(conditions: Sequence[Measured], why_not: str | None = None) -> Claim:
    stated = tuple(each.condition for each in conditions)
    return Claim("c", "It is so.", "somebody", stated, lambda _: why_not)


def test_a_failed_precondition_keeps_the_claim_from_being_judged() -> None:
    judgement = judge(claim([VIOLATED], "3G carried nothing"), RESULTS)
    assert judgement.verdict is Verdict.NOT_APPLICABLE
    assert judgement.measured == "3G carried nothing"
    assert judgement.as_json()["conditions"] == []


def test_a_claim_about_nothing_is_not_applicable() -> None:
    def measure(_: Results) -> Estimate:
        raise NothingMeasured("no block was delivered")

    judgement = judge(Claim("c", "s", "o", (Condition("x", measure, "≥", 3),)), RESULTS)
    assert (judgement.verdict, judgement.reason) == (
        Verdict.NOT_APPLICABLE,
        "no block was delivered",
    )


def test_json_has_what_readers_need() -> None:
    found = judge(claim([MET]), RESULTS).as_json()
    assert {"id", "source", "check", "measured", "verdict"} <= found.keys()
    assert found["verdict"] == "reproduced"
    assert found["measured"] == "x = 5.00 [4.00, 6.00] (≥ 3: met)"
    assert found["conditions"][0]["ci95"] == [4, 6]


def test_of_many_conditions_the_least_favourable_is_shown() -> None:
    text = judge(claim([MET] * 4 + [VIOLATED]), RESULTS).measured
    assert text == "4 of 5 met; least favourable: x = 2.00 [1.00, 2.50] (≥ 3: violated)"


def test_margin_knows_the_direction() -> None:
    assert condition(1, 2, 3, "≤", 4).margin == 0.5
    assert condition(1, 2, 3, "≥", 4).margin == -0.5
    assert condition(1, 2, 3, ">", 0).margin == 2


def test_what_is_open_is_less_favourable_than_what_is_met_though_its_value_be_better() -> None:
    barely_met = condition(3.05, 3.1, 3.2, "≥", 3.0)
    wide = condition(2.0, 9.0, 20.0, "≥", 3.0)
    text = judge(claim([barely_met] * 4 + [wide]), RESULTS).measured
    assert text.startswith("4 of 5 met; least favourable: x = 9.00 [2.00, 20.00]")


def never(_: Results) -> Estimate:
    raise AssertionError("nothing is measured for a text")


def check(*conditions: Condition, where: str = "") -> str:
    return Claim("c", "s", "o", conditions, where=where).check


def test_the_check_lists_conditions_with_their_units() -> None:
    faster = Condition("goodput", never, "≥", 7.4, "Mbit/s")
    sooner = Condition("delay, a / b", never, "<", 1.0)
    assert check(faster, sooner) == "goodput ≥ 7.4 Mbit/s; delay, a / b < 1"


def test_the_check_names_the_setting_and_what_a_threshold_comes_from() -> None:
    full = Condition("goodput", never, "≥", 180, "Mbit/s", basis="90 % of the sum")
    assert check(full, where="in a LAN") == "in a LAN: goodput ≥ 180 Mbit/s, 90 % of the sum"


def test_the_check_has_one_line_for_both_ends_of_a_range() -> None:
    assert check(*between("share", never, 0.4, 0.6)) == "share ≥ 0.4 and ≤ 0.6"


def test_the_check_has_one_line_for_a_group_and_says_how_many_conditions_it_has() -> None:
    buffers = (Condition(f"share at {kb} kB", never, "≥", 0.9) for kb in (100, 200, 400))
    assert check(*each("share at every buffer", buffers)) == (
        "share at every buffer ≥ 0.9 (each of 3)"
    )
    ranges = (each for kb in (100, 200) for each in between(f"at {kb} kB", never, 0.4, 0.6))
    assert check(*each("share", ranges)) == "share ≥ 0.4 and ≤ 0.6 (each of 2)"


def test_conditions_that_do_not_apply_are_not_judged() -> None:
    met, violated = (each.condition for each in (MET, VIOLATED))
    left_out = dataclasses.replace(violated, applies=lambda _: False)
    judgement = judge(Claim("c", "s", "o", (met, left_out)), RESULTS)
    assert [each.condition for each in judgement.conditions] == [met]
    assert judgement.verdict is Verdict.REPRODUCED


def test_a_report_may_word_a_quantity_with_measured_numbers() -> None:
    stated = dataclasses.replace(MET.condition, worded=lambda _: "x (at 200 kB)")
    assert stated.judge(RESULTS).text() == "x (at 200 kB) = 5.00 [4.00, 6.00] (≥ 3: met)"
    assert check(stated) == "x ≥ 3"
