"""Claims as data: quantities in words. The registry has the statements and the bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.errors import InputError
from anabranch.gallery import registry
from anabranch.results.claims import Claim, Condition, Measure
from anabranch.results.estimates import Estimate
from anabranch.results.folder import Factor, NothingMeasured, Results

Needs = Callable[[Results], str | None]
"""Says why a claim does not apply to results, or `None` if it applies."""

Unnamed = Callable[[str, Mapping[str, object]], Claim]
"""Makes a claim from its name and from words that the claims of an entry share."""

_NAMES = {"3g": "3G", "wlan": "WLAN", "wifi": "WiFi"}


@dataclass(frozen=True)
class Quantity:
    """A number that a claim is about."""

    words: str
    measure: Measure
    bound: str = ""
    """Name of the claim's bound that judges it; empty for the bound without a name."""
    group: str = ""
    """The words that a check gives to all quantities of a group."""
    describe: Callable[[Results], str] | None = None
    """The quantity in words that include measured numbers, for reports."""


def each(group: str, cases: Mapping[str, Measure], bound: str = "") -> tuple[Quantity, ...]:
    """Similar quantities in words, which the text of a check describes once."""
    return tuple(Quantity(words, measure, bound, group) for words, measure in cases.items())


def for_each(
    words: str,
    cases: Iterable[Any],
    measure: Callable[..., Measure],
    group: str = "",
    bound: str = "",
) -> tuple[Quantity, ...]:
    """One quantity for each case, whose words stand for ``{}`` in `words`.

    A case that is a tuple has several words and gives `measure` several arguments.

    Raises:
        InputError: if cases have the same words.
    """
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    measures = {words.format(*case): measure(*case) for case in several}
    if len(measures) < len(several):
        raise InputError(f'for_each: "{words}" gives several cases the same words')
    return each(group, measures, bound)


def at_every(
    words: str, sizes: Iterable[int], unit: str, measure: Callable[[int], Measure]
) -> tuple[Quantity, ...]:
    """One quantity for each size of buffers."""
    return for_each(f"{words} at {{}} {unit}", sizes, measure, f"{words} at every buffer")


def least(words: str, cases: Mapping[str, Measure]) -> Quantity:
    """The smallest of several quantities, which the report names.

    The interval is corrected for the number of quantities among which the smallest was found.
    """

    def find(results: Results) -> tuple[str, Estimate]:
        measured = {name: measure(results) for name, measure in cases.items()}
        return min(measured.items(), key=lambda case: case[1].value)

    return Quantity(
        words,
        lambda results: find(results)[1].among(len(cases)),
        describe=lambda results: f"smallest of {len(cases)}: {find(results)[0]}",
    )


def claim(
    *check: Quantity | Iterable[Quantity],
    needs: Needs | None = None,
    row: str = "",
    **words: object,
) -> Unnamed:
    """A claim without its name, which is also the name of its row in the registry.

    Claims that share a row name it. `words` are those of this claim for the braces of its row.
    """
    quantities: list[Quantity] = []
    for part in check:
        quantities += [part] if isinstance(part, Quantity) else part

    def of(name: str, shared: Mapping[str, object]) -> Claim:
        found = registry.row(row or name)
        conditions = tuple(
            Condition(each.words, each.measure, found.bound(each.bound), each.group, each.describe)
            for each in quantities
        )
        statement, source, where = found.words(words, shared)
        return Claim(name, statement, source, conditions, needs, where)

    return of


def carried(
    paths: str | Sequence[str],
    *cells: Mapping[str, Factor],
    over: float = 0.01,
    of: Callable[[Any], Any] = np.min,
) -> Needs:
    """The precondition that each path carried more than this share of the bytes in each cell.

    `paths` is the name of a path, or several names. `of` reduces the shares of the seeds to one.
    """
    names = (paths,) if isinstance(paths, str) else paths

    def reason(results: Results) -> str | None:
        try:
            for cell in cells:
                for path in names:
                    share = float(of(results.values(f"share_{path}", **cell)))
                    if share <= over:
                        words = ", ".join(map(str, cell.values()))
                        name = _NAMES.get(path, path)
                        return f"{name} carried only {share * 100:.2f} % of the bytes ({words})"
        except NothingMeasured as nothing:
            return str(nothing)
        return None

    return reason


def all_of(*needs: Needs) -> Needs:
    """One precondition that requires all of these; it reports the first that fails."""
    return lambda results: next((why for each in needs if (why := each(results))), None)
