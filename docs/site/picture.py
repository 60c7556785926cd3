"""Draw the picture at the top of the README: the effect of a second path on goodput and delay.

    python docs/site/picture.py

Runs the scenario of the tutorial in four forms and writes docs/img/phone.svg.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.figure import Figure

from anabranch import Blocks, Connection, NetworkPath, Scenario, run
from anabranch.reports import pictures
from anabranch.reports.figures import BLUE, GREEN, GREY, RED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = Path(__file__).resolve().parents[1] / "img/phone.svg"

WIFI = NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets")
THREE_G = NetworkPath(name="3g", rate="2Mbit/s", delay="75ms", limit="334packets", jitter="50ms")
BOTH = Connection(
    name="download",
    send_buffer="200KiB",
    receive_buffer="200KiB",
    workload=Blocks(block_size="8KiB"),
)
REMEDIES = {"opportunistic_retransmission": True, "penalisation": "conext13"}
FORMS = {
    "TCP over WiFi": (replace(BOTH, protocol="tcp", paths=("wifi",)), BLUE),
    "TCP over 3G": (replace(BOTH, protocol="tcp", paths=("3g",)), GREY),
    "Multipath TCP over both": (BOTH, RED),
    "both, with two remedies": (replace(BOTH, remedies=REMEDIES), GREEN),
}


def main() -> None:
    """Run the four forms and draw them."""
    rows = {}
    for form, (connection, _) in FORMS.items():
        scenario = Scenario(
            name="phone",
            duration="60s",
            warm_up="5s",
            paths=(WIFI, THREE_G),
            connections=(connection,),
        )
        rows[form] = run(scenario).summary().row(0, named=True)
    with matplotlib.rc_context(pictures.RC):
        figure = Figure(figsize=(8, 2.1), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        left.invert_yaxis()
        goodput = [row["goodput_mbps"] for row in rows.values()]
        delay = [row["delay_p95_ms"] for row in rows.values()]
        bars(left, goodput, "goodput (Mbit/s)", "{:.1f}")
        bars(right, delay, "95th percentile of the delay of an 8 KiB block (ms)", "{:.0f}")
    FILE.write_bytes(pictures.rendered(figure, "svg"))


def bars(axes: Axes, values: list[float], label: str, form: str) -> None:
    """Draw a bar for each form, with its value."""
    drawn = axes.barh(list(FORMS), values, color=[colour for _, colour in FORMS.values()])
    axes.bar_label(drawn, [form.format(value) for value in values], padding=3)
    axes.set_xlabel(label)
    axes.set_xlim(0, 1.12 * max(values))
    axes.grid(visible=False)


if __name__ == "__main__":
    main()
