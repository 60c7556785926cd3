"""`analyze` and tshark count the same: over captures of runs, and over a folder of others.

ANABRANCH_CAPTURES=FOLDER pytest -m slow tests/python/test_captures_and_tshark.py
"""

import os
from pathlib import Path
from typing import Literal

import pytest

import anabranch
import captures_and_tshark as comparison

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        comparison.tshark() is None, reason="tshark is not installed (Debian package tshark)"
    ),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"duration": "5s", "warm_up": "0s"}


@pytest.mark.parametrize("example", ["wifi_3g", "two_clean_paths"])
@pytest.mark.parametrize("at", ["both", None])
def test_captures_of_runs_agree(example: str, at: Literal["both"] | None, tmp_path: Path) -> None:
    capture = tmp_path / "run.pcapng"
    scenario = EXAMPLES / f"{example}.toml"
    anabranch.run(scenario, seed=1, pcap=str(capture), pcap_at=at, settings=SHORT)
    compared = comparison.compare(capture)
    unexplained = [each for each in compared.differences if each.reason is None]
    assert unexplained == []
    assert compared.subflows >= 2


def test_captures_of_a_folder_agree_or_the_reason_is_known() -> None:
    folder = os.environ.get("ANABRANCH_CAPTURES")
    if folder is None:
        pytest.skip("ANABRANCH_CAPTURES names no folder of captures")
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    results = [comparison.compare(file) for file in files]
    for compared in results:
        comparison.show(compared)
    assert comparison.report(results) == 0
