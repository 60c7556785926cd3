"""Compare the remedies against a full receive window, in thirty lines of Python.

.venv/bin/python examples/compare_remedies.py
"""

from typing import Any

import anabranch
from anabranch.results import metrics

PATHS = (
    anabranch.NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="80ms"),
    anabranch.NetworkPath(name="3g", rate="2Mbit/s", delay="75ms", limit="2s"),
)

REMEDIES: dict[str, dict[str, Any]] = {
    "none": {},
    "M1": {"opportunistic_retransmission": True},
    "M2": {"penalisation": "conext13"},
    "M1,2": {"opportunistic_retransmission": True, "penalisation": "conext13"},
}


def scenario(name: str) -> anabranch.Scenario:
    connection = anabranch.Connection(
        send_buffer="200KiB",
        receive_buffer="200KiB",
        workload=anabranch.Blocks(block_size="8KiB"),
        remedies=REMEDIES[name],
    )
    return anabranch.Scenario(
        name=name, duration="65s", warm_up="5s", paths=PATHS, connections=(connection,)
    )


def main() -> None:
    print(f"{'remedy':8}{'goodput Mbit/s':>16}{'mean delay ms':>16}{'over 3G':>10}")
    for name in REMEDIES:
        row = metrics.connection_row(anabranch.run(scenario(name), seed=1))
        print(
            f"{name:8}{row['goodput_mbps']:16.2f}{row['delay_mean_ms']:16.1f}"
            f"{row['share_3g']:10.1%}"
        )


if __name__ == "__main__":
    main()
