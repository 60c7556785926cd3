"""Advice as tables, as plain values, and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch._core import __version__
from anabranch.advice import commands, goals, subject
from anabranch.advice.commands import Commands
from anabranch.advice.failover import STALE_LOSS_CNT
from anabranch.advice.goals import GOALS, Goals
from anabranch.advice.search import ENGINE, LINUX, Advice, Predicted
from anabranch.explanations.pairs import changed_connections
from anabranch.explanations.worth import BROUGHT
from anabranch.files import write_whole
from anabranch.reports import page
from anabranch.reports.table import Table
from anabranch.results.estimates import Estimate, number
from anabranch.words import listed

_DEFAULTS = {"stale_loss_cnt": str(STALE_LOSS_CNT), "tcp_retries2": "15", "keepalives": "off"}
"""Defaults of Linux 6.18 by setting."""


def finding(advice: Advice) -> str:
    """The advice for a stack in one sentence, with goodput and delay before and after."""
    best = advice.best
    if not advice.helps:
        values = ", ".join(f"{words} {_text(old)}{unit}" for words, unit, old, _ in _known(advice))
        helps = "significantly helps" if advice.brings_enough else f"brings {BROUGHT}"
        return f"{advice.stack}: leave it as it is ({values}); no change {helps}."
    values = ", ".join(
        f"{words} {number(old.value)} → {number(new.value)}{unit}"
        for words, unit, old, new in _known(advice)
    )
    return f"{advice.stack}: {best.words}: {values} (improvement × {best.gain.text()})."


def _known(advice: Advice) -> list[tuple[str, str, Estimate, Estimate]]:
    """Name, unit, and value before and after of each quantity that both runs have."""
    found = []
    for goal in GOALS.values():
        old, new = (each.values.get(goal.key) for each in (advice.now, advice.best))
        if old is not None and new is not None:
            words, unit = goal.words.rsplit(" ", 1)
            found.append((words, f" {unit}", old, new))
    return found


def table(advice: Advice) -> Table:
    """A row for the present state, the rule, and the advice or the best change that was tried."""
    known = [goal for goal in GOALS.values() if advice.now.values.get(goal.key) is not None]
    headings = ("", *(goal.words for goal in known), "improvement ×")
    rule = f"rule: {advice.rule.words.removesuffix(' buffers')}"
    shown = [("as it is", advice.now), (rule, advice.rule)]
    if advice.helps:
        shown.append(("advice", advice.best))
    elif advice.best.keys not in (advice.now.keys, advice.rule.keys):
        shown.append((f"best: {advice.best.words}", advice.best))
    rows = [
        (name, *(_text(each.values[goal.key]) for goal in known), each.gain.text())
        for name, each in shown
    ]
    return Table(headings, tuple(rows))


def stalls(advice: Advice) -> Table:
    """The predicted pause with each setting for failover; without rows if none was asked for."""
    headings = ("setting", GOALS["failover"].words, "default")
    rows = [
        (each.setting.words, _text(each.pause), _DEFAULTS.get(each.setting.words.split()[0], ""))
        for each in advice.stalls
    ]
    return Table(headings, tuple(rows))


def setting_commands(advice: Advice) -> list[Commands]:
    """The commands for each setting of the table of pauses."""
    return [
        Commands(each.setting.words, each.setting.commands)
        for each in advice.stalls
        if each.setting.commands
    ]


def _text(value: Estimate | None) -> str:
    return "–" if value is None else value.text()


def about(advices: Sequence[Advice], aims: Goals, rule: int) -> str:
    """Derivation of the numbers, in a few sentences."""
    seeds = advices[0].now.gain.seeds
    sample = (
        f"Medians over {seeds} seeds that the search did not use, with 95 % bootstrap intervals."
        if seeds > 1
        else "From one seed, because others give the same."
    )
    return (
        f"For {goals.text(aims)}. {sample} {_improvement(aims, seeds)} "
        f"The rule is 2·ΣBW·RTTmax = {number(rule / 1024)} KiB for both buffers."
    )


def _improvement(aims: Goals, seeds: int) -> str:
    """The definition of the improvement in a row."""
    words = [goal.words.rsplit(" ", 1)[0] for goal in GOALS.values() if goal.name in aims]
    ratio = f"the ratio of the {words[0]} to that of the present state"
    if len(words) > 1:
        ratio = (
            f"the weighted geometric mean of the improvements of {listed(words)} over the "
            "present state"
        )
    elif next(iter(aims)) != "throughput":
        ratio = f"the ratio of the {words[0]} of the present state to that of the row"
    if seeds == 1:
        return f"The improvement is {ratio}."
    return (
        f"The improvement is {ratio}: the mean over pairs of runs with equal seeds, which can "
        "differ from the ratio of the medians."
    )


def linux_commands(advice: Advice) -> tuple[list[Commands], list[str]]:
    """The commands for the advice, and what they leave to the reader; none without a change."""
    if not advice.helps:
        return [], []
    settings = advice.advised.scenario.settings
    connection = changed_connections(settings)[0]
    notes = [*commands.notes(connection), *subject.warnings(settings, connection)]
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
    if linux.stalls:
        by_stack[LINUX]["failover"] = [
            {
                "setting": each.setting.words,
                "commands": list(each.setting.commands),
                "pause_s": _estimate_json(each.pause),
            }
            for each in linux.stalls
        ]
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
        contents[f"{name}.toml"] = each.advised.scenario.to_toml().encode()
    write_whole(folder, contents)
