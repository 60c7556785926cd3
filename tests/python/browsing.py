"""Helpers of the browser tests: headless Chromium with a given width, light or dark."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

AXE = Path(__file__).parents[2] / "target" / "tools" / "axe-core" / "package" / "axe.min.js"
"""The accessibility checker; `make axe` fetches it."""

chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
in_a_browser = pytest.mark.skipif(
    not (chromium and driver), reason="needs Debian's chromium and chromium-driver"
)


@contextmanager
def browser(phone: int | None = None) -> Iterator[webdriver.Chrome]:
    """Chromium with a mouse, or as on a phone whose screen has `phone` CSS pixels."""
    options = Options()
    options.binary_location = str(chromium)
    for argument in (
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    ):  # fmt: skip
        options.add_argument(argument)
    if phone is not None:
        metrics = {"width": phone, "height": 844, "pixelRatio": 1.0}
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def logs(chrome: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", chrome.get_log(kind))  # type: ignore[no-untyped-call]


def look(chrome: webdriver.Chrome, width: int, scheme: str) -> None:
    """Set the width of pages in CSS pixels, and the colour scheme ``"light"`` or ``"dark"``."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def violations(chrome: webdriver.Chrome) -> list[Any]:
    """The problems that axe-core finds, with the first element of each; none without axe-core."""
    if not AXE.is_file():
        return []
    chrome.execute_script(AXE.read_text(encoding="utf-8"))
    found = chrome.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run({resultTypes: ['violations']}).then(found => done(found.violations))"
    )
    return [(each["id"], each["nodes"][0]["html"][:200], len(each["nodes"])) for each in found]
