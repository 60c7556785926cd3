import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from anabranch import _core
from anabranch.gallery import catalogue, comparison, systems, verdicts
from anabranch.gallery.entry import Entry, Tier
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.reproduce import execute, save_entry
from anabranch.gallery.systems import LINUX, ON_MININET, Source, original, source_of
from anabranch.results.bounds import above, below
from anabranch.results.claims import Claim, Condition, Judgement, Verdict, judge
from anabranch.results.folder import Results
from anabranch.scenarios import loading

TIER = Tier("full", seeds=2, measured_s=3, warm_up_s=1)
STUDIED = ("remedies",)
SCENARIO = """
name = "two paths"
duration = "1s"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "80ms"

[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
jitter = "50ms"
jitter_model = "fifo"
limit = "334packets"

[[connection]]
name = "main"
congestion_control = "olia"
remedies = {}
workload = { kind = "bulk" }

[[connection]]
protocol = "tcp"
congestion_control = "new_reno"
paths = ["wifi"]
workload = { kind = "bulk" }
"""


def scenario(**settings: Any) -> _core.Scenario:
    keys = {f"connection.main.{key}": value for key, value in settings.items()}
    return loading.of_text(SCENARIO, "a.toml", settings=keys)


def on(system: systems.System, of: _core.Scenario, *studied: str) -> dict[str, Any]:
    return system.scenario(of, studied).settings


def test_the_original_kernel_has_the_policies_of_the_entry() -> None:
    main, tcp = on(original(), scenario(), *STUDIED)["connection"]
    assert main["host"]["kind"] == tcp["host"]["kind"] == "mptcp.org-0.89"
    assert (main["congestion_control"], tcp["congestion_control"]) == ("olia", "new_reno")
    assert (main["scheduler"]["kind"], main.get("remedies", {})) == ("mptcp_org", {})
    turns = on(original(), scenario(scheduler="round_robin"), *STUDIED)["connection"][0]
    assert turns["scheduler"] == "mptcp_org_round_robin"
    waiting = on(original(), scenario(scheduler="ecf"), *STUDIED)["connection"][0]
    assert waiting["scheduler"]["rule"] == "linux"


def test_linux_sets_what_the_claims_do_not_study() -> None:
    main, tcp = on(LINUX, scenario(), *STUDIED)["connection"]
    assert main["host"]["buffers"] == tcp["host"]["buffers"] == "socket"
    controls = main["congestion_control"], tcp["congestion_control"]
    assert (*controls, main["scheduler"]) == ("cubic_linux", "cubic_linux", "linux")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("remedies", {"penalisation": "conext13"}),
        ("scheduler", "blest"),
        ("scheduler", {"kind": "blest", "rule": "paper"}),
        ("congestion_control", "olia"),
        ("path_manager", "drepas"),
    ],
)
def test_linux_lacks_mechanisms(key: str, value: Any) -> None:
    studied = scenario(**{key: value})
    assert LINUX.lacks(studied, (key,))
    assert not LINUX.lacks(studied, ())
    assert not original().lacks(studied, (key,))


def test_mininet_shapes_both_directions_and_counts_packets() -> None:
    artefact, kept = (on(system, scenario(), *STUDIED) for system in ON_MININET)
    wifi, three_g = artefact["path"]
    assert wifi["shaper"] == three_g["shaper"] == "mininet"
    assert (wifi["limit"], three_g["limit"]) == ("54packets", "334packets")
    assert three_g["reverse"]["jitter"] == "50ms"
    hosts = [each["connection"][0]["host"] for each in (artefact, kept)]
    assert [host["charges_delayed_segments"] for host in hosts] == [False, True]


def _draw(_: Results, axes: Axes) -> None:
    axes.plot([0, 1], [0, 1])


def _entry() -> Entry:
    """TCP over WiFi and Multipath TCP without and with M1 and M2; Linux lacks both mechanisms."""
    entry = catalogue.entry("nsdi12-fig7")
    curves = ("TCP over WiFi", "MPTCP", "MPTCP+M1,2")
    found = {cell.factors["curve"]: cell for cell in reversed(entry.design(TIER))}
    wifi, plain, cured = cells = [found[curve] for curve in curves]

    def claim(name: str, numerator: Any, bound: Any) -> Claim:
        ratio = GOODPUT.ratio(dict(numerator.factors), dict(wifi.factors))
        return Claim(name, "s", "o", (Condition("ratio", ratio, bound),))

    return dataclasses.replace(
        entry,
        full=TIER,
        design=lambda _: cells,
        claims=(
            claim("plain", plain, above(0.01, "", "")),
            claim("cured", cured, below(0.01, "", "")),
        ),
        drawings={"panel": _draw},
        row=dataclasses.replace(
            entry.row, captions={"*": "caption"}, notes="", not_varied_because="it is a test"
        ),
        measured_words=lambda _: {},
        uncertain_parameters={},
        source=source_of("NSDI'12", STUDIED),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("systems")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return execute(_entry(), TIER, folder)


@pytest.fixture(scope="module")
def judgements(folder: Path, results: Results) -> list[Judgement]:
    return save_entry(_entry(), results, folder)


def test_claims_are_judged_on_each_system(judgements: list[Judgement]) -> None:
    plain, cured = judgements
    verdicts = [each and each.verdict for each in plain.systems.values()]
    assert verdicts == [Verdict.REPRODUCED] * 3
    kernel, engine, linux = cured.systems.values()
    assert kernel is not None
    assert engine is not None
    assert kernel.verdict is engine.verdict is cured.verdict is Verdict.NOT_REPRODUCED
    assert linux is None


def test_each_system_has_values_of_its_own(judgements: list[Judgement]) -> None:
    plain = judgements[0]
    found = list(filter(None, plain.systems.values()))
    assert len({each.deciding.estimate.value for each in found}) == len(found) == 3


def test_table_and_report_show_the_systems_side_by_side(
    folder: Path, judgements: list[Judgement]
) -> None:
    table = comparison.table(judgements)
    assert table is not None
    names = ("original kernel", systems.ENGINE.name, "Linux 6.12")
    assert table.headings == ("claim", *names, "conclusion")
    assert table.rows[0][4] == "reproduced"
    assert table.rows[1][4] == "not reproduced, nor on the source's system"
    assert table.rows[0][2].startswith("reproduced: ")
    assert table.rows[1][1].startswith("not reproduced: ")
    assert table.rows[1][3] == "lacks the mechanism"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "NSDI 2012 ran the original kernel of its time" in page
    assert "lacks the mechanism" in page
    plain = json.loads((folder / "claims.json").read_text(encoding="utf-8"))[0]
    assert plain["systems"]["Linux 6.12"]["verdict"] == "reproduced"


R, NOT, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.OPEN


def test_a_record_keeps_the_verdicts_of_all_systems(
    folder: Path, results: Results, judgements: list[Judgement]
) -> None:
    entry = dataclasses.replace(_entry(), id="not-in-the-catalogue")
    record = verdicts.record(entry, judgements, results, folder)
    assert verdicts.VerdictRecord.of_json(json.loads(json.dumps(record.as_json()))) == record
    assert (record.verdicts, record.seeds, record.runs) == ("1 reproduced, 1 not reproduced", 2, 6)
    assert tuple(record.on_systems) == comparison.counts(judgements)
    # The processor time includes that of the other systems.
    assert record.cpu_s >= round(results.provenance["cpu_s"])
    text = verdicts.markdown([(entry, record)])
    assert "measured on: original kernel" in text
    assert "Linux 6.12: lacks the mechanism | not reproduced, nor on the source's system |" in text
    late = dataclasses.replace(record, superseded="It is old.")
    assert "> **Superseded.** It is old." in verdicts.markdown([(entry, late)])


@pytest.mark.parametrize(
    ("here", "artefact", "kept", "conclusion"),
    [
        (R, R, R, "reproduced"),
        (R, R, NOT, "reproduced by an artefact of the emulation"),
        (NOT, R, Verdict.PARTLY, "reproduced by an artefact of the emulation"),
        (NOT, R, R, "reproduced on the source's system only"),
        (NOT, R, OPEN, "reproduced on the source's system only"),
        (R, NOT, NOT, "reproduced, but not on the source's system"),
        (R, OPEN, NOT, "open"),
        (NOT, NOT, NOT, "not reproduced, nor on the source's system"),
        (Verdict.NOT_APPLICABLE, NOT, NOT, "not applicable"),
    ],
)
def test_conclusions(here: Verdict, artefact: Verdict, kept: Verdict, conclusion: str) -> None:
    claim = _entry().claims[0]
    names = [system.name for system in (*ON_MININET, systems.ENGINE)]
    found = [Judgement(claim, (), each) for each in (artefact, kept, here)]
    on = dict(zip(names, found, strict=True))
    assert comparison._conclusion(on, Source("", STUDIED, ON_MININET)) == conclusion


def test_runs_of_other_results_do_not_count(folder: Path, results: Results) -> None:
    runs = [{**run, "digest": f"{n:032x}"} for n, run in enumerate(results.provenance["runs"])]
    others = dataclasses.replace(results, provenance={**results.provenance, "runs": runs})
    own = [judge(claim, others) for claim in _entry().claims]
    assert comparison.table(comparison.judged(_entry(), own, others, folder)) is None
