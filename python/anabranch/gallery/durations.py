"""How long each entry takes, measured once, for `anabranch list`."""

from __future__ import annotations

SECONDS: dict[str, tuple[float, float]] = {
    "nsdi12-fig7": (24, 48),
    "cs244-bandwidth-ratio": (38, 120),
    "cs244-jitter": (24, 79),
    "nsdi12-fig4": (20, 66),
    "nsdi12-scenarios": (40, 640),
    "nsdi11-lia": (39, 150),
    "conext12-olia": (14, 110),
    "balia": (34, 220),
    "sigcomm11-fattree": (30, 600),
    "conext13-design": (70, 3500),
    "conext17-ecf": (22, 180),
    "csws14-schedulers-bulk": (39, 2400),
    "csws14-schedulers-applimited": (1.9, 52),
    "csws14-nornet": (1.3, 8),
    "ferlin14-bufferbloat": (0.83, 5),
    "ferlin14-drepas": (6, 39),
    "grinnemo15-cloud-latency": (21, 100),
    "networking16-blest": (36, 89),
    "rfc8382-sbd": (12, 180),
    "veerman12-lan": (58, 700),
    "veerman12-wan": (89, 680),
    "veerman12-fairness": (74, 350),
    "veerman12-unscaled": (71, 570),
    "veerman12-parallel": (9.2, 74),
    "ipv4-ipv6": (10, 40),
    "cellnet12-handover": (3.4, 13),
    "icc16-redundant": (3, 30),
    "imc13-wireless": (10, 20),
    "icnp12-wvegas": (10, 41),
    "field-reports": (53, 570),
    "linux-today": (360, 7800),
    "linux-small-path": (180, 3200),
}
"""Time of the quick and of the full tier in s, of an entry by name.

The full tier was measured on a machine with two cores (docs/gallery.md). The quick tier is in
proportion to the simulated time. Live entries take the time of their runs.
"""


def words(seconds: float) -> str:
    """A time in words, such as ``"40 s"``, ``"12 min"`` or ``"1.5 h"``."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
