"""Draw the memory of `make soak-live` over time, from its CSV files, into docs/img/endurance.svg.

.venv/bin/python studies/endurance.py [FOLDER]      the default folder is target/soak-live
"""

import sys
from pathlib import Path

import polars as pl
from matplotlib import pyplot as plt

from anabranch.reports import figures, pictures

PHASES = {
    "transfer": "one transfer of 10 GB",
    "connections": "200 connections of 5 MB",
    "flaps": "a path down every other second",
}
ROLES = {
    "engine-to-kernel": ("engine to Linux", figures.BLUE),
    "kernel-to-engine": ("Linux to engine", figures.ORANGE),
}


def main() -> None:
    """Draw all phases side by side."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "target/soak-live")
    with plt.rc_context(pictures.RC):
        figure, all_axes = plt.subplots(1, len(PHASES), figsize=(9, 2.6), layout="constrained")
        for axes, (phase, title) in zip(all_axes, PHASES.items(), strict=True):
            for role, (label, colour) in ROLES.items():
                memory = pl.read_csv(folder / f"{phase}-{role}.csv")
                megabytes = memory["resident_bytes"] / 1e6
                axes.plot(memory["seconds"], megabytes, color=colour, label=label)
            axes.set(title=title, xlabel="time (s)", ylim=(0, None))
            axes.title.set_fontsize(8)
        all_axes[0].set_ylabel("resident memory (MB)")
        all_axes[0].legend(fontsize=7)
        figure.savefig(Path(__file__).resolve().parents[1] / "docs/img" / "endurance.svg")


if __name__ == "__main__":
    main()
