"""The documentation is right: its commands run, and its outputs are those of a run.

`make docs` checks links.
"""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawings import CURVES, drawn
from measured import dumped, update

from anabranch.gallery import catalogue

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
RESULTS = sorted(ROOT.glob("docs/results/*.json"))

_BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)[^)\s]*\)")

NOT_RUN = {
    r"source .*": "it changes the shell",
    r"make .*": "continuous integration runs the targets themselves, or they take hours",
    r"cargo .*": "the examples of the crates are tests",
    r"(pip|uv|uvx|wheel=|docker) ?.*": "`make wheels` installs and runs a wheel",
    r"(ssh|scp) .*": "needs another host",
    r"(sudo|journalctl) .*": "it changes the host, or reads its log",
    r"tshark .*": "a tool of its own",
    r"dask .*|.* dask://.*": "needs a cluster; tests/python/test_executors.py starts one",
    r"anabranch calibrate.*": "minutes; tests/python/test_calibration.py",
    r"anabranch (run|reproduce|conform) .*--live.*": "in real time; tests/python/test_live.py",
    r"anabranch play.*": "a server; tests/python/test_play.py",
    r"anabranch[- ]proxy .*": "needs root and a relay; crates/anabranch-proxy/tests",
    r"anabranch shell .*": "in real time; tests/python/test_shell.py",
    r"(for|nstat) .*": "needs a connection; tests/python/test_sockets.py reads recordings",
    r"anabranch advise .*--for .*": "a search with assertions on; tests/python/test_advise.py",
    r"anabranch doctor": "what it says depends on the host; tests/python/test_live.py",
    r"anabranch reproduce .*--full.*": "minutes to hours",
    r"anabranch gallery.*": "`make gallery`",
    r"anabranch reproduce (?P<entry>[\w-]+)( --out \S+)?": "`make gallery` runs every entry",
}
"""Commands that this test does not run, with the reasons."""

FILES = {
    "capture.pcapng": "anabranch run examples/wifi_3g.toml --set duration=6s --pcap capture.pcapng",
    "client.pcap": "anabranch run examples/wifi_3g.toml --set duration=6s --pcap client.pcap",
    "server.pcap": "anabranch run examples/wifi_3g.toml --set duration=6s --pcap server.pcap",
    "results/sweep": "anabranch sweep examples/sweep_wifi_3g.toml --out results/sweep",
    "results/before": "anabranch run examples/wifi_3g.toml --out results/before",
    "results/after": "anabranch run examples/wifi_3g.toml --scheduler ecf --out results/after",
    "ss.txt": f"cp {ROOT}/tests/python/ss/network.txt ss.txt",
    "nstat.txt": f"cp {ROOT}/tests/python/ss/fallback-nstat.txt nstat.txt",
    "my.pkt": "cp conformance/tcp/refused.pkt my.pkt",
    "results/nsdi12-fig7": "anabranch reproduce nsdi12-fig7 --seeds 1",
    "results/field-reports": "anabranch reproduce field-reports --seeds 1",
}
"""Files that the pages' commands need and readers have, with the commands that make them."""


def commands(page: Path) -> Iterator[str]:
    """The commands of a page, without their comments."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            command = " ".join(shlex.split(line, comments=True, posix=False))
            if command:
                yield command


def reason(command: str) -> str | None:
    """The reason why a command is not run, or `None`."""
    return next((why for form, why in NOT_RUN.items() if re.fullmatch(form, command)), None)


def test_every_relative_link_leads_to_a_file_of_the_repository() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in _LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not leads_somewhere(page.parent / target)
    ]
    assert not dead


def leads_somewhere(target: Path) -> bool:
    return target.exists() or Path(os.path.normpath(target)) in drawn()


def test_git_ignores_the_pictures_that_the_site_draws() -> None:
    files = sorted(map(str, drawn()))
    command = ["git", "check-ignore", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == files


def test_the_picture_of_growth_has_its_results() -> None:
    area = json.loads((ROOT / "docs/results/performance.json").read_text(encoding="utf-8"))
    assert set(CURVES) <= {each["id"] for each in area["results"]}


def test_the_pages_of_results_are_those_of_their_data() -> None:
    script = ROOT / "tools/generate/results.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_results_are_in_the_form_in_which_studies_write_them(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert dumped(json.loads(text)) == text


def test_a_new_measurement_replaces_rows_date_and_build_of_one_result(tmp_path: Path) -> None:
    file = tmp_path / "twin.json"
    file.write_text((ROOT / "docs/results/twin.json").read_text(encoding="utf-8"))
    before = json.loads(file.read_text(encoding="utf-8"))["results"]
    row = ["a scenario", "without path-1", "+1 %", "+2 %", "yes"]
    update(file, "what-if", [row], "python studies/twins.py")
    after = json.loads(file.read_text(encoding="utf-8"))["results"]
    changed = {each["id"]: each for each in after if each not in before}
    assert list(changed) == ["what-if"]
    assert changed["what-if"]["rows"] == [row]
    assert "superseded" not in changed["what-if"]
    assert changed["what-if"]["date"]
    assert changed["what-if"]["build"]
    with pytest.raises(ValueError, match="no result"):
        update(file, "what-if", [row[1:]], "python studies/twins.py")


def test_every_entry_that_a_page_names_exists() -> None:
    named = {
        found["entry"]
        for page in PAGES
        for command in commands(page)
        if (found := re.fullmatch(r"anabranch reproduce (?P<entry>[\w-]+).*", command))
    }
    assert named <= set(catalogue.names())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    if page.parent.name == "tutorial":
        pytest.skip("its files are on the page; test_the_outputs_of_pages runs it")
    for name in ("examples", "conformance"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in commands(page):
        if reason(command) is None:
            for name, origin in FILES.items():
                if name in command and not (tmp_path / name).exists():
                    run(origin, tmp_path)
            run(command, tmp_path)


def run(command: str, folder: Path) -> None:
    programs = os.environ.get("ANABRANCH_BIN", Path(sys.executable).parent)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_goodput_in_sentences_is_that_of_the_outputs() -> None:
    tutorial = (ROOT / "docs/tutorial/index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    outputs = re.findall(r"^```console\n.*?^```$", tutorial, re.MULTILINE | re.DOTALL)
    printed = [float(number) for number in re.findall(r"\d+\.\d+", "".join(outputs))]
    sentences = re.sub(r"^```.*?^```$", "", tutorial + readme, flags=re.MULTILINE | re.DOTALL)
    written = re.findall(r"(?:(\d+\.\d)\s+to\s+)?(\d+\.\d)\s+Mbit/s", sentences)
    assert len(written) >= 2
    for number in filter(None, itertools.chain.from_iterable(written)):
        assert any(f"{each:.1f}" == number for each in printed), number


@pytest.mark.slow
def test_the_outputs_of_pages_are_those_of_a_run() -> None:
    script = ROOT / "docs/site/transcripts.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)
