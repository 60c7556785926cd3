import dataclasses
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from anabranch import _core
from anabranch.cli.main import run_command
from anabranch.gallery import catalogue
from anabranch.gallery.entry import Tier
from anabranch.results.bounds import at_least
from anabranch.results.claims import Claim
from anabranch.results.folder import TABLES
from anabranch.sweeps.design_factors import KEYS as DESIGN_KEYS
from anabranch.sweeps.plan import KEYS
from conftest import scenario

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(scenario("2s").to_toml())
    return path


def complaint(captured: Captured) -> str:
    """The only line on standard error. Standard output must be empty."""
    out, err = captured.readouterr()
    assert out == ""
    assert re.fullmatch(r"anabranch: [^\n]+\n", err), err
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("frobnicate", "frobnicate"),
        ("reproduce", "ID"),
        ("reproduce nsdi12-fig", 'unknown entry "nsdi12-fig"; did you mean "nsdi12-fig7"?'),
        ("reproduce nsdi12-fig7 --seeds 0", "--seeds"),
        ("reproduce nsdi12-fig7 --seeds many", "--seeds"),
        ("reproduce nsdi12-fig7 --sedes 3", "--sedes"),
        ("reproduce nsdi12-fig7 --out FILE/folder", "not a directory"),
        ("gallery nsdi12-fig7 nsdi12-fig", 'unknown entry "nsdi12-fig"; did you mean'),
        ("gallery nsdi12-fig7 --out FILE/folder", "not a directory"),
        ("run", "FILE"),
        ("run nowhere.toml", "nowhere.toml: no such file"),
        ("run FILE --seed -1", "--seed"),
        ("run FILE --seed 99999999999999999999", "--seed"),
        ("run FILE --pcap nowhere/trace.pcapng", "--pcap nowhere/trace.pcapng: no such file"),
        ("run FILE --out FILE/folder", "not a directory"),
        ("report nowhere", "nowhere: provenance.json is missing"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(
    arguments: str, words: str, file: Path, capsys: Captured
) -> None:
    assert run_command([word.replace("FILE", str(file)) for word in arguments.split()]) == 2
    assert words.lower() in complaint(capsys).lower()


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ('name = "wifi"', 'nam = "wifi"', ("path[0].nam", '"name"')),
        ('rate = "8Mbit/s"', 'rate = "8"', ("path[0].rate", "8Mbit/s")),
        ('rate = "8Mbit/s"', "rate = 8", ("path[0].rate", "8Mbit/s")),
        ('rate = "8Mbit/s"', 'rate = "-8Mbit/s"', ("path[0].rate", "-8Mbit/s")),
        ('limit = "54packets"', 'limit = "0packets"', ("path[0].limit", "0packets")),
        ("[[connection]]", "[[connection]]\nscheduler = 'min_rt'", ("scheduler", '"min_rtt"')),
        ("[[path]]", "[[path", ("line", "column")),
    ],
)
def test_a_wrong_scenario_is_explained(
    right: str, wrong: str, words: tuple[str, ...], file: Path, capsys: Captured
) -> None:
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong, 1))
    assert run_command(["run", str(file)]) == 2
    line = complaint(capsys)
    assert all(word in line for word in (str(file), *words)), line


def test_not_text_is_refused(file: Path, capsys: Captured) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    assert run_command(["run", str(file)]) == 2
    assert "not UTF-8" in complaint(capsys)


def test_run_prints_goodput_delays_and_bytes(file: Path, capsys: Captured) -> None:
    assert run_command(["run", str(file), "--seed", "3"]) == 0
    out = capsys.readouterr().out
    for word in ("goodput", "p95 ms", "wifi", "3g", "share", "digest", "seed 3"):
        assert word in out


def test_run_writes_results_that_can_be_drawn_again(
    file: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "out"
    trace = tmp_path / "trace.pcapng"
    assert run_command(["run", str(file), "--out", str(out), "--pcap", str(trace)]) == 0
    assert trace.stat().st_size > 0
    report = (out / "report.html").read_text()
    (printed,) = re.findall(r"digest (\w{16})", capsys.readouterr().out)
    assert f"digest of the run</th><td>{printed}<" in report
    (out / "report.html").unlink()
    figure = tmp_path / "new" / "figure.svg"
    assert run_command(["report", str(out), "--figure", str(figure)]) == 0
    assert (out / "report.html").read_text() == report
    assert figure.read_text().startswith("<?xml")
    assert capsys.readouterr().out.endswith(f"report: {out / 'report.html'}\nfigure: {figure}\n")


def test_run_writes_results_of_a_scenario_with_a_slash_in_its_name(
    file: Path, tmp_path: Path
) -> None:
    named = re.sub(
        "^name = .*$", 'name = "WiFi 8 / 3G 2 Mbit/s"', file.read_text(), count=1, flags=re.M
    )
    file.write_text(named)
    assert run_command(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    (scenario,) = (tmp_path / "out" / "scenarios").iterdir()
    assert 'name = "WiFi 8 / 3G 2 Mbit/s"' in scenario.read_text()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten nsdi12-fig7."""
    entry = catalogue.entry("nsdi12-fig7")
    short = dataclasses.replace(entry, quick=Tier("tiny", seeds=2, measured_s=3, warm_up_s=2))
    monkeypatch.setattr(catalogue, "entry", lambda name: short)


@pytest.mark.usefixtures("tiny")
def test_reproduce_writes_everything(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    assert run_command(["reproduce", "nsdi12-fig7", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "E1.1-3g-slower" in printed
    assert str(out / "report.html") in printed

    claims = json.loads((out / "claims.json").read_text())
    assert len(claims) == len(catalogue.entry("nsdi12-fig7").claims)
    verdicts = {"reproduced", "partly", "open", "not_reproduced", "not_applicable"}
    for claim in claims:
        assert claim["verdict"] in verdicts
        assert all(claim[key] for key in ("id", "source", "check", "measured"))

    for name in ("provenance.json", "figure.svg", "figure.png", *(f"{t}.parquet" for t in TABLES)):
        assert (out / name).stat().st_size > 0, name
    assert len(list((out / "scenarios").glob("*.toml"))) == 40

    html = (out / "report.html").read_text()
    fetched = r"""src=["'](?!data:)|<link[^>]+href=["'](?!data:)"""
    assert not re.search(fetched, html), "nothing is fetched"
    assert "E1.1-3g-slower" in html

    files = {name: (out / name).read_bytes() for name in ("claims.json", "figure.svg")}
    assert run_command(["report", str(out)]) == 0
    assert {name: (out / name).read_bytes() for name in files} == files


def test_strict_fails_on_claims_that_are_not_reproduced(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = catalogue.entry("nsdi12-fig7")
    tier = Tier("tiny", seeds=1, measured_s=3, warm_up_s=1)
    cells = [cell for cell in entry.cells(tier) if cell.key.endswith("200kib_200kib_fifo")]
    slower = entry.claims[0]
    for claim, status in ((slower, 0), (impossible(slower), 1)):
        short = dataclasses.replace(
            entry,
            quick=tier,
            design=lambda _: cells,
            claims=(claim,),
            drawings={panel.title: panel.draw for panel in entry.panels[:1]},
            row=dataclasses.replace(entry.row, notes=""),
            measured_words=lambda _: {},
        )
        monkeypatch.setattr(catalogue, "entry", lambda _, short=short: short)
        arguments = ["reproduce", "nsdi12-fig7", "--out", str(tmp_path), "--strict"]
        assert run_command(arguments) == status
        capsys.readouterr()


def impossible(claim: Claim) -> Claim:
    bound = at_least(1e9, "2026-11-24", "out of reach")
    conditions = (dataclasses.replace(each, bound=bound) for each in claim.conditions)
    return dataclasses.replace(claim, conditions=tuple(conditions))


def test_list_names_all_entries(capsys: Captured) -> None:
    assert run_command(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in catalogue.names())


def test_list_says_how_long_entries_take(capsys: Captured) -> None:
    assert run_command(["list"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^nsdi12-fig7  \d+ claims · \d+ s, with --full \d+ (s|min)$", out, re.M)
    assert [catalogue.duration(each) for each in (0.8, 40, 700, 9000)] == [
        *("1 s", "40 s", "12 min", "2.5 h"),
    ]


def test_help_is_a_command_too(capsys: Captured) -> None:
    for words, option in ((["help"], ["--help"]), (["help", "sweep"], ["sweep", "--help"])):
        assert run_command(words) == 0
        text = capsys.readouterr().out
        assert run_command(option) == 0
        assert text.split() == capsys.readouterr().out.split()
    assert run_command(["help", "swep"]) == 2
    assert 'unknown command "swep"; did you mean "sweep"?' in capsys.readouterr().err


def test_closed_standard_files_are_no_error(file: Path, tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m anabranch run "{file}"'
    for rest in (">&-", ">&- 2>&-", f'--out "{tmp_path}/out" <&- >&- 2>&-'):
        done = subprocess.run(
            ["sh", "-c", f"{command} {rest}"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")


def test_tables_are_whole_in_a_pipe(file: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "explain", str(file), "--what-if", "--seeds", "1"]
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "not shown for lack of width" not in done.stdout
    (heading,) = (line for line in done.stdout.splitlines() if line.startswith("change "))
    assert re.split(r"\s{2,}", heading.strip()) == [
        "change",
        "goodput %",
        "p95 ms",
        "Linux",
        "p50 ms",
    ]
    narrow = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment | {"COLUMNS": "60"}
    )
    assert "not shown for lack of width" in narrow.stdout


def test_policies_lists_all_with_their_parameters(capsys: Captured) -> None:
    assert run_command(["policies"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{workload}  " in out for workload in ("bulk", "request_response"))
    out = " ".join(out.split())
    assert all(each["name"] in out for each in _core.parts())
    assert 'options = ["mptcp"]' in out
    for policy in _core.policies():
        assert policy["name"] in out
        assert all(f"{each['name']} = {each['default']}" in out for each in policy["parameters"])


def test_every_policy_has_a_page() -> None:
    pages = Path(__file__).parents[2] / "docs" / "policies"
    for policy in _core.policies():
        page = (pages / f"{policy['name']}.md").read_text(encoding="utf-8")
        assert policy["source"].split(",")[0].split(";")[0] in page
        for parameter in policy["parameters"]:
            assert f"`{parameter['name']}`" in page, f"{policy['name']}: {parameter['name']}"


def test_schema_is_json(capsys: Captured) -> None:
    assert run_command(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Scenario"


def test_the_schema_of_plans_describes_plans(capsys: Captured) -> None:
    assert run_command(["schema", "plan"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert tuple(schema["properties"]) == KEYS
    assert tuple(schema["properties"]["design"]["properties"]) == DESIGN_KEYS
    plans = Path(__file__).parents[2] / "examples"
    for file in plans.glob("sweep*.toml"):
        jsonschema.validate(tomllib.loads(file.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"scenario": "wifi.toml", "seed": 5}, schema)


def test_the_schema_of_scenarios_describes_scenarios() -> None:
    schema = json.loads(_core.json_schema())
    for file in (Path(__file__).parents[2] / "examples").glob("*.toml"):
        if not file.name.startswith("sweep"):
            jsonschema.validate(tomllib.loads(file.read_text()), schema)


def test_help_has_an_example(capsys: Captured) -> None:
    assert run_command(["reproduce", "--help"]) == 0
    assert "Example:" in capsys.readouterr().out


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anabranch", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"anabranch \d+\.\d+\.\d+\n", done.stdout)
