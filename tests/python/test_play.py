import base64
import importlib.util
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from pathlib import Path

import playground
import pytest

from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.playground.server import fragment, server
from conftest import scenario

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


def test_the_fragment_holds_the_scenario() -> None:
    found = re.fullmatch(r"#run=([\w-]+)", fragment([('name = "é"', "mine.toml", 7)]))
    assert found is not None
    pressed = base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
    text = zlib.decompress(pressed, wbits=-15).decode()
    assert json.loads(text) == [['name = "é"', "mine.toml", "7"]]


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
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=5) == 130
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["causes", "findings"])
def test_what_the_page_takes_from_python_is_up_to_date(name: str) -> None:
    file = ROOT / "tools" / "generate" / f"playground_{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = generator.FILE.read_text(encoding="utf-8")
    assert written == generator.text(), "run make playground-scenarios"


def test_the_front_page_has_the_first_lesson_once_the_page_was_built(
    monkeypatch: pytest.MonkeyPatch, site: Path
) -> None:
    front_page = (ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.setattr(playground, "SITE", site / "missing")
    assert playground.with_lesson(front_page) == front_page
    assert list(playground.files()) == []
    monkeypatch.setattr(playground, "SITE", site)
    with_lesson = playground.with_lesson(front_page)
    assert with_lesson.index("<iframe") < with_lesson.index("![Goodput")
    assert "playground/index.html" in dict(playground.files())
