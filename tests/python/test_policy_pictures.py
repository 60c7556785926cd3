"""The pictures of the policy pages, which are drawn when the site is built."""

import subprocess
import sys
from pathlib import Path

import pytest

DRAW = Path(__file__).resolve().parents[2] / "docs/policies/draw.py"
ONE_OF_EACH_MODULE = ("redundant", "cwnd_cap", "new_reno", "initial_only")


@pytest.mark.slow
def test_a_picture_of_each_module_is_drawn(tmp_path: Path) -> None:
    command = [sys.executable, str(DRAW), *ONE_OF_EACH_MODULE, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ONE_OF_EACH_MODULE:
        assert f"{name} (" in done.stdout
        assert (tmp_path / f"{name}.svg").stat().st_size > 5_000
