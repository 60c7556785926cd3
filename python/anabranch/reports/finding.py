"""The finding at the top of a report: two sentences, made from the results."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.results.claims import Judgement, Outcome, Verdict

_OTHERS = {
    Verdict.NOT_REPRODUCED: "not reproduced",
    Verdict.PARTLY: "only partly reproduced",
    Verdict.OPEN: "open",
    Verdict.NOT_APPLICABLE: "not judged",
}

_OUTCOMES = {
    Outcome.MET: "which holds",
    Outcome.VIOLATED: "which does not hold",
    Outcome.OPEN: "which the interval leaves open",
}
_MOST_NAMED = 3


def of_claims(judgements: Sequence[Judgement], headline: str = "") -> list[str]:
    """State how many claims are reproduced, which are not, and the measured value of one claim.

    `headline` names this claim. Without a headline, or if that claim was not judged, it is the
    first judged claim.
    """
    if not judgements:
        return []
    judged = [judgement for judgement in judgements if judgement.conditions]
    named = [judgement for judgement in judged if judgement.claim.id == headline]
    chosen = (named or judged)[:1]
    return [count(judgements), *(_measured(judgement) for judgement in chosen)]


def count(judgements: Sequence[Judgement]) -> str:
    """State how many claims are reproduced, and which are not."""
    total = len(judgements)
    good = sum(judgement.verdict is Verdict.REPRODUCED for judgement in judgements)
    if good == total:
        return f"All {total} claims are reproduced." if total > 1 else "The claim is reproduced."
    others = []
    for verdict, words in _OTHERS.items():
        names = [each.claim.id for each in judgements if each.verdict is verdict]
        if names:
            more = len(names) - _MOST_NAMED
            listed = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            others.append(f"{len(names)} {'is' if len(names) == 1 else 'are'} {words} ({listed})")
    verb = "are" if good > 1 else "is"
    return f"{good or 'None'} of {total} claims {verb} reproduced; {'; '.join(others)}."


def _measured(judgement: Judgement) -> str:
    measured = judgement.deciding
    condition = measured.condition
    first, *others = measured.quantity.split(" ")
    sentence = " ".join(
        [first.capitalize() if first.islower() and first.isalpha() else first, *others]
    )
    return (
        f"{sentence} = "
        f"{measured.estimate.text(condition.bound.unit)}; {judgement.claim.id} expects "
        f"{condition.bound.text}, {_OUTCOMES[measured.outcome]}."
    )
