"""The figure of a twin: what the capture and the twin's runs delivered, and their round trips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.lines import Line2D

from anabranch._core import __version__
from anabranch.reports import pictures
from anabranch.reports.figures import GREY, OF_SUBFLOWS
from anabranch.results.estimates import Sample
from anabranch.twins.fit import Fitted
from anabranch.twins.observed import Observed, PathObservation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Solid: the capture. Dashed: the runs of the twin, one line for each seed. Left: what each "
    "path had acknowledged by then. Right: the median round-trip time of each path in 60 parts of "
    "the time."
)
_BINS = 60
_THIN = 0.8


def draw(fitted: Fitted) -> Figure:
    """The figure of a twin and its capture."""
    seen = fitted.twin.seen
    with matplotlib.rc_context(pictures.RC):
        figure = pictures.NotebookFigure(figsize=(8.2, 3.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        for run in fitted.runs:
            _draw(left, right, run, dashed=True)
        _draw(left, right, seen, dashed=False)
        left.set_ylabel("acknowledged (MB)")
        right.set_ylabel("round-trip time (ms)")
        for axes in (left, right):
            axes.set_xlabel("time (s)")
            axes.set_xlim(0, seen.seconds)
            axes.set_ylim(bottom=0)
        handles = [
            Line2D([], [], color=OF_SUBFLOWS[index % len(OF_SUBFLOWS)], label=observation.name)
            for index, observation in enumerate(seen.observations)
        ]
        handles += [
            Line2D([], [], color=GREY, label="capture"),
            Line2D([], [], color=GREY, linestyle="--", linewidth=_THIN, label="twin"),
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), fontsize=8)
        runs = len(fitted.runs)
        source = f"anabranch {__version__} · {runs} run{'' if runs == 1 else 's'} of the twin"
        figure.supxlabel(source, fontsize=7, color=GREY, x=0.008, ha="left")
    return figure


def _draw(left: Axes, right: Axes, of: Observed, *, dashed: bool) -> None:
    style = {"linestyle": "--", "linewidth": _THIN} if dashed else {"linestyle": "-"}
    whose = "twin" if dashed else "capture"
    for index, observation in enumerate(of.observations):
        colour = OF_SUBFLOWS[index % len(OF_SUBFLOWS)]
        label = f"{observation.name}, {whose}"
        left.plot(observation.acked_s, observation.acked_mb, color=colour, label=label, **style)
        if observation.rtt_s.size:
            right.plot(*_medians(observation, of.seconds), color=colour, label=label, **style)


def _medians(observation: PathObservation, seconds: float) -> tuple[Sample, Sample]:
    """Middles of equal parts of the time, and the median round-trip time in each."""
    edges = np.linspace(0, seconds, _BINS + 1)
    places = np.searchsorted(edges, observation.rtt_s) - 1
    used = [place for place in range(_BINS) if (places == place).any()]
    medians = [float(np.median(observation.rtt_samples_ms[places == place])) for place in used]
    middles = (edges[:-1] + edges[1:]) / 2
    return middles[used], np.array(medians)
