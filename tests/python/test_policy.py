"""Policies written in Python: the same semantics as in Rust, determinism, and errors."""

import dataclasses
import functools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import anabranch
from anabranch import InputError, Job, PolicyError, ScenarioError, _core, policy
from anabranch.cli.main import run_command
from anabranch.policy import (
    Decision,
    Duplicate,
    PathAction,
    PathContext,
    PathEvent,
    PathManager,
    ScheduleContext,
    Scheduler,
    Send,
    SubflowId,
    SubflowView,
    Wait,
)
from anabranch.scenarios import custom, loading
from conftest import THREE_G, WIFI, scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

LowestRtt = custom.load("scheduler", f"{EXAMPLES}/my_scheduler.py:LowestRtt", "--scheduler").made()
NewReno = custom.load(
    "congestion_control", f"{EXAMPLES}/my_congestion_control.py:NewReno", "--congestion-control"
).made()
Mesh = custom.load("path_manager", f"{EXAMPLES}/my_path_manager.py:Mesh", "--path-manager").made()


def lossy(**changes: Any) -> anabranch.Scenario:
    """Loss, reordering jitter, a small window with remedies, and WiFi that disappears."""
    away = (anabranch.Change(at="3s", state="down"), anabranch.Change(at="6s", state="up"))
    wifi = dataclasses.replace(WIFI, loss="0.5%", changes=away)
    three_g = dataclasses.replace(THREE_G, loss="0.1%", jitter_model="reordering")
    settings = {
        "remedies": {"opportunistic_retransmission": True, "penalisation": "conext13"},
        "workload": anabranch.Bulk(),
    }
    base = scenario("12s", **(settings | changes))
    return dataclasses.replace(base, paths=(wifi, three_g))


def fails(duration: str = "3s", **own: Any) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        anabranch.run(scenario(duration, **own), seed=7)
    return caught.value


# ---- the same as built in -------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "built_in", "factory"),
    [
        ("scheduler", "min_rtt", LowestRtt),
        ("congestion_control", "new_reno", NewReno),
        ("path_manager", "full_mesh", Mesh),
    ],
)
def test_the_examples_do_what_the_built_in_ones_do(
    kind: str, built_in: str, factory: custom.Factory, seed: int
) -> None:
    in_python = anabranch.run(lossy(**{kind: factory}), seed)
    theirs = anabranch.run(lossy(**{kind: built_in}), seed)
    assert in_python.digest == theirs.digest
    assert in_python.connections.equals(theirs.connections)
    byte_count = in_python.subflows.group_by("path").sum().sort("path")["bytes_received"]
    assert byte_count.min() > 10_000, "both paths carried data"  # type: ignore[operator]
    assert in_python.subflows["timeouts"].sum() > 0, "an outage was gone through"
    assert in_python.subflows["recoveries"].sum() > 0, "and losses"


@pytest.mark.parametrize(
    ("kind", "built_in", "factory"),
    [("scheduler", "min_rtt", LowestRtt), ("congestion_control", "new_reno", NewReno)],
)
def test_the_examples_do_so_in_the_form_of_nsdi12_and_with_pauses(
    kind: str, built_in: str, factory: custom.Factory
) -> None:
    pauses = anabranch.Cbr(rate="100kbit/s", block_size="64KiB")
    for other in ({"workload": pauses}, {"remedies": {"penalisation": "nsdi12"}}):
        in_python = anabranch.run(lossy(**other, **{kind: factory}))
        assert in_python.digest == anabranch.run(lossy(**other, **{kind: built_in})).digest


class Everywhere(Scheduler):
    def schedule(self, ctx: ScheduleContext) -> Decision:
        return Duplicate(ctx.candidates())


def test_duplicates_go_everywhere() -> None:
    # The slow path has at most one window of copies in flight, so its window must be large.
    settings = {"send_buffer": "1MiB", "receive_buffer": "1MiB", "workload": anabranch.Bulk()}
    run = anabranch.run(scenario("5s", scheduler=Everywhere, **settings))
    sent = run.subflows["bytes_sent"]
    assert run.connections["bytes_delivered"][0] > 100_000
    assert sent.sum() > 1.3 * run.connections["bytes_delivered"][0]


class Reserve(Mesh):  # type: ignore[misc, valid-type]
    """Makes every further subflow a backup, probes it, and resets it after two seconds."""

    closed: ClassVar[list[int]] = []

    def handle_event(self, ctx: PathContext, event: PathEvent) -> None:
        match event:
            case policy.SubflowEstablished(id=subflow):
                self.actions.append(policy.SetPriority(subflow, backup=True))
                self.actions.append(policy.Probe(subflow, count=2, bytes=500))
            case policy.SubflowClosed(local_address_id=address):
                self.closed.append(address)
                return
        super().handle_event(ctx, event)

    def poll_timeout(self) -> int | None:
        return 2_000_000_000 if self.pairs else None

    def handle_timeout(self, ctx: PathContext) -> None:
        further = [view.id for view in ctx.subflows if view.backup]
        self.actions.extend(policy.Close(subflow, reset=True) for subflow in further)
        self.pairs.clear()


def test_a_path_manager_sets_priorities_probes_and_closes() -> None:
    reserve = anabranch.run(
        scenario("5s", path_manager=Reserve, direction="upload", workload=anabranch.Bulk())
    )
    wifi, three_g = reserve.subflows.sort("path").iter_rows(named=True)
    assert wifi["bytes_sent"] > 10**6
    assert three_g["bytes_sent"] == 1_000, "a backup carries the two probes only"
    assert 1 in Reserve.closed


# ---- what a policy sees ---------------------------------------------------------------------


def rust_fields(file: str, kind: str) -> set[str]:
    """Names of the fields of a struct or a struct-like variant."""
    text = (ROOT / "crates/anabranch-proto/src" / file).read_text()
    found = re.search(rf"^( *)(?:pub struct )?{kind}(?:<'a>)? {{\n(.*?)^\1}}", text, re.M | re.S)
    assert found, kind
    fields = re.findall(r"^\s*(?:pub )?(\w+): ([^\n]+),$", found[2], re.M)
    timed = re.compile(r"^(Option<)?(Instant|Duration)>?$")
    return {f"{name}_ns" if timed.match(type_) else name for name, type_ in fields}


def python_fields(kind: type) -> set[str]:
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return {
        name for name, value in vars(kind).items() if type(value).__name__ == "getset_descriptor"
    }


VIEWS = {
    "view.rs": ["SubflowId", "SubflowView"],
    "scheduler/mod.rs": ["ScheduleContext", "LinuxView", "NewData", "Reinjection", "Wait"],
    "congestion/mod.rs": ["Start", "AckSample", "Recovery", "Timeout", "Idle", "MssChanged"],
    "path_manager/mod.rs": [
        *("LocalAddress", "Established", "SubflowTimeout", "SubflowClosed", "AddressAnnounced"),
        *("AddressWithdrawn", "AddressChanged", "Open", "Close", "SetPriority", "Announce"),
        *("Remove", "Probe"),
    ],
}


@pytest.mark.parametrize(("file", "kind"), [(f, k) for f, kinds in VIEWS.items() for k in kinds])
def test_fields_are_those_of_the_engine(file: str, kind: str) -> None:
    extra = {"ScheduleContext": {"rng"}, "Start": {"rng"}, "SubflowView": {"path"}}.get(kind, set())
    # Policies in Python get a generator instead of a random number.
    fields = rust_fields(file, kind) - {"random"} | extra
    assert python_fields(getattr(policy, kind)) == fields


def variants(file: str, enum: str) -> set[str]:
    text = (ROOT / "crates/anabranch-proto/src" / file).read_text()
    body = re.search(rf"^pub enum {enum}(?:<'a>)? {{\n(.*?)^}}", text, re.M | re.S)
    assert body
    return set(re.findall(r"^    (\w+)", body[1], re.M))


@pytest.mark.parametrize(
    ("file", "enum", "union"),
    [
        ("scheduler/mod.rs", "Pending", policy.Pending),
        ("scheduler/mod.rs", "Decision", policy.Decision),
        ("congestion/mod.rs", "CongestionEvent", policy.CongestionEvent),
        ("path_manager/mod.rs", "PathEvent", policy.PathEvent),
        ("path_manager/mod.rs", "PathAction", policy.PathAction),
    ],
)
def test_kinds_are_those_of_the_engine(file: str, enum: str, union: Any) -> None:
    assert {kind.__name__ for kind in union.__args__} == variants(file, enum)


class Curious(Scheduler):
    """Reads every field once data flows on both paths."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def schedule(self, ctx: ScheduleContext) -> Decision:
        if len(ctx.candidates()) == 2 and not self.seen and ctx.now_ns > 10**9:
            fields = {name: getattr(ctx, name) for name in python_fields(ScheduleContext)}
            views = [{n: getattr(v, n) for n in python_fields(SubflowView)} for v in ctx.subflows]
            self.seen.append({**fields, "views": views})
            assert ctx.subflows is ctx.subflows
            fastest = ctx.fastest()
            assert fastest is not None
            assert fastest.srtt_ns == min(view["srtt_ns"] for view in views)
            assert not any(ctx.has_carried(view) for view in ctx.subflows)
        ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
        return Send(ready[0].id) if ready else Wait()


def test_a_scheduler_sees_the_connection() -> None:
    Curious.seen.clear()
    anabranch.run(scenario("3s", scheduler=Curious))
    (seen,) = Curious.seen
    assert seen["now_ns"] > 10**9
    assert seen["window"] == 204_800
    assert isinstance(seen["pending"], policy.NewData)
    wifi, three_g = seen["views"]
    assert (wifi["id"], three_g["id"]) == (SubflowId(0, 0), SubflowId(1, 1))
    assert (wifi["path"], three_g["path"]) == ("wifi", "3g")
    assert wifi["usability"] == "usable"
    assert wifi["phase"] in ("open", "recovery")
    assert 20_000_000 < wifi["min_rtt_ns"] < 40_000_000
    assert 100_000_000 < three_g["min_rtt_ns"] < 300_000_000
    assert wifi["mss"] > 1_300
    assert wifi["bottleneck"] == "unknown"


class Ahead(Scheduler):
    """Assigns 100 kB to each subflow in turn, ahead of its window."""

    most: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.bytes = 0

    def schedule(self, ctx: ScheduleContext) -> Decision:
        self.most.append(max(ctx.assigned))
        usable = ctx.candidates()
        if not usable:
            return Wait()
        return policy.Assign(usable[self.bytes // 100_000 % len(usable)])

    def on_sent(self, subflow: SubflowId, byte_count: int) -> None:
        self.bytes += byte_count


def test_data_can_be_assigned_ahead_of_the_window() -> None:
    Ahead.most.clear()
    run = anabranch.run(scenario("5s", scheduler=Ahead, workload=anabranch.Bulk()))
    assert max(Ahead.most) > 30_000
    assert run.connections["bad_decisions"].sum() == 0
    assert run.connections["bytes_delivered"][0] > 500_000


# ---- who gets an object, and randomness -----------------------------------------------------


class Registered(LowestRtt):  # type: ignore[misc, valid-type]
    made: ClassVar[list["Registered"]] = []

    def __init__(self) -> None:
        self.bytes = 0
        self.made.append(self)

    def on_sent(self, subflow: SubflowId, byte_count: int) -> None:
        assert subflow.generation == subflow.slot
        self.bytes += byte_count


def test_each_end_of_each_connection_has_an_object_of_its_own() -> None:
    one = scenario("2s", scheduler=Registered, workload=anabranch.Bulk())
    two = (*one.connections, dataclasses.replace(one.connections[0], name="other"))
    Registered.made.clear()
    run = anabranch.run(dataclasses.replace(one, connections=two))
    assert len(Registered.made) == 4
    senders = sorted(each.bytes for each in Registered.made)
    assert senders[:2] == [0, 0]
    assert all(byte_count > 10_000 for byte_count in senders[2:])
    assert len(run.connections) == 2


class Dice(Scheduler):
    def schedule(self, ctx: ScheduleContext) -> Decision:
        ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
        return Send(ctx.rng.choice(ready)) if ready else Wait()


def test_random_decisions_follow_from_the_seed_in_every_process() -> None:
    jobs = [Job(scenario("2s", scheduler=Dice), seed) for seed in (1, 2, 1)]
    here = [anabranch.run(job.scenario, job.seed).digest for job in jobs]
    there = anabranch.run_many(jobs, lambda _, run: (run.digest, os.getpid()), workers=2)
    assert here[0] == here[2] != here[1]
    assert [digest for digest, _ in there] == here


# ---- errors ---------------------------------------------------------------------------------


class Breaks(LowestRtt):  # type: ignore[misc, valid-type]
    def schedule(self, ctx: ScheduleContext) -> Decision:
        if ctx.now_ns > 10**9:
            return broken_helper()
        return super().schedule(ctx)  # type: ignore[no-any-return]


def broken_helper() -> Decision:
    raise ZeroDivisionError("the flux ran out")


def test_an_exception_ends_the_run_with_its_traceback() -> None:
    error = fails(scheduler=Breaks)
    cause = error.__cause__
    assert isinstance(cause, ZeroDivisionError)
    frames = []
    traceback = cause.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames == ["schedule", "broken_helper"]
    text = str(error)
    for word in ("Breaks", '"main"', "server", "1.0", "seed 7", "the flux ran out", __file__):
        assert word in text
    assert len(text.splitlines()) == 1


def test_an_exception_in_a_worker_process_arrives_with_its_traceback() -> None:
    with pytest.raises(PolicyError, match="the flux ran out") as caught:
        anabranch.run_many([Job(scenario("2s", scheduler=Breaks), 1)] * 2, lambda _, run: run)
    assert "broken_helper" in str(caught.value.__cause__)


class Interrupted(LowestRtt):  # type: ignore[misc, valid-type]
    def schedule(self, ctx: ScheduleContext) -> Decision:
        if ctx.now_ns > 10**9:
            signal.raise_signal(signal.SIGINT)
        return super().schedule(ctx)  # type: ignore[no-any-return]


def test_an_interrupt_ends_the_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        anabranch.run(scenario(scheduler=Interrupted))


class Idle(PathManager):
    """Is not called after the start, so that only the run loop can notice a signal."""

    def handle_event(self, ctx: PathContext, event: PathEvent) -> None:
        pass

    def poll_action(self) -> PathAction | None:
        return None


def test_an_interrupt_is_noticed_while_policies_are_idle() -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        anabranch.run(scenario("100000s", path_manager=Idle, workload=anabranch.Bulk()))
    timer.join()


def answering(answer: Callable[[ScheduleContext], Any]) -> type[Scheduler]:
    class Answers(Scheduler):
        def schedule(self, ctx: ScheduleContext) -> Decision:
            return answer(ctx)  # type: ignore[no-any-return]

    return Answers


@pytest.mark.parametrize("answer", [3, None, "wifi", [1]])
def test_a_wrong_decision_is_explained(answer: object) -> None:
    error = fails(scheduler=answering(lambda _: answer))
    assert isinstance(error.__cause__, TypeError)
    assert f"schedule() returned {answer!r} ({type(answer).__name__})" in str(error)
    assert "Send(subflow), Assign(subflow), Duplicate(subflows) or Wait(until_ns=None)" in str(
        error
    )


def test_a_subflow_is_named_by_its_view_or_identifier() -> None:
    error = fails(scheduler=answering(lambda _: Send(0)))  # type: ignore[arg-type]
    assert "0 (int): name a subflow by its SubflowView or SubflowId" in str(error)
    with pytest.raises(ValueError, match="slot 32: must be at most 31"):
        SubflowId(32)


def test_identifiers_are_ordered() -> None:
    second, stale, first = SubflowId(1), SubflowId(0), SubflowId(0, generation=1)
    assert sorted([second, first, stale]) == [stale, first, second]


@pytest.mark.parametrize(
    "answer",
    [
        lambda ctx: Send(SubflowId(31)),
        lambda ctx: Send(SubflowId(0, generation=9)),
        lambda ctx: Duplicate([]),
        lambda ctx: Wait(),
        lambda ctx: Wait(until_ns=ctx.now_ns),
    ],
)
def test_a_bad_decision_is_counted_and_nothing_hangs(
    answer: Callable[[ScheduleContext], Decision],
) -> None:
    run = anabranch.run(scenario(scheduler=answering(answer)))
    assert run.connections["bad_decisions"][0] > 0
    assert run.connections["bytes_delivered"][0] > 0


class Fractional(NewReno):  # type: ignore[misc, valid-type]
    def on_ack(self, *arguments: Any) -> None:
        super().on_ack(*arguments)
        self.cwnd *= 1.01


class Shut(NewReno):  # type: ignore[misc, valid-type]
    def on_ack(self, *arguments: Any) -> None:
        self.cwnd = 10


class Endless(Idle):
    def poll_action(self) -> PathAction | None:
        return policy.Close(SubflowId(9))


class Clockless(Idle):
    def poll_timeout(self) -> int | None:
        return 0.5  # type: ignore[return-value]


class Verbose(Idle):
    def poll_action(self) -> PathAction | None:
        return "open"  # type: ignore[return-value]


class Halved(Idle):
    """Inherits a method that it must implement."""

    poll_action = PathManager.poll_action


@pytest.mark.parametrize(
    ("kind", "factory", "words"),
    [
        ("congestion_control", Fractional, "cwnd is .* \\(float\\); it must be a number of bytes"),
        ("congestion_control", Shut, "cwnd = 10: the window must be at least one segment"),
        ("congestion_control", lambda start: 5, "which has no cwnd; a congestion control is"),
        ("path_manager", Endless, "256 actions in a row; return None"),
        ("path_manager", Clockless, "poll_timeout\\(\\) returned 0.5 \\(float\\)"),
        (
            "path_manager",
            Verbose,
            "poll_action\\(\\) returned 'open' \\(str\\); return Open, Close",
        ),
        ("path_manager", PathManager, "abstract"),
        ("scheduler", dict, "returned {} \\(dict\\), which has no schedule"),
    ],
)
def test_what_is_wrong_with_a_policy_is_explained(kind: str, factory: Any, words: str) -> None:
    assert re.search(words, str(fails(**{kind: factory})))


# ---- scenarios, provenance, processes -------------------------------------------------------


def test_a_scenario_names_what_it_was_given() -> None:
    text = scenario(scheduler=Dice).to_toml()
    assert 'scheduler = "custom:test_policy.Dice"' in text
    named = _core.Scenario.parse(text, "own.toml")
    assert 'scheduler = "custom:test_policy.Dice"' in named.to_toml()
    with pytest.raises(
        ScenarioError, match=r"custom:test_policy\.Dice.*none was passed with the run"
    ):
        _core.run(named, 1)
    wrong = r'own.toml: connection\[0\].scheduler: "test_policy.Dice": your own policy needs a file'
    with pytest.raises(ScenarioError, match=wrong):
        loading.of_text(text, "own.toml")
    partial = functools.partial(NewReno, 3, gain=0.5)
    assert custom.name_of(partial) == "my_congestion_control.NewReno(3, gain=0.5)"


def test_an_object_in_place_of_a_class_is_refused() -> None:
    with pytest.raises(InputError, match="give a name, or the class of your policy"):
        scenario(scheduler=Dice()).to_toml()


def test_a_changed_key_cannot_give_two_policies_one_name() -> None:
    first = anabranch.Connection(name="a", scheduler=lambda: LowestRtt(), workload=anabranch.Bulk())
    both = (first, dataclasses.replace(first, name="b", scheduler="min_rtt"))
    base = dataclasses.replace(scenario(), connections=both)
    with pytest.raises(InputError, match="two of your policies have the name"):
        anabranch.run(base, settings={"connection.b.scheduler": lambda: Dice()})


def test_a_run_remembers_whose_policies_it_had() -> None:
    (mine,) = anabranch.run(scenario(congestion_control=NewReno)).custom_policies
    assert (mine.connection, mine.kind) == ("main", "congestion_control")
    assert mine.name == "my_congestion_control.NewReno"
    assert mine.file == str(EXAMPLES / "my_congestion_control.py")
    assert mine.sha256 is not None
    assert anabranch.run(scenario()).custom_policies == ()


@pytest.mark.parametrize("factory", [lambda: Dice(), answering(lambda _: Wait())])
def test_a_policy_that_no_process_can_import_is_refused(factory: Any) -> None:
    jobs = [Job(scenario("1500ms", scheduler=factory), seed) for seed in (1, 2)]
    with pytest.raises(InputError, match="define it at the top level of a module"):
        anabranch.run_many(jobs, lambda _, run: run)


def test_a_wrong_scenario_in_a_process_is_explained() -> None:
    jobs = [Job(scenario(duration, scheduler=Dice), 1) for duration in ("2s", "-1s")]
    with pytest.raises(ScenarioError, match="duration"):
        anabranch.run_many(jobs, lambda _, run: run)


# ---- the command line -----------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "short.toml"
    file.write_text(scenario().to_toml())
    return file


def digest(capsys: pytest.CaptureFixture[str]) -> str:
    found = re.search(r"digest (\w+)", capsys.readouterr().out)
    assert found
    return found[1]


def test_the_command_takes_policies_from_files(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", str(file)]) == 0
    built_in = digest(capsys)
    mine = ["--scheduler", f"{EXAMPLES}/my_scheduler.py:LowestRtt"]
    assert run_command(["run", str(file), *mine, "--out", str(tmp_path / "out")]) == 0
    assert digest(capsys) == built_in

    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    (policy,) = provenance["custom_policies"]
    assert (policy["kind"], policy["name"]) == ("scheduler", "my_scheduler.LowestRtt")
    assert "my_scheduler.LowestRtt" in (tmp_path / "out" / "report.html").read_text()

    (again,) = (tmp_path / "out" / "scenarios").glob("*.toml")
    assert run_command(["run", str(again)]) == 0
    assert digest(capsys) == built_in
    assert run_command(["explain", str(tmp_path / "out")]) == 0


def test_the_command_shows_the_traceback(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "breaking.py"
    code.write_text(
        "class Breaks:\n    def schedule(self, ctx):\n        return ctx.subflows[99]\n"
    )
    assert run_command(["run", str(file), "--scheduler", f"{code}:Breaks"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert any("ctx.subflows[99]" in line for line in lines)
    assert lines[-1].startswith(f"anabranch: scheduler {code}:Breaks of connection")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("my_scheduler.py", "write FILE.py:CLASS"),
        ("nowhere.py:Mine", f"nowhere.py:Mine: no file {ROOT}/nowhere.py"),
        (f"{EXAMPLES}/my_scheduler.py:Lowest", "my_scheduler.py; it has LowestRtt"),
        (f"{EXAMPLES}/wifi_3g.toml:Lowest", "must end in .py"),
        (f"{EXAMPLES}/my_path_manager.py:Mesh", "Mesh is not a scheduler: it lacks schedule"),
    ],
)
def test_a_wrong_option_is_explained(
    option: str,
    words: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    assert run_command(["run", str(file), "--scheduler", option]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_python_code_is_explained(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "wrong.py"
    code.write_text("class Mine(:\n")
    assert run_command(["run", str(file), "--scheduler", f"{code}:Mine"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r"wrong\.py: SyntaxError: .*line 1", last)


def test_a_file_does_not_take_the_place_of_another_module(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import random

    code = tmp_path / "random.py"
    code.write_text((EXAMPLES / "my_scheduler.py").read_text())
    assert run_command(["run", str(file), "--scheduler", f"{code}:LowestRtt"]) == 0
    assert "random.LowestRtt" in capsys.readouterr().out
    assert sys.modules["random"] is random
