"""Policies in the user's own files: in every command, in scenarios and plans, and in workers."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch
from anabranch import InputError
from anabranch.batches.reduction import Task
from anabranch.cli.main import run_command
from anabranch.results.folder import load
from anabranch.scenarios import custom
from anabranch.scenarios.overrides import Overrides
from anabranch.sweeps import several
from conftest import scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parents[2] / "examples"

POLICY = """
from pathlib import Path
from anabranch.policy import Scheduler, Send, Wait
from order_of_a_test import by_rtt

with Path(__file__).with_name("loaded").open("a") as log:
    log.write("once\\n")

class Mine(Scheduler):
    def schedule(self, ctx):
        ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
        return Send(min(ready, key=by_rtt)) if ready else Wait()

class Other(Mine):
    pass
"""
HELPER = "def by_rtt(subflow):\n    return subflow.srtt_or_max_ns()\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two scenarios that name a policy next to them, in a folder that is not the working one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine_of_a_test.py").write_text(POLICY)
    (folder / "order_of_a_test.py").write_text(HELPER)
    text = scenario("2s", scheduler="mine_of_a_test.py:Mine").to_toml()
    for name in ("one", "two"):
        (folder / f"{name}.toml").write_text(text)
    (folder / "plain.toml").write_text(scenario("2s").to_toml())
    (folder / "plan.toml").write_text(
        'scenario = "plain.toml"\nseeds = 2\n[factors]\n'
        '"connection[0].scheduler" = ["min_rtt", "mine_of_a_test.py:Mine"]\n'
    )
    for name in ("mine_of_a_test", "order_of_a_test"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def loads(folder: Path) -> int:
    return len((folder / "loaded").read_text().splitlines())


def digests(results: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in load(results).provenance["runs"]:
        found.setdefault(run["cell"], set()).add(run["digest"])
    return found


def test_a_scenario_names_a_class_in_a_file_next_to_it(folder: Path, capsys: Captured) -> None:
    assert run_command(["run", "folder/one.toml"]) == 0
    mine = capsys.readouterr().out
    assert "main uses your own scheduler mine_of_a_test.Mine" in mine
    assert run_command(["run", "folder/plain.toml"]) == 0
    (own, theirs) = (re.findall(r"digest (\w+)", text) for text in (mine, capsys.readouterr().out))
    assert own == theirs
    assert loads(folder) == 1, "one process runs the file once"


def test_standard_input_names_files_in_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    text = (folder / "one.toml").read_bytes()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run_command(["explain", "-"]) == 0
    assert "Mbit/s" in capsys.readouterr().out


def test_several_scenarios_run_with_it_in_other_processes(folder: Path) -> None:
    files = ["folder/one.toml", "folder/two.toml", "folder/plain.toml"]
    assert run_command(["run", *files, "--seeds", "2", "--out", "out"]) == 0
    found = digests(Path("out"))
    assert found["one"] == found["two"] == found["plain"]
    option = "folder/mine_of_a_test.py:Other"
    assert run_command(["run", *files, "--scheduler", option, "--out", "other"]) == 0
    assert digests(Path("other"))["plain"] <= found["plain"]
    policies = load(Path("other")).provenance["custom_policies"]
    assert {policy["name"] for policy in policies} == {"mine_of_a_test.Other"}


def test_a_plan_sweeps_over_built_in_and_own(folder: Path, capsys: Captured) -> None:
    assert run_command(["sweep", "folder/plan.toml", "--out", "out"]) == 0
    built_in, mine = digests(Path("out")).values()
    assert built_in == mine
    levels = ["scheduler", "min_rtt", "mine_of_a_test.py:Mine"]
    assert run_command(["compare", "out", "--by", *levels]) == 0
    assert "Medians over 2 pairs" in capsys.readouterr().out
    cell = next(name for name in digests(Path("out")) if "Mine" in name)
    assert run_command(["explain", "out", "--cell", cell]) == 0
    (folder / "mine_of_a_test.py").write_text(f"{POLICY}# changed\n")
    assert run_command(["explain", "out", "--cell", cell]) == 2
    assert "mine_of_a_test.py has changed since these runs" in capsys.readouterr().err


def test_an_option_changes_the_base_of_a_plan(folder: Path) -> None:
    plan = folder / "plan.toml"
    plan.write_text('scenario = "plain.toml"\n[factors]\nwarm_up = ["500ms", "1s"]\n')
    option = ["--scheduler", "folder/mine_of_a_test.py:Mine"]
    assert run_command(["sweep", str(plan), *option, "--out", "out"]) == 0
    assert load(Path("out")).provenance["custom_policies"][0]["name"] == "mine_of_a_test.Mine"


def test_everything_is_checked_before_the_first_run(folder: Path, capsys: Captured) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("py:Mine", "py:Nobody"))
    assert run_command(["sweep", str(plan), "--out", "out"]) == 2
    err = capsys.readouterr().err
    assert 'connection[0].scheduler: "mine_of_a_test.py:Nobody": no class Nobody in' in err
    assert "it has Mine and Other" in err
    assert not Path("out").exists()


def test_what_if_and_advice_start_with_it(folder: Path, capsys: Captured) -> None:
    assert run_command(["explain", "folder/one.toml", "--what-if", "--seeds", "1", "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)["what_if"]["changes"]
    gains = {each["change"]: each["goodput_mbps"] for each in changes}
    assert gains["min_rtt (scheduler)"] == 0, "the own scheduler is min_rtt"
    assert any(gains.values())


@pytest.mark.slow
def test_advice_starts_with_it(folder: Path, capsys: Captured) -> None:
    own_first = ["advise", "folder/one.toml", "--seeds", "1", "--json"]
    assert run_command(own_first) == 0
    mine = json.loads(capsys.readouterr().out)["engine"]["now"]["goodput_mbps"]
    assert run_command(["advise", "folder/plain.toml", "--seeds", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"]["now"]["goodput_mbps"] == mine


def keys(file: Path) -> set[bytes]:
    def key(task: Task) -> bytes:
        return task.key()

    return set(map(key, several.tasks([file], Overrides(), range(1, 2))[1]))


def test_the_key_of_a_run_covers_the_file_and_its_imports(folder: Path) -> None:
    found = [keys(folder / "one.toml")]
    assert keys(folder / "one.toml") == found[0]
    (folder / "order_of_a_test.py").write_text(f"{HELPER}\n# other\n")
    found.append(keys(folder / "one.toml"))
    (folder / "mine_of_a_test.py").write_text(f"{POLICY}\n# other\n")
    found.append(keys(folder / "one.toml"))
    assert len(set.union(*found)) == 3


def test_a_worker_refuses_a_file_that_has_changed(folder: Path) -> None:
    file = folder / "mine_of_a_test.py"
    made = custom.load("scheduler", f"{file}:Mine", "x")
    file.write_text(f"{POLICY}\n# other\n")
    with pytest.raises(InputError, match="changed while runs were made; repeat the command"):
        made()


def test_a_module_that_was_imported_before_is_not_run_again(folder: Path) -> None:
    code = (
        "import mine_of_a_test as m, anabranch.scenarios.custom as custom\n"
        "assert custom.load('scheduler', 'mine_of_a_test.py:Mine', 'x').made() is m.Mine\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    assert loads(folder) == 1


def test_two_files_of_one_name_are_two_policies(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    (other / "mine_of_a_test.py").write_text(POLICY.replace("min(", "max("))
    (other / "order_of_a_test.py").write_text(HELPER)
    results = {
        place: anabranch.run(
            scenario("2s", scheduler=f"{place}/mine_of_a_test.py:Mine", workload=anabranch.Bulk())
        )
        for place in ("folder", "folder/other")
    }
    one, two = results.values()
    assert one.digest != two.digest
    assert one.custom_policies[0].sha256 != two.custom_policies[0].sha256


def test_a_plan_in_python_takes_classes_and_files(folder: Path) -> None:
    plan = anabranch.Plan(
        folder / "plain.toml",
        factors={"connection[0].scheduler": ["min_rtt", "mine_of_a_test.py:Mine", Fastest]},
        seeds=[7],
    )
    made = anabranch.sweep(plan, "out")
    assert made.results.provenance["sweep"] == "plain"
    labels = made.summary()["connection[0].scheduler"].to_list()
    assert labels == ["min_rtt", "mine_of_a_test.py:Mine", "test_own_files.Fastest"]
    assert len({run["digest"] for run in made.results.provenance["runs"]}) == 1


def test_a_class_can_replace_a_policy_of_a_file(folder: Path) -> None:
    key = "connection[0].scheduler"
    run = anabranch.run(folder / "plain.toml", settings={key: Fastest})
    assert [each.name for each in run.custom_policies] == ["test_own_files.Fastest"]
    assert run.digest == anabranch.run(folder / "plain.toml").digest


_LowestRtt = custom.load("scheduler", f"{EXAMPLES}/my_scheduler.py:LowestRtt", "x").made()


class Fastest(_LowestRtt):  # type: ignore[misc, valid-type]
    """Such as a user writes it in a script."""


def test_a_plan_in_python_checks_its_values(folder: Path) -> None:
    base = folder / "plain.toml"
    with pytest.raises(InputError, match="plan: seeds: 0 is not valid"):
        anabranch.Plan(base, seeds=0)
    with pytest.raises(InputError, match='keep: unknown table "sample"; did you mean'):
        anabranch.Plan(base, keep=["sample"])
    with pytest.raises(InputError, match='unknown path "wify"; did you mean "wifi"'):
        anabranch.Plan(base, {"path.wify.rate": ["1Mbit/s"]}).tasks()
    with pytest.raises(InputError, match="top level of a module"):
        anabranch.Plan(base, {"connection[0].scheduler": [lambda: Fastest()]}).tasks()
