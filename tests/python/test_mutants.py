"""Cut and damaged input gets an answer or one line, in little time and memory."""

import subprocess
import sys
from pathlib import Path

import pytest

import mutants

pytestmark = pytest.mark.usefixtures("plain_pictures")

_FEW = {
    "analyze-captures": 4,
    "explain-captures": 16,
    "explain-texts": 30,
    "explain-folders": 10,
    "twin-captures": 5,
}
_MANY = dict.fromkeys(mutants.KINDS, 100) | {"analyze-captures": 15}
"""An analysis takes longest. mutants.py makes more by hand."""


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind, count in _FEW.items() for seed in range(count)]
)
def test_odd_input_gets_an_answer_or_one_line(kind: str, seed: int, tmp_path: Path) -> None:
    wrong, _ = mutants.fault(kind, seed, tmp_path)
    assert wrong is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*mutants.KINDS])
def test_much_odd_input_gets_an_answer_or_one_line_within_limits(kind: str) -> None:
    program = Path(mutants.__file__)
    command = [sys.executable, str(program), kind, "--from", "1000", "--count", str(_MANY[kind])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
