"""Published claims, judged against measurements.

A claim is checked by one or more conditions, each of which compares an estimate with a
threshold. A condition is *met* when its whole confidence interval satisfies the inequality,
*violated* when no part of it does, and *open* in between. From these follows the verdict:

* reproduced: every condition is met;
* not reproduced: every condition is violated;
* partly: anything else;
* not applicable: the claim's precondition failed, for example because a path carried nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from anabranch.results.estimates import Estimate
from anabranch.results.folder import NothingMeasured, Results


class Verdict(StrEnum):
    """What the measurements say about a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not_reproduced"
    NOT_APPLICABLE = "not_applicable"

    @property
    def words(self) -> str:
        """The verdict for a table."""
        return self.value.replace("_", " ")


class Outcome(StrEnum):
    """What the measurements say about one condition."""

    MET = "met"
    VIOLATED = "violated"
    OPEN = "open"


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "≤": operator.le,
    ">": operator.gt,
    "≥": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """An inequality between a measured quantity and a threshold."""

    quantity: str
    estimate: Estimate
    operator: str
    """One of ``<``, ``≤``, ``>`` and ``≥``."""
    threshold: float
    unit: str = ""

    @property
    def outcome(self) -> Outcome:
        """Met or violated by the whole confidence interval, or open."""
        holds = _OPERATORS[self.operator]
        ends = {holds(self.estimate.low, self.threshold), holds(self.estimate.high, self.threshold)}
        if len(ends) == 2:
            return Outcome.OPEN
        return Outcome.MET if ends.pop() else Outcome.VIOLATED

    @property
    def margin(self) -> float:
        """How far the value lies on the right side of the threshold, relative to it."""
        sign = 1 if self.operator in ">≥" else -1
        scale = abs(self.threshold) or 1.0
        return sign * (self.estimate.value - self.threshold) / scale

    def text(self) -> str:
        """The condition with its numbers, such as ``"a / b = 4.1 [4.0, 4.2] (≥ 3: met)"``."""
        measured = f"{self.quantity} = {self.estimate.text(self.unit)}"
        return f"{measured} ({self.operator} {self.threshold:g}: {self.outcome})"


@dataclass(frozen=True)
class Claim:
    """A statement of a publication, and how it is checked."""

    id: str
    statement: str
    """What the source says, in our words."""
    source: str
    check: str
    """The inequality that is checked."""
    measure: Callable[[Results], Sequence[Condition]]
    precondition: Callable[[Results], str | None] | None = None
    """Why the claim does not apply to these results, if it does not."""


@dataclass(frozen=True)
class Judgement:
    """A claim with the numbers measured and the verdict."""

    claim: Claim
    conditions: tuple[Condition, ...]
    verdict: Verdict
    reason: str = ""
    """Why the claim is not applicable, if it is not."""

    @property
    def measured(self) -> str:
        """The numbers in words: all, or of more than four conditions the least favourable."""
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
            "conditions": [
                {
                    "quantity": condition.quantity,
                    "value": condition.estimate.value,
                    "ci95": [condition.estimate.low, condition.estimate.high],
                    "unit": condition.unit,
                    "seeds": condition.estimate.seeds,
                    "operator": condition.operator,
                    "threshold": condition.threshold,
                    "outcome": condition.outcome.value,
                }
                for condition in self.conditions
            ],
        }


def judge(claim: Claim, results: Results) -> Judgement:
    """Measure what the claim is about, and compare."""
    reason = claim.precondition(results) if claim.precondition else None
    if reason is not None:
        return Judgement(claim, (), Verdict.NOT_APPLICABLE, reason)
    try:
        conditions = tuple(claim.measure(results))
    except NothingMeasured as nothing:
        return Judgement(claim, (), Verdict.NOT_APPLICABLE, str(nothing))
    return Judgement(claim, conditions, verdict(conditions))


def verdict(conditions: Sequence[Condition]) -> Verdict:
    """The verdict that follows from the outcomes of a claim's conditions."""
    outcomes = {condition.outcome for condition in conditions}
    if not outcomes:
        return Verdict.NOT_APPLICABLE
    if outcomes == {Outcome.MET}:
        return Verdict.REPRODUCED
    if outcomes == {Outcome.VIOLATED}:
        return Verdict.NOT_REPRODUCED
    return Verdict.PARTLY
