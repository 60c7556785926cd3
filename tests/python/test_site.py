"""The site of the gallery, as files and in a browser."""

import functools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from anabranch.gallery import catalogue, site
from anabranch.gallery.entry import Entry, Tier
from anabranch.gallery.reproduce import execute
from browsing import browser, in_a_browser, logs

ENTRIES = ("ferlin14-drepas", "ferlin14-bufferbloat")
PHONE = 390
"""Width of a common phone, in CSS pixels."""


def exhibited(entry: Entry, tier: Tier, folder: Path) -> site.Exhibit:
    """An entry, run, judged and drawn."""
    return site.exhibit(entry, execute(entry, tier, folder), folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    exhibits = []
    for name in ENTRIES:
        entry = catalogue.entry(name)
        tier = replace(entry.quick, seeds=1, measured_s=20)
        exhibits.append(exhibited(entry, tier, folder / name))
    site.save(exhibits, folder)
    return folder


def test_the_table_of_verdicts_names_every_claim_with_its_command(built: Path) -> None:
    text = (built / site.VERDICTS).read_text(encoding="utf-8")
    for name in ENTRIES:
        assert f"`anabranch reproduce {name}`" in text
        for claim in json.loads((built / name / "claims.json").read_text(encoding="utf-8")):
            rows = [line for line in text.splitlines() if line.startswith(f"| {claim['id']} |")]
            assert len(rows) == 1
            assert rows[0].endswith(f" {claim['verdict'].replace('_', ' ')} |")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def requested(chrome: webdriver.Chrome) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in logs(chrome, "performance")]
    sent = [each for each in messages if each["method"] == "Network.requestWillBeSent"]
    return [each["params"]["request"]["url"] for each in sent]


@in_a_browser
@pytest.mark.parametrize("width", [PHONE, 1280])
def test_pages_are_whole_and_fit_the_screen_and_ask_no_other_host(built: Path, width: int) -> None:
    with served(built) as address, browser(width) as chrome:
        for page in ("index.html", *(f"{name}/report.html" for name in ENTRIES)):
            chrome.get(f"{address}/{page}")
            images = chrome.find_elements(By.TAG_NAME, "img")
            assert len(images) >= len(ENTRIES), page
            for image in images:
                chrome.execute_script("arguments[0].loading = 'eager'", image)
            whole = (
                "const done = arguments[arguments.length - 1];"
                "Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))"
                ".then(done, error => done([String(error)]))"
            )
            widths = chrome.execute_async_script(whole)
            assert all(isinstance(each, int) and each > 0 for each in widths), (page, widths)
            wide = chrome.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{page} is {wide} pixels wide"
        assert [each for each in logs(chrome, "browser") if each["level"] == "SEVERE"] == []
        urls = requested(chrome)
        assert urls
        assert all(url.startswith((address, "data:")) for url in urls), urls
