"""The search for the best settings, and predictions for them.

A search tries every single change first. Then it changes the best candidates further. All of them
run with the same seeds. The predictions use other seeds, so they do not inherit the luck of the
search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anabranch import _core
from anabranch.advice import failover, subject
from anabranch.advice import goals as aims
from anabranch.advice import space as spaces
from anabranch.advice.failover import Stall
from anabranch.advice.goals import GOALS, Goals, Numbers
from anabranch.advice.space import Space
from anabranch.errors import InputError
from anabranch.explanations import worth
from anabranch.explanations.pairs import Runs, changed, changed_connections
from anabranch.results.estimates import Estimate, mean, median
from anabranch.runs import executors, limits
from anabranch.runs.executors import Executor, Meter, Progress
from anabranch.scenarios import custom

LINUX, ENGINE = "Linux", "anabranch"
"""The stacks that advice is for."""
_SEARCH_SEEDS = 2
_RIVAL = 0.9
"""Share of the best, with the first seed, from which a candidate gets a second (this project)."""
_COMBINED, _BATCH = 24, 8
"""A search tries 24 combinations. It runs eight candidates at a time. The numbers do not depend on
the cores, so the result does not either."""
_ALIKE = 2
"""Candidates of a round that differ in their buffers alone (this project)."""
_SAME = 0.02
"""Difference of gains up to which candidates are equally good (this project: that of seeds)."""

Candidate = tuple[int, ...]
"""The index of the option of each choice."""


@dataclass(frozen=True)
class Predicted:
    """Predicted effect of a candidate.

    Attributes:
        name: ``"now"``, ``"rule"`` or ``"advice"``.
        words: Its changes.
        changes: Number of its changes.
        values: Goodput, delay and pause, by the keys of the goals: medians over seeds with
            intervals. Without failover among the goals, there is no pause.
        gain: Weighted geometric mean of the improvements over the present state; mean over pairs.
    """

    name: str
    words: str
    changes: int
    keys: Mapping[str, Any]
    scenario: _core.Scenario
    values: Mapping[str, Estimate | None]
    gain: Estimate


@dataclass(frozen=True)
class Advice:
    """The answer for one stack, `LINUX` or `ENGINE`.

    Attributes:
        stalls: Predicted pauses with settings of Linux, beginning with the advice itself. Empty
            without failover among the goals.
    """

    stack: str
    now: Predicted
    rule: Predicted
    best: Predicted
    stalls: Sequence[Stall] = ()

    @property
    def helps(self) -> bool:
        """Whether the improvement is significant, and large enough for the number of changes."""
        return worth.helps(self.best.gain, self.best.changes)

    @property
    def brings_enough(self) -> bool:
        """Whether the improvement is large enough for the number of changes, significant or not."""
        return worth.brings_enough(self.best.gain, self.best.changes)

    @property
    def advised(self) -> Predicted:
        """The advice, or the present state if no change is worth it."""
        return self.best if self.helps else self.now


@dataclass(frozen=True)
class Question:
    """Subject of the advice.

    Attributes:
        scenario: The scenario as it is.
        rule: The buffer of the rule, in bytes.
        seeds: Seeds of the predictions. The search uses the seeds that follow.
    """

    scenario: _core.Scenario
    goals: Goals
    rule: int
    seeds: Sequence[int]


class _Searcher:
    """Runs candidates of several questions on one executor, and counts all of their runs."""

    def __init__(
        self,
        executor: Executor,
        planned: int,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._runs = Runs(executor, aims.measured)
        self._meter = Meter(on_progress, [1.0] * planned)
        self._planned = planned
        self._made = 0

    def values(
        self,
        question: Question,
        scenarios: Sequence[_core.Scenario | None],
        seeds: Sequence[int],
    ) -> list[Numbers | None]:
        """The values of candidates (seeds × goals); `None` for those that contradict themselves."""
        variants = {
            each: aims.variants(each, question.goals) for each in scenarios if each is not None
        }
        jobs = [(variant, seed) for each in variants.values() for seed in seeds for variant in each]
        rows = iter(self._runs.of(jobs, self._count))
        found = {}
        for scenario, each in variants.items():
            values = np.array([[next(rows) for _ in each] for _ in seeds], dtype=np.float64)
            found[scenario] = aims.of_variants(values)
        return [None if each is None else found[each] for each in scenarios]

    def _count(self, _: int, virtual_ns: int) -> None:
        if self._made < self._planned:
            self._meter.made(self._made, virtual_ns)
            self._made += 1


def advise(
    scenario: _core.Scenario,
    goals: Goals,
    seeds: Sequence[int],
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[list[Advice], int]:
    """Advice for a scenario, with Linux and with the engine, on all cores.

    `seeds` are those of the predictions; the search uses the seeds that follow. Also returns the
    buffer of the rule in bytes.

    Raises:
        InputError: if a goal cannot be measured, too few seeds follow, or the user's own policy
            cannot be sent to another process.
    """
    limits.seeds(seeds[0], len(seeds) + _SEARCH_SEEDS)
    custom.require_picklable(scenario)
    settings = scenario.settings
    connection = changed_connections(settings)[0]
    rule = subject.rule_bytes(settings, connection)
    linux = changed(scenario, subject.as_linux(connection))
    if linux is None:
        raise InputError(
            f"{scenario.file}: connection {connection['name']}: Linux cannot have its other "
            "settings; remove those that belong to its congestion control or path manager"
        )
    asked = {
        LINUX: _asked(Question(linux, goals, rule, seeds), _space_of_linux(goals)),
        ENGINE: _asked(Question(scenario, goals, rule, seeds), spaces.of_engine),
    }
    planned = sum(_planned(*each) for each in asked.values())
    with executors.opened(custom_policies=bool(scenario.policies)) as executor:
        searcher = _Searcher(executor, planned, on_progress)
        found = [_Search(searcher, stack, *each).advice() for stack, each in asked.items()]
        if "failover" in goals:
            stalls = _stalls(searcher, asked[LINUX][0], found[0].advised.scenario)
            found[0] = replace(found[0], stalls=stalls)
    return found, rule


def _space_of_linux(goals: Goals) -> Callable[[Mapping[str, Any], int], Space]:
    return spaces.of_linux_for_failover if "failover" in goals else spaces.of_linux


def _stalls(searcher: _Searcher, question: Question, scenario: _core.Scenario) -> list[Stall]:
    """The predicted pauses of a scenario with the settings for failover."""
    connection = changed_connections(scenario.settings)[0]
    tried = [*failover.settings(connection)]
    scenarios = [changed(scenario, each.keys) if each.keys else scenario for each in tried]
    values = searcher.values(question, scenarios, question.seeds)
    index = [*GOALS].index("failover")
    return [
        Stall(setting, None if each is None else median(each[:, index]))
        for setting, each in zip(tried, values, strict=True)
    ]


def _asked(
    question: Question, space_of: Callable[[Mapping[str, Any], int], Space]
) -> tuple[Question, Space]:
    connection = changed_connections(question.scenario.settings)[0]
    return question, space_of(connection, question.rule)


def _planned(question: Question, space: Space) -> int:
    """Least number of runs for a question."""
    variants = len(aims.variants(question.scenario, question.goals))
    singles = sum(len(choice.options) - 1 for choice in space)
    return variants * (singles + _COMBINED + 3)


class _Search:
    def __init__(
        self,
        searcher: _Searcher,
        stack: str,
        question: Question,
        space: Space,
    ) -> None:
        self._searcher = searcher
        self._stack = stack
        self._question = question
        self._connection = changed_connections(question.scenario.settings)[0]
        self._space = space
        last = question.seeds[-1]
        self._seeds: Sequence[int] = range(last + 1, last + 1 + _SEARCH_SEEDS)
        self._present = tuple(choice.present for choice in self._space)
        self._now = self._values([self._present], self._seeds)[0]
        self._require_measurable()
        self._predicted_with = question.seeds
        if self._is_constant():
            self._seeds, self._predicted_with = self._seeds[:1], self._seeds[:1]
        self._gains: dict[Candidate, float] = {self._present: 1.0}
        self._delays: dict[Candidate, float] = {self._present: _delay(self._now)}

    def advice(self) -> Advice:
        """The answer: the present state, the rule, and the simplest of the best candidates."""
        self._look()
        named = {"now": self._present, "rule": self._rule(), "advice": self._simplest()}
        values = self._values([*named.values()], self._predicted_with)
        now, rule, found = (
            self._predicted(name, candidate, each, values[0])
            for (name, candidate), each in zip(named.items(), values, strict=True)
        )
        return Advice(self._stack, now, rule, found)

    def _require_measurable(self) -> None:
        assert self._now is not None, "the present state is a valid scenario"
        goals = self._question.goals
        if "latency" in goals and np.isnan(self._now[:, 1]).any():
            raise InputError(
                f"{self._question.scenario.file}: --for latency: no block is delivered after the "
                "warm-up; choose a longer duration or a shorter warm_up"
            )

    def _is_constant(self) -> bool:
        """Whether nothing in the scenario is random: two seeds give the same values."""
        assert self._now is not None, "the present state is a valid scenario"
        return bool(np.array_equal(self._now[0], self._now[-1], equal_nan=True))

    def _look(self) -> None:
        """Try every single change, the obvious candidates, and then combinations."""
        first = self._first()
        for done in range(0, len(first), _BATCH):
            self._scores(first[done : done + _BATCH])
        for _ in range(0, _COMBINED, _BATCH):
            if promising := self._promising(_BATCH):
                self._scores(promising)

    def _first(self) -> list[Candidate]:
        """The present state, each single change, and the rule with both remedies toggled."""
        singles = [
            (*self._present[:at], option, *self._present[at + 1 :])
            for at, choice in enumerate(self._space)
            for option in range(len(choice.options))
        ]
        remedied = rule = self._rule()
        for at, choice in enumerate(self._space):
            if choice.name in ("opportunistic_retransmission", "penalisation"):
                remedied = (*remedied[:at], 1, *remedied[at + 1 :])
        return [*dict.fromkeys([self._present, *singles, rule, remedied])]

    def _promising(self, count: int) -> list[Candidate]:
        """The new candidates that differ from the best in one choice, then from the second best.

        Those of the highest expected scores come first: the score should change as the single
        changes of that choice do. At most two of them differ in their buffers alone.
        """
        promising: list[Candidate] = []
        for base in sorted(self._gains, key=lambda each: (-self._score(each), each)):
            new = [each for each in self._neighbours(base) if each[1] not in self._gains]
            for _, candidate in sorted(new, key=lambda each: (-self._expected(base, *each), each)):
                alike = sum(candidate[1:] == each[1:] for each in promising)
                if candidate not in promising and alike < _ALIKE:
                    promising.append(candidate)
            if len(promising) >= count:
                break
        return promising[:count]

    def _neighbours(self, candidate: Candidate) -> Iterator[tuple[int, Candidate]]:
        """The candidates that differ in one choice, with its number."""
        for at, choice in enumerate(self._space):
            for option in range(len(choice.options)):
                yield at, (*candidate[:at], option, *candidate[at + 1 :])

    def _expected(self, base: Candidate, at: int, candidate: Candidate) -> float:
        """The score of a candidate that differs from a measured one in one choice."""
        return self._score(base) + self._alone(at, candidate) - self._alone(at, base)

    def _alone(self, at: int, candidate: Candidate) -> float:
        """The score of a candidate's option of one choice, as a single change."""
        return self._score((*self._present[:at], candidate[at], *self._present[at + 1 :]))

    def _rule(self) -> Candidate:
        """The present state with the buffers of the rule."""
        words = spaces.buffer_words(self._question.rule)
        buffers = self._space[0]
        index = buffers.words.index(words) if words in buffers.words else buffers.present
        return (index, *self._present[1:])

    def _simplest(self) -> Candidate:
        """The candidate with the fewest changes among those about as good as the best.

        Ties go to the smallest buffers, then the shortest delay. The search first tries
        to undo changes of the best candidate, and to make its buffers smaller.
        """
        best = max(self._gains, key=self._score)
        least = self._score(best) - float(np.log1p(_SAME))
        while simpler := self._undone(best):
            scores = self._scores(simpler)
            if max(scores) < least:
                break
            best = simpler[int(np.argmax(scores))]
        while best[0] > 0 and self._scores([(best[0] - 1, *best[1:])])[0] >= least:
            best = (best[0] - 1, *best[1:])
        good = [each for each in self._gains if self._score(each) >= least]
        return min(
            good,
            key=lambda each: (len(self._undone(each)), each[0], self._delays[each], each),
        )

    def _score(self, candidate: Candidate) -> float:
        """The logarithm of the gain, less what the changes must bring."""
        gain = np.log(max(self._gains[candidate], 1e-6))
        return float(gain - len(self._undone(candidate)) * np.log(worth.WORTH))

    def _undone(self, candidate: Candidate) -> list[Candidate]:
        """The candidate without each of its changes."""
        return [
            (*candidate[:at], choice.present, *candidate[at + 1 :])
            for at, choice in enumerate(self._space)
            if candidate[at] != choice.present
        ]

    def _scores(self, candidates: Sequence[Candidate]) -> list[float]:
        """The scores of candidates in the search; tiny for those that are no scenario."""
        new = [each for each in dict.fromkeys(candidates) if each not in self._gains]
        self._race(new, self._seeds[:1])
        best = max(self._gains.values())
        self._race([each for each in new if self._gains[each] >= _RIVAL * best], self._seeds)
        return [self._score(each) for each in candidates]

    def _race(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> None:
        for candidate, values in zip(candidates, self._values(candidates, seeds), strict=True):
            self._gains[candidate] = 0.0 if values is None else self._gain(values)
            self._delays[candidate] = _delay(values)

    def _gain(self, values: Numbers) -> float:
        assert self._now is not None, "the present state is a valid scenario"
        gains = aims.gains(self._question.goals, values, self._now[: len(values)])
        return float(np.exp(np.log(np.maximum(gains, 1e-6)).mean()))

    def _values(
        self, candidates: Sequence[Candidate], seeds: Sequence[int]
    ) -> list[Numbers | None]:
        return self._searcher.values(
            self._question, [self._scenario(each) for each in candidates], seeds
        )

    def _scenario(self, candidate: Candidate) -> _core.Scenario | None:
        return changed(self._question.scenario, self._keys(candidate))

    def _keys(self, candidate: Candidate) -> dict[str, Any]:
        return spaces.keys(self._space, candidate, self._connection)

    def _predicted(
        self, name: str, candidate: Candidate, values: Numbers | None, now: Numbers | None
    ) -> Predicted:
        scenario = self._scenario(candidate)
        assert scenario is not None, "the search chooses valid scenarios"
        assert values is not None, "the search chooses valid scenarios"
        assert now is not None, "the present state is a valid scenario"
        known = {
            goal.key: None if np.isnan(values[:, index]).any() else median(values[:, index])
            for index, goal in enumerate(GOALS.values())
            if goal.name != "failover" or goal.name in self._question.goals
        }
        gain = mean(aims.gains(self._question.goals, values, now), of="pairs")
        words, changes = spaces.words(self._space, candidate), len(self._undone(candidate))
        return Predicted(name, words, changes, self._keys(candidate), scenario, known, gain)


def _delay(values: Numbers | None) -> float:
    """The 95th percentile of the delays in ms; infinite if no block was delivered."""
    if values is None or np.isnan(values[:, 1]).any():
        return float("inf")
    return float(values[:, 1].mean())
