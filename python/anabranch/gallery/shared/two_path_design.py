"""Shared by the entries with an experimental design of two paths: settings, links, and benefit.

The factors are the capacity, round-trip time and queueing delay of each of two disjoint paths.
The factors and ranges come from Paasch et al., CoNEXT 2013, as quoted for CSWS 2014. The low-BDP
environment and the high-BDP environment have different ranges.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs
from anabranch.gallery.entry import Cell, Cells, Factors, Tier
from anabranch.gallery.measures import by_seed, derived, mean
from anabranch.gallery.metrics import GOODPUT, Metric
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.reports.figures import BLACK, Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.scenario import Connection, NetworkPath
from anabranch.sweeps import design
from anabranch.sweeps.design import Range

LOW, HIGH = "low-BDP", "high-BDP"
ENVIRONMENTS = (LOW, HIGH)
DESIGN_SEED = 2013

TCP_ONE, TCP_TWO = "TCP over path one", "TCP over path two"
BASELINES: Mapping[str, tuple[str, ...]] = {TCP_ONE: ("one",), TCP_TWO: ("two",)}

_CAPACITY_MBPS = Range(0.1, 100)
_RTT_MS = {LOW: Range(0, 50), HIGH: Range(0, 400)}
_QUEUE_MS = {LOW: Range(0, 100), HIGH: Range(0, 2000)}
_SMALLEST_QUEUE_MS = 1.0


@dataclass(frozen=True)
class Point:
    """One setting of the design."""

    environment: str
    number: int
    paths: tuple[NetworkPath, NetworkPath]
    capacities_mbps: tuple[float, float]

    @property
    def name(self) -> str:
        """The name of the setting, unique in the design."""
        return f"{self.environment} {self.number:03}"


@cache
def points(environment: str, count: int) -> tuple[Point, ...]:
    """`count` settings of an environment."""
    unit = design.wsp(count, 6, DESIGN_SEED)
    capacity = _CAPACITY_MBPS.scaled(unit[:, :2])
    rtt = _RTT_MS[environment].scaled(unit[:, 2:4])
    queue = _QUEUE_MS[environment].scaled(unit[:, 4:])
    settings = np.stack((capacity, rtt, queue), axis=2).tolist()
    return tuple(
        Point(environment, number, (_path("one", *one), _path("two", *two)), (one[0], two[0]))
        for number, (one, two) in enumerate(settings)
    )


def _path(name: str, mbps: float, rtt_ms: float, queue_ms: float) -> NetworkPath:
    limit_ms = max(queue_ms, _SMALLEST_QUEUE_MS)
    return network_path(name, f"{mbps:.3f}Mbit/s", f"{rtt_ms / 2:.3f}ms", f"{limit_ms:.3f}ms")


at = Factors("curve", "environment")
"""The factors that name a curve in an environment."""


def cell(tier: Tier, point: Point, curve: str, connection: Connection) -> Cell:
    """The cell of a curve in a setting."""
    return tier.cell(
        at(curve, point.environment) | {"point": point.name},
        point.paths,
        connection,
        words=(curve, point.name),
        sample_interval="1s",
    )


def bulk_cells(
    counts: Mapping[str, int],
    buffers: Mapping[str, str],
    settings: Mapping[str, Mapping[str, Any]],
    only_high: Sequence[str] = (),
) -> Cells:
    """Endless transfers in every setting of both environments: all curves and both baselines.

    `counts` are the numbers of settings by tier, `buffers` the sizes of both buffers by
    environment, and `settings` those of the connection by curve. The curves `only_high` run in the
    high-BDP environment only.
    """
    everywhere = (*(curve for curve in settings if curve not in only_high), *BASELINES)

    def cells(tier: Tier) -> list[Cell]:
        return [
            cell(
                tier,
                point,
                curve,
                flow(BASELINES.get(curve), buffers=buffers[environment], **settings.get(curve, {})),
            )
            for environment in ENVIRONMENTS
            for point in points(environment, counts[tier.name])
            for curve in (*everywhere, *(only_high if environment == HIGH else ()))
        ]

    return cells


def medians(results: Results, metric: str, **factors: Factor) -> dict[str, float]:
    """The median over seeds of a metric for each setting, for the runs with these factors.

    Raises:
        NothingMeasured: if no such run has the metric.
    """
    rows = results.rows("runs", **factors).drop_nulls(metric)
    if rows.is_empty():
        raise NothingMeasured(f"no {metric} was measured for {factors}")
    table = rows.group_by("point").agg(pl.col(metric).median()).sort("point")
    return dict(table.iter_rows())


@by_seed
def by_setting(results: Results, metric: Metric, cell: Mapping[str, Factor]) -> Sample:
    """The median over seeds of a metric, in its unit, for each setting; see `medians`."""
    return np.array(list(medians(results, metric.column, **cell).values())) * metric.scale


@by_seed
def benefits(results: Results, curve: str, environment: str) -> Sample:
    """Aggregation benefit of a curve in each setting of an environment.

    C are the goodputs of TCP over each path alone, and G is the goodput of the curve. The benefit
    is (G − max C) / (ΣC − max C) if G ≥ max C, else (G − max C) / max C. It is −1 without any
    goodput, 0 at the goodput of the better path, and 1 at the sum. It may exceed 1.
    Kaspar, 2012; Paasch et al., CoNEXT 2013.
    """
    alone = [medians(results, GOODPUT.column, **at(each, environment)) for each in BASELINES]
    together = medians(results, GOODPUT.column, **at(curve, environment))
    values = [
        benefit(goodput, [each.get(point, 0.0) for each in alone])
        for point, goodput in together.items()
    ]
    return np.array([value for value in values if value is not None])


def gain(more: str, less: str) -> Measure:
    """The mean difference of the benefit over high-BDP settings, with an interval over settings."""
    return mean(derived(np.subtract, benefits(more, HIGH), benefits(less, HIGH)), of="settings")


def benefits_in_words(
    results: Results, curves: Iterable[str], words: Callable[[Sample], str]
) -> str:
    """The median benefit of each curve in each environment; `words` are those of a curve's."""
    sentences = []
    for environment in ENVIRONMENTS:
        found = (f"{curve} {words(benefits(curve, environment)(results))}" for curve in curves)
        sentences.append(f"{environment}: median benefit {', '.join(found)}.")
    return " ".join(sentences)


def benefit(goodput: float, alone: Sequence[float]) -> float | None:
    """Aggregation benefit of a goodput; `None` if TCP alone carried nothing over a path."""
    best, total = max(alone), sum(alone)
    if best <= 0 or total <= best:
        return None
    scale = total - best if goodput >= best else best
    return (goodput - best) / scale


def both_used(*curves: str) -> Needs:
    """The precondition that `main` used both paths in at least nine of ten runs of each curve.

    In some settings, one path is so slow, or its queue so short, that a good scheduler leaves it
    idle.
    """

    def reason(results: Results) -> str | None:
        for curve in curves:
            rows = results.rows("runs", curve=curve, connection="main")
            used = rows.filter((pl.col("share_one") > 0) & (pl.col("share_two") > 0)).height
            if used < 0.9 * rows.height:
                return f"{curve}: both paths carried bytes in only {used} of {rows.height} runs"
        return None

    return reason


def draw_benefits(environment: str, styles: Mapping[str, Style]) -> panels.Draw:
    """Cumulative distributions of the benefit over the settings of an environment."""
    drawn = {curve: (benefits(curve, environment), style) for curve, style in styles.items()}
    marks = {0.0: "best path", 1.0: "sum"}
    return panels.settings(drawn, "aggregation benefit", marks, span=(-1, 1.5))


def draw_boxes(styles: Mapping[str, Style]) -> panels.Draw:
    """Box plots of the benefit in each environment."""

    def draw(results: Results, axes: panels.Axes) -> None:
        width = 0.8 / len(styles)
        for index, (curve, style) in enumerate(styles.items()):
            data = [benefits(curve, environment)(results) for environment in ENVIRONMENTS]
            centres = [place + (index - (len(styles) - 1) / 2) * width for place in (0, 1)]
            boxes = axes.boxplot(
                data, positions=centres, widths=0.8 * width, whis=(5, 95), sym="", patch_artist=True
            )
            for box in boxes["boxes"]:
                box.set(facecolor=style.colour, alpha=0.5, edgecolor=style.colour)
            for middle in boxes["medians"]:
                middle.set(color=BLACK)
            axes.plot([], [], label=curve, **style.line_arguments())
        axes.set_xticks([0, 1], ENVIRONMENTS)
        axes.set_xlim(-0.5, 1.5)
        axes.axhline(0, **panels.MARK)
        axes.axhline(1, **panels.MARK)
        axes.set_ylabel("aggregation benefit")

    return draw


def panels_of_benefits(low: str, high: str, styles: Mapping[str, Style]) -> panels.Drawings:
    """The benefit in both environments, whose titles are `low` and `high`."""
    return {
        high: draw_benefits(HIGH, styles),
        low: draw_benefits(LOW, styles),
        "Both environments": draw_boxes(styles),
    }
