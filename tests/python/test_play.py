import base64
import importlib.util
import json
import random
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from dataclasses import replace
from pathlib import Path

import playground
import pytest

import anabranch
from anabranch.batches.single import single
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.playground.server import server
from anabranch.reports import single_run
from anabranch.scenarios.addresses import PORT, address
from conftest import interrupt, scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<p>page</p>")
    (tmp_path / "engine.wasm").write_bytes(b"\0asm")
    return tmp_path


def test_the_server_sends_modules_with_their_type_on_the_loopback_interface_only(
    site: Path,
) -> None:
    with server(0, site) as running:
        host, port = running.server_address[:2]
        assert host == "127.0.0.1"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/engine.wasm") as answer:
            assert answer.headers["Content-Type"] == "application/wasm"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == b"<p>page</p>"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/../secret")
        with pytest.raises(InputError, match=f"--port {port}: address already in use"):
            server(int(port), site)
        running.shutdown()


def test_without_the_page_the_error_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make playground"):
        server(0, tmp_path)


def test_the_port_of_reports_is_free_or_another_one_is_taken(site: Path) -> None:
    with server(None, site) as first, server(None, site) as second:
        assert first.server_address[1] != second.server_address[1]
        assert second.server_address[1] != PORT


def test_too_long_a_scenario_has_no_address() -> None:
    # Deflate cannot compress random text.
    noise = base64.b64encode(random.Random(1).randbytes(40_000)).decode()
    assert address("#" + noise, "noise.toml", 1) is None


def test_reports_link_to_their_scenario_in_the_playground(tmp_path: Path) -> None:
    run = anabranch.run(scenario(), seed=7)
    results = single(run, "mine", 0.1)
    results.save(tmp_path)
    single_run.save(results, tmp_path)
    explained = tmp_path / "explained"
    file = tmp_path / "mine.toml"
    file.write_text(run.toml, encoding="utf-8")
    assert run_command(["explain", str(file), "--seed", "7", "--out", str(explained)]) == 0
    for report in (tmp_path / "report.html", explained / "report.html"):
        (session,) = sessions(report.read_text(encoding="utf-8"))
        assert (session[0], session[2]) == (run.toml, "7")


@pytest.mark.parametrize("key", ["custom_policies", "live"])
def test_a_run_that_the_page_cannot_make_has_no_link(key: str, tmp_path: Path) -> None:
    results = single(anabranch.run(scenario(), seed=7), "mine", 0.1)
    single_run.save(replace(results, provenance=results.provenance | {key: []}), tmp_path)
    assert sessions((tmp_path / "report.html").read_text(encoding="utf-8")) == []


def sessions(page: str) -> list[list[str]]:
    """The scenarios, file names and seeds in the links of a page."""
    found = []
    for text in re.findall(rf'"http://127\.0\.0\.1:{PORT}/#run=([\w-]+)"', page):
        pressed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        found += json.loads(zlib.decompress(pressed, wbits=-15))
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("play missing.toml", "missing.toml"),
        ("play --port 70000", "--port"),
    ],
)
def test_bad_input(arguments: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("anabranch: ")
    assert words in err


def test_it_serves_until_ctrl_c(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario("2s").to_toml())
    program = (
        "import sys, pathlib; from anabranch.playground import server; "
        f"server.server.__defaults__ = (pathlib.Path({str(site)!r}),); "
        "from anabranch.cli.main import run_command; sys.exit(run_command(sys.argv[1:]))"
    )
    arguments = ["play", str(file), "--no-browser"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            assert process.stdout is not None
            first, second = process.stdout.readline(), process.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/", first)
            assert address is not None, first
            assert f"{address[0]}#run=" in second
            with urllib.request.urlopen(address[0]) as answer:
                assert answer.status == 200
            interrupt(process, within_s=5)
            assert process.returncode == 130
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["causes", "findings", "addresses"])
def test_what_the_page_takes_from_python_is_up_to_date(name: str) -> None:
    file = ROOT / "tools" / "generate" / f"playground_{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = generator.FILE.read_text(encoding="utf-8")
    assert written == generator.text(), "run make playground-scenarios"


@pytest.mark.parametrize(
    ("file", "page", "lessons"),
    [
        ("README.md", "index.md", ["slow-3g"]),
        (
            "docs/tutorial/index.md",
            "tutorial/index.md",
            ["remedies", "schedulers", "bufferbloat", "path-dies", "fairness", "stacks"],
        ),
    ],
)
def test_pages_have_their_lessons_once_the_playground_was_built(
    file: str, page: str, lessons: list[str], monkeypatch: pytest.MonkeyPatch, site: Path
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    monkeypatch.setattr(playground, "SITE", site / "missing")
    assert playground.with_playground(text, page) == text
    assert list(playground.files()) == []
    monkeypatch.setattr(playground, "SITE", site)
    shown = playground.with_playground(text, page)
    to_page = "../" * page.count("/") + r"playground/index\.html"
    assert re.findall(rf'loading="lazy" src="{to_page}\?embed#lesson=([\w-]+)"', shown) == lessons
    assert re.findall(rf"\({to_page}#lesson=([\w-]+)\)", shown) == lessons
    assert "<!-- lesson" not in shown
    assert "playground/index.html" in dict(playground.files())


def test_an_experiment_has_a_link_to_its_scenario(
    monkeypatch: pytest.MonkeyPatch, site: Path
) -> None:
    monkeypatch.setattr(playground, "SITE", site)
    for name, linked in (("nsdi12-fig7", True), ("sigcomm11-fattree", False)):
        text = (ROOT / f"docs/gallery/{name}.md").read_text(encoding="utf-8")
        shown = playground.with_playground(text, f"gallery/{name}.md")
        assert (f"(../playground/index.html#scenario={name})" in shown) == linked
