"""A run depends on version, scenario and seed, but not on how the engine was built or driven."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch import _core

ROOT = Path(__file__).parents[2]

SCENARIO = """
name = "digest"
duration = "10s"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
loss = "0.5%"

[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "80ms"
jitter = "50ms"
jitter_model = "reordering"

[[connection]]
send_buffer = "200KiB"
receive_buffer = "200KiB"
congestion_control = "cubic"
remedies = { opportunistic_retransmission = true, penalisation = "conext13" }
workload = { kind = "blocks" }
"""


def digest(seed: int = 1) -> str:
    return str(_core.run(_core.Scenario.parse(SCENARIO, "digest.toml"), seed)["digest"])


def test_two_runs_with_one_seed_are_the_same_and_with_two_seeds_are_not() -> None:
    assert digest() == digest()
    assert digest(1) != digest(2)


def test_the_number_of_threads_makes_no_difference() -> None:
    seeds = range(8)
    alone = [digest(seed) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(digest, seeds)) == alone


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
@pytest.mark.parametrize(("profile", "folder"), [("dev", "debug"), ("release", "release")])
def test_debug_and_release_builds_agree(profile: str, folder: str, tmp_path: Path) -> None:
    # The module has one of the two profiles; the profile dev checks overflows and assertions.
    file = tmp_path / "digest.toml"
    file.write_text(SCENARIO)
    build = ["cargo", "build", "--quiet", "--profile", profile, "--workspace"]
    subprocess.run([*build, "--bin", "anabranch-bench"], cwd=ROOT, check=True)
    command = [str(ROOT / "target" / folder / "anabranch-bench"), str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["digest"] == digest()
