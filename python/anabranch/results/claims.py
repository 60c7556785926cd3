"""Published claims, judged against measurements.

One or more conditions check a claim. A condition names a quantity, the function that measures it,
and a threshold. The text of a claim's check is made from its conditions, so both are fixed before
anything runs. A condition is *met* when the whole confidence interval of its estimate satisfies the
inequality, *violated* when no part of the interval does, and *open* in between. The verdict follows
from the conditions:

* reproduced: every condition is met;
* not reproduced: every condition is violated;
* partly: anything else;
* not applicable: the claim's precondition failed, for example because a path carried nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from anabranch.results.estimates import Estimate
from anabranch.results.folder import NothingMeasured, Results


class Verdict(StrEnum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
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


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "≤": operator.le,
    ">": operator.gt,
    "≥": operator.ge,
}


Measure = Callable[[Results], Estimate]
"""Measures a quantity."""


@dataclass(frozen=True)
class Condition:
    """An inequality between a quantity and a threshold, stated before anything runs."""

    quantity: str
    measure: Measure
    operator: str
    """One of ``<``, ``≤``, ``>`` and ``≥``."""
    threshold: float
    unit: str = ""
    group: str = ""
    """The description that a check gives to all conditions of the same group; see `each`."""
    applies: Callable[[Results], bool] | None = None
    """Decides whether to judge the condition by these results; `None` for always."""
    worded: Callable[[Results], str] | None = None
    """The quantity in words that include measured numbers, for reports."""
    basis: str = ""
    """The origin of the threshold, such as ``"90 % of the sum of rates"``."""

    @property
    def bound(self) -> str:
        """The inequality without its quantity, such as ``"≥ 180 Mbit/s, 90 % of the sum"``."""
        words = f"{self.operator} {self.threshold:g}{f' {self.unit}' if self.unit else ''}"
        return f"{words}, {self.basis}" if self.basis else words

    def judge(self, results: Results) -> Measured:
        """Measure the quantity.

        Raises:
            NothingMeasured: if the results contain no value for it.
        """
        quantity = self.worded(results) if self.worded else self.quantity
        return Measured(self, quantity, self.measure(results))


def each(group: str, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Conditions with the same bounds, described once in the text of a check."""
    return tuple(replace(condition, group=group) for condition in conditions)


def between(
    quantity: str, measure: Measure, low: float, high: float, unit: str = ""
) -> tuple[Condition, Condition]:
    """Two conditions that together demand a quantity within a closed range."""
    return (
        Condition(quantity, measure, "≥", low, unit),
        Condition(quantity, measure, "≤", high, unit),
    )


@dataclass(frozen=True)
class Measured:
    """A condition with the estimate of its quantity."""

    condition: Condition
    quantity: str
    estimate: Estimate

    @property
    def outcome(self) -> Outcome:
        """The outcome for the whole confidence interval."""
        holds, threshold = _OPERATORS[self.condition.operator], self.condition.threshold
        ends = {holds(self.estimate.low, threshold), holds(self.estimate.high, threshold)}
        if len(ends) == 2:
            return Outcome.OPEN
        return Outcome.MET if ends.pop() else Outcome.VIOLATED

    @property
    def margin(self) -> float:
        """The distance by which the value satisfies the inequality, relative to the threshold."""
        sign = 1 if self.condition.operator in ">≥" else -1
        scale = abs(self.condition.threshold) or 1.0
        return sign * (self.estimate.value - self.condition.threshold) / scale

    def text(self) -> str:
        """The condition with its numbers, such as ``"a / b = 4.1 [4.0, 4.2] (≥ 3: met)"``."""
        condition = self.condition
        measured = f"{self.quantity} = {self.estimate.text(condition.unit)}"
        return f"{measured} ({condition.operator} {condition.threshold:g}: {self.outcome})"

    def as_json(self) -> dict[str, Any]:
        """The condition as an object of ``claims.json``."""
        return {
            "quantity": self.quantity,
            "value": self.estimate.value,
            "ci95": [self.estimate.low, self.estimate.high],
            "unit": self.condition.unit,
            "seeds": self.estimate.seeds,
            "operator": self.condition.operator,
            "threshold": self.condition.threshold,
            "outcome": self.outcome.value,
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
    bounds = " and ".join(dict.fromkeys(condition.bound for condition in conditions))
    count = len({condition.quantity for condition in conditions})
    return f"{name} {bounds}{f' (each of {count})' if count > 1 else ''}"


@dataclass(frozen=True)
class Judgement:
    """A claim with its measurements and verdict."""

    claim: Claim
    conditions: tuple[Measured, ...]
    verdict: Verdict
    reason: str = ""
    """The reason if the claim is not applicable."""

    @property
    def measured(self) -> str:
        """The numbers in words: of all conditions, or of the least favourable of more than four."""
        if not self.conditions:
            return self.reason
        if len(self.conditions) <= 4:
            return "; ".join(condition.text() for condition in self.conditions)
        gravity = [Outcome.VIOLATED, Outcome.OPEN, Outcome.MET]
        worst = min(self.conditions, key=lambda each: (gravity.index(each.outcome), each.margin))
        met = sum(condition.outcome is Outcome.MET for condition in self.conditions)
        return f"{met} of {len(self.conditions)} met; least favourable: {worst.text()}"

    def as_json(self) -> dict[str, Any]:
        """The judgement as an object of ``claims.json``."""
        return {
            "id": self.claim.id,
            "source": self.claim.source,
            "statement": self.claim.statement,
            "check": self.claim.check,
            "measured": self.measured,
            "verdict": self.verdict.value,
            "conditions": [condition.as_json() for condition in self.conditions],
        }


def judge(claim: Claim, results: Results) -> Judgement:
    """Measure the quantities of a claim, and compare them with its thresholds."""
    reason = claim.precondition(results) if claim.precondition else None
    if reason is not None:
        return Judgement(claim, (), Verdict.NOT_APPLICABLE, reason)
    try:
        conditions = tuple(
            condition.judge(results)
            for condition in claim.conditions
            if condition.applies is None or condition.applies(results)
        )
    except NothingMeasured as nothing:
        return Judgement(claim, (), Verdict.NOT_APPLICABLE, str(nothing))
    return Judgement(claim, conditions, verdict(conditions))


def verdict(conditions: Sequence[Measured]) -> Verdict:
    """The verdict that follows from the outcomes of a claim's conditions."""
    outcomes = {condition.outcome for condition in conditions}
    if not outcomes:
        return Verdict.NOT_APPLICABLE
    if outcomes == {Outcome.MET}:
        return Verdict.REPRODUCED
    if outcomes == {Outcome.VIOLATED}:
        return Verdict.NOT_REPRODUCED
    return Verdict.PARTLY
