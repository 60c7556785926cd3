"""Advice as tables, as plain values, and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch._core import __version__
from anabranch.advice import commands, goals, subject
from anabranch.advice.commands import Commands
from anabranch.advice.goals import GOALS, Goals
from anabranch.advice.search import ENGINE, LINUX, Advice, Predicted
from anabranch.explanations.pairs import changed_connections
from anabranch.reports import page
from anabranch.reports.table import Table
from anabranch.results.estimates import Estimate, number
from anabranch.results.folder import write_whole
from anabranch.runs.run import settings_of

_NAMES = {"now": "as it is", "rule": "rule", "advice": "advice"}


def finding(advice: Advice) -> str:
    """The advice for a stack in one sentence."""
    best = advice.best
    if not advice.helps:
        return f"{advice.stack}: leave it as it is; no change that was tried surely helps."
    return f"{advice.stack}: {best.words} (improvement × {best.gain.text()})."


def table(advice: Advice) -> Table:
    """A row for the present state, the rule and the advice."""
    known = [goal for goal in GOALS.values() if advice.now.values.get(goal.key) is not None]
    headings = ("", *(goal.words for goal in known), "improvement ×")
    rows = [
        (_name(each), *(_text(each.values[goal.key]) for goal in known), each.gain.text())
        for each in (advice.now, advice.rule, advice.best)
    ]
    return Table(headings, tuple(rows))


def _name(predicted: Predicted) -> str:
    name = _NAMES[predicted.name]
    return (
        name if predicted.name != "rule" else f"{name}: {predicted.words.removesuffix(' buffers')}"
    )


def _text(value: Estimate | None) -> str:
    return "–" if value is None else value.text()


def about(advices: Sequence[Advice], aims: Goals, rule: int) -> str:
    """How the numbers were made, in a few sentences."""
    seeds = advices[0].now.gain.seeds
    return (
        f"For {goals.text(aims)}. Medians over {seeds} seeds that the search did not use, with "
        "95 % bootstrap intervals. The improvement is the weighted geometric mean over the goals. "
        f"The rule is 2·ΣBW·RTTmax = {number(rule / 1024)} KiB for both buffers."
    )


def linux_commands(advice: Advice) -> tuple[list[Commands], list[str]]:
    """The commands for the advice, and what they leave to the reader."""
    settings = settings_of(advice.advised.toml)
    connection = changed_connections(settings)[0]
    notes = [*commands.notes(connection), *subject.doubts(settings, connection)]
    return commands.of(settings, connection), notes


def as_json(
    advices: Sequence[Advice], aims: Goals, rule: int, scenario: Mapping[str, Any]
) -> dict[str, Any]:
    """The advice as plain values."""
    by_stack = {advice.stack: _advice_json(advice) for advice in advices}
    linux = next(each for each in advices if each.stack == LINUX)
    shown, notes = linux_commands(linux)
    by_stack[LINUX]["commands"] = {each.place: list(each.lines) for each in shown}
    by_stack[LINUX]["notes"] = notes
    return {
        "scenario": scenario["name"],
        "for": dict(aims),
        "rule_bytes": rule,
        "linux": by_stack[LINUX],
        "engine": by_stack[ENGINE],
    }


def _advice_json(advice: Advice) -> dict[str, Any]:
    return {
        "helps": advice.helps,
        "finding": finding(advice),
        **{each.name: _predicted_json(each) for each in (advice.now, advice.rule, advice.best)},
    }


def _predicted_json(each: Predicted) -> dict[str, Any]:
    values = {key: _estimate_json(value) for key, value in each.values.items()}
    return {
        "changes": each.words,
        "settings": dict(each.keys),
        "improvement": _estimate_json(each.gain),
        **values,
    }


def _estimate_json(value: Estimate | None) -> dict[str, float] | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high}


def save(
    advices: Sequence[Advice], aims: Goals, rule: int, scenario: Mapping[str, Any], folder: Path
) -> None:
    """Write ``report.html``, ``advice.json``, and the advised scenarios.

    Raises:
        InputError: if the folder cannot be written.
    """
    text = json.dumps(as_json(advices, aims, rule, scenario), indent=2, ensure_ascii=False)
    linux = next(each for each in advices if each.stack == LINUX)
    shown, notes = linux_commands(linux)
    html = page.template("advise.html").render(
        name=scenario["name"],
        version=__version__,
        findings=[finding(each) for each in advices],
        tables=[(each.stack, table(each)) for each in advices],
        commands=shown,
        notes=notes,
        about=about(advices, aims, rule),
    )
    contents = {"report.html": html.encode(), "advice.json": f"{text}\n".encode()}
    for each in advices:
        name = "linux" if each.stack == LINUX else "engine"
        contents[f"{name}.toml"] = each.advised.toml.encode()
    write_whole(folder, contents)
