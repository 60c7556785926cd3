"""Published claims, judged against measurements.

One or more conditions check a claim. A condition names a quantity, the function that measures it,
and the range in which it has to lie (`bounds`). The text of a claim's check is made from its
conditions, so both are fixed before anything runs.

The confidence intervals of a claim's conditions hold together with 95 % confidence
(`Estimate.among`), so a claim with many conditions is not judged by the luckiest or the unluckiest
of them. A condition is *met* when its whole interval lies in its range, *violated* when no part of
the interval does, and *open* in between. The verdict follows from the conditions:

* reproduced: every condition is met;
* partly: some conditions are met and some are violated;
* open: no condition is violated, and at least one is open;
* not reproduced: no condition is met, and at least one is violated;
* not applicable: the claim's precondition failed, for example because a path carried nothing.

A confidence interval covers the noise of seeds only. Where results also contain runs with slightly
different parameters (`variants`), each condition has a *band*: the range of its value over all of
them. A variant *overturns* a verdict if its values alone, taken as exact, give another verdict, and
the values of the results, taken as exact, do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from anabranch.results.bounds import Bound, words_for_more
from anabranch.results.estimates import Estimate, number
from anabranch.results.folder import NothingMeasured, Results


class Verdict(StrEnum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    OPEN = "open"
    NOT_REPRODUCED = "not_reproduced"
    NOT_APPLICABLE = "not_applicable"

    @property
    def words(self) -> str:
        """The verdict as text."""
        return self.value.replace("_", " ")


class Outcome(StrEnum):
    """The outcome of one condition."""

    MET = "met"
    VIOLATED = "violated"
    OPEN = "open"


Measure = Callable[[Results], Estimate]
"""Measures a quantity."""

Variants = Mapping[str, Results]
"""Results of runs with slightly different parameters, by a description of the difference."""


@dataclass(frozen=True)
class Condition:
    """A quantity, and the range in which it has to lie, stated before anything runs."""

    quantity: str
    measure: Measure
    bound: Bound
    group: str = ""
    """The description that a check gives to all conditions of the same group; see `each`."""
    describe: Callable[[Results], str] | None = None
    """The quantity in words that include measured numbers, for reports."""


def each(group: str, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Conditions with the same bounds, described once in the text of a check."""
    return tuple(replace(condition, group=group) for condition in conditions)


def outcome(bound: Bound, estimate: Estimate) -> Outcome:
    """The outcome of a condition for the whole confidence interval of its quantity."""
    if bound.is_below(estimate.high) or bound.is_above(estimate.low):
        return Outcome.VIOLATED
    if bound.is_below(estimate.low) or bound.is_above(estimate.high):
        return Outcome.OPEN
    return Outcome.MET


@dataclass(frozen=True)
class Measured:
    """A condition with the estimate of its quantity."""

    condition: Condition
    quantity: str
    estimate: Estimate
    band: tuple[float, float] | None = None
    """The smallest and the largest value over all variants; `None` without variants."""

    @property
    def outcome(self) -> Outcome:
        """The outcome for the whole confidence interval."""
        return outcome(self.condition.bound, self.estimate)

    @property
    def more_samples(self) -> int | None:
        """Number of further seeds that would decide an open condition; see `Bound.more_samples`."""
        return self.condition.bound.more_samples(self.estimate)

    @property
    def margin(self) -> float:
        """The distance of the value from the nearer end, relative to the end; positive inside."""
        bound = self.condition.bound
        distance = bound.distance(self.estimate.value)
        return -distance / (min(abs(end) for end in bound.ends) or 1.0)

    def text(self) -> str:
        """The condition with its numbers, such as ``"a / b = 4.1 [4.0, 4.2] (≥ 3: met)"``."""
        bound = self.condition.bound
        measured = f"{self.quantity} = {self.estimate.text(bound.unit)}"
        if self.band is not None:
            measured += f", band {number(self.band[0])} to {number(self.band[1])}"
        if bound.stated:
            measured += f", source {bound.stated_words}"
        words = f"{bound.inequality}: {self.outcome}"
        if self.outcome is Outcome.OPEN:
            words += f"; {words_for_more(self.more_samples, self.estimate.sample)}"
        return f"{measured} ({words})"

    def as_json(self) -> dict[str, Any]:
        """The condition as an object of ``claims.json``."""
        return {
            "quantity": self.quantity,
            "value": self.estimate.value,
            "interval": [self.estimate.low, self.estimate.high],
            "band": None if self.band is None else list(self.band),
            self.estimate.sample: self.estimate.seeds,
            "bound": self.condition.bound.as_json(),
            "outcome": self.outcome.value,
            "more_to_decide": self.more_samples if self.outcome is Outcome.OPEN else None,
        }


@dataclass(frozen=True)
class Claim:
    """A statement of a publication, and the conditions that check it."""

    id: str
    statement: str
    """The source's statement, paraphrased."""
    source: str
    conditions: tuple[Condition, ...]
    precondition: Callable[[Results], str | None] | None = None
    """Returns why the claim does not apply to these results, or `None` if it applies."""
    where: str = ""
    """The setting in which all conditions are judged, if their quantities do not name it."""

    @property
    def check(self) -> str:
        """The conditions in words, with one description for each group."""
        named: dict[str, list[Condition]] = {}
        for condition in self.conditions:
            named.setdefault(condition.group or condition.quantity, []).append(condition)
        text = "; ".join(_check(name, conditions) for name, conditions in named.items())
        return f"{self.where}: {text}" if self.where else text


def _check(name: str, conditions: Sequence[Condition]) -> str:
    """Conditions that share a name, such as ``"goodput at every buffer ≥ 3 (each of 4)"``."""
    count = len({condition.quantity for condition in conditions})
    return f"{name} {conditions[0].bound.text}{f' (each of {count})' if count > 1 else ''}"


@dataclass(frozen=True)
class Judgement:
    """A claim with its measurements and verdict."""

    claim: Claim
    conditions: tuple[Measured, ...]
    verdict: Verdict
    reason: str = ""
    """The reason if the claim is not applicable."""
    overturned_by: tuple[tuple[str, Verdict], ...] = ()
    """The variants whose values give another verdict, with this verdict."""
    systems: Mapping[str, Judgement | None] = field(default_factory=dict)
    """The claim on all systems, the judged one first.

    `None` on a system that lacks a mechanism which the claim needs.
    """
    conclusion: str = ""
    """The verdicts on all systems in words."""

    @property
    def measured(self) -> str:
        """The numbers in words: of all conditions, or of the decisive ones of more than four."""
        if not self.conditions:
            return self.reason
        if len(self.conditions) <= _MOST_LISTED:
            return "; ".join(condition.text() for condition in self.conditions)
        return "; ".join(filter(None, map(self._of_outcome, _BY_GRAVITY)))

    def _of_outcome(self, outcome: Outcome) -> str:
        """The conditions with an outcome: how many, and the numbers of the least favourable."""
        chosen = [each for each in self.conditions if each.outcome is outcome]
        if not chosen:
            return ""
        chosen.sort(key=lambda each: each.margin)
        shown = chosen[: 1 if outcome is Outcome.MET else _MOST_LISTED]
        more = len(chosen) - len(shown)
        least = "" if not more else "least favourable: " if len(shown) == 1 else "among them "
        listed = "; ".join(each.text() for each in shown)
        return f"{len(chosen)} of {len(self.conditions)} {outcome}: {least}{listed}"

    @property
    def deciding(self) -> Measured:
        """The first condition that is not met, or the first condition if all are met."""
        missed = (each for each in self.conditions if each.outcome is not Outcome.MET)
        return next(missed, self.conditions[0])

    @property
    def sensitivity(self) -> str:
        """The variants that overturn the verdict, in words; empty if there is none."""
        return "; ".join(f"{variant}: {other.words}" for variant, other in self.overturned_by)

    def as_json(self) -> dict[str, Any]:
        """The judgement as an object of ``claims.json``."""
        return {
            "id": self.claim.id,
            "source": self.claim.source,
            "statement": self.claim.statement,
            "check": self.claim.check,
            "measured": self.measured,
            "verdict": self.verdict.value,
            "overturned_by": {variant: other.value for variant, other in self.overturned_by},
            "conditions": [condition.as_json() for condition in self.conditions],
            "systems": {
                system: other and {"verdict": other.verdict.value, "measured": other.measured}
                for system, other in self.systems.items()
            },
            "conclusion": self.conclusion,
        }


_MOST_LISTED = 4
_BY_GRAVITY = (Outcome.VIOLATED, Outcome.OPEN, Outcome.MET)


def judge(claim: Claim, results: Results, variants: Variants | None = None) -> Judgement:
    """Measure the quantities of a claim, and compare them with its bounds.

    The precondition is checked on the results only, not on the variants.
    """
    try:
        reason = claim.precondition(results) if claim.precondition else None
        if reason is not None:
            return Judgement(claim, (), Verdict.NOT_APPLICABLE, reason)
        conditions = tuple(
            _measured(each, results, len(claim.conditions)) for each in claim.conditions
        )
    except NothingMeasured as nothing:
        return Judgement(claim, (), Verdict.NOT_APPLICABLE, str(nothing))
    found = verdict([each.outcome for each in conditions])
    values = {name: _values(claim, each) for name, each in (variants or {}).items()}
    others = {name: _verdict_of_values(claim, each) for name, each in values.items()}
    unchanged = (found, _verdict_of_values(claim, [each.estimate.value for each in conditions]))
    return Judgement(
        claim,
        tuple(
            _with_band(each, [of_one[n] for of_one in values.values() if of_one])
            for n, each in enumerate(conditions)
        ),
        found,
        overturned_by=tuple(
            (name, other)
            for name, other in others.items()
            if other not in unchanged and found is not Verdict.OPEN
        ),
    )


def _measured(condition: Condition, results: Results, among: int) -> Measured:
    quantity = condition.describe(results) if condition.describe else condition.quantity
    return Measured(condition, quantity, condition.measure(results).among(among))


def _values(claim: Claim, variant: Results) -> list[float]:
    """The values of a claim's quantities in a variant; empty if one was not measured."""
    try:
        return [condition.measure(variant).value for condition in claim.conditions]
    except NothingMeasured:
        return []


def _verdict_of_values(claim: Claim, values: Sequence[float]) -> Verdict:
    """The verdict that exact values would have."""
    pairs = zip(claim.conditions, values, strict=False)
    return verdict([outcome(each.bound, Estimate(value, value, value, 1)) for each, value in pairs])


def _with_band(measured: Measured, values: Sequence[float]) -> Measured:
    if not values:
        return measured
    all_values = (measured.estimate.value, *values)
    return replace(measured, band=(min(all_values), max(all_values)))


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict that follows from the outcomes of a claim's conditions."""
    if not outcomes:
        return Verdict.NOT_APPLICABLE
    met, violated = Outcome.MET in outcomes, Outcome.VIOLATED in outcomes
    if met and violated:
        return Verdict.PARTLY
    if violated:
        return Verdict.NOT_REPRODUCED
    return Verdict.OPEN if Outcome.OPEN in outcomes else Verdict.REPRODUCED
