"""The built documentation in headless Chromium: its pages fit, and they are accessible.

`make docs` runs these tests, because the site takes minutes to build.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from browsing import browser, in_a_browser, look, violations
from test_site import served

SITE = Path(os.environ.get("ANABRANCH_DOCS", "missing"))
PAGES = (
    "index.html",
    "tutorial/index.html",
    "tutorial/own_scheduler.html",
    "gallery/nsdi12-fig7.html",
    "policies/ecf.html",
    "reference/python.html",
)
THEMES_OWN = {"landmark-unique"}
"""Faults of the theme: each level of its menu is a landmark."""

pytestmark = [
    in_a_browser,
    pytest.mark.skipif(not SITE.is_dir(), reason="make docs builds the site and runs this test"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(SITE) as found:
        yield found


@pytest.fixture(scope="module")
def chrome() -> Iterator[webdriver.Chrome]:
    with browser() as started:
        yield started


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_pages_fit_and_are_accessible(
    chrome: webdriver.Chrome, address: str, width: int, page: str
) -> None:
    for scheme in ("light", "dark"):
        look(chrome, width, scheme)
        chrome.get(f"{address}/{page}")
        WebDriverWait(chrome, 10).until(lambda _: chrome.find_elements(By.TAG_NAME, "h1"))
        wide = chrome.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels wide at {width}"
        faults = [each for each in violations(chrome) if each[0] not in THEMES_OWN]
        assert faults == [], scheme


def test_the_first_lesson_is_above_the_fold(chrome: webdriver.Chrome, address: str) -> None:
    look(chrome, 1400, "light")
    chrome.get(f"{address}/index.html")
    if not chrome.find_elements(By.CLASS_NAME, "playground"):
        pytest.skip("the playground was not built: make playground")
    frame = chrome.find_element(By.CLASS_NAME, "playground")
    top = frame.rect["y"]
    chrome.switch_to.frame(frame)
    WebDriverWait(chrome, 20).until(
        lambda _: chrome.find_elements(By.CSS_SELECTOR, ".stage[data-digest]")
    )
    picture = chrome.find_element(By.CSS_SELECTOR, ".stage canvas").rect
    assert top + picture["y"] + picture["height"] < 900
