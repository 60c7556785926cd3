"""Reports in headless Chromium: they fit, they are accessible, and their charts respond."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

import anabranch
from anabranch.batches.single import single
from anabranch.cli.main import run_command
from anabranch.gallery import catalogue, site
from anabranch.reports import single_run
from anabranch.sweeps import report as sweep_report
from anabranch.sweeps.sweep import sweep
from browsing import AXE, browser, in_a_browser, logs, look, violations
from conftest import scenario
from sweeping import write_plan
from test_site import exhibited

WIDTHS, SCHEMES = (390, 800, 1400), ("light", "dark")
KINDS = (
    "index.html",
    "entry/report.html",
    "run/report.html",
    "sweep/report.html",
    "capture/report.html",
)

pytestmark = in_a_browser


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of each kind, and the index of a gallery."""
    folder = tmp_path_factory.mktemp("reports")
    entry = replace(catalogue.entry("ferlin14-drepas"), id="entry")
    tier = replace(entry.quick, seeds=1, measured_s=20)
    shown = exhibited(entry, tier, folder / "entry")
    site.save([shown], folder)

    capture = folder / "capture.pcapng"
    run = anabranch.run(scenario(), seed=1, pcap=str(capture))
    results = single(run, "run", 0.1)
    results.save(folder / "run")
    single_run.save(results, folder / "run")
    assert run_command(["analyze", str(capture), "--out", str(folder / "capture")]) == 0

    plan = write_plan(folder / "plan")
    sweep_report.save(sweep(plan, folder / "sweep"), folder / "sweep")
    return folder


@pytest.fixture(scope="module")
def chrome() -> Iterator[webdriver.Chrome]:
    with browser() as started:
        yield started


@pytest.fixture
def charts(chrome: webdriver.Chrome, reports: Path) -> list[WebElement]:
    """The charts of the run's report."""
    look(chrome, 1400, "light")
    chrome.get((reports / "run/report.html").as_uri())
    return chrome.find_elements(By.CLASS_NAME, "one")


def pixels(chrome: webdriver.Chrome, chart: WebElement) -> str:
    canvas = chart.find_element(By.TAG_NAME, "canvas")
    return str(chrome.execute_script("return arguments[0].toDataURL()", canvas))


def button(chart: WebElement, words: str) -> WebElement:
    return next(
        each for each in chart.find_elements(By.TAG_NAME, "button") if each.text.strip() == words
    )


@pytest.mark.parametrize("page", KINDS)
def test_pages_fit_and_are_accessible(chrome: webdriver.Chrome, reports: Path, page: str) -> None:
    logs(chrome, "browser")
    for width in WIDTHS:
        for scheme in SCHEMES:
            look(chrome, width, scheme)
            chrome.get((reports / page).as_uri())
            wide = chrome.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels wide at {width}"
            assert violations(chrome) == [], (width, scheme)
    assert [each for each in logs(chrome, "browser") if each["level"] == "SEVERE"] == []


def test_the_accessibility_check_is_there() -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core: make axe fetches it with npm")
    assert "axe v4.14.1" in AXE.read_text(encoding="utf-8")[:200]


def test_every_picture_has_its_charts(chrome: webdriver.Chrome, reports: Path) -> None:
    look(chrome, 800, "dark")
    for page in KINDS[1:]:
        chrome.get((reports / page).as_uri())
        figures = chrome.find_elements(By.CSS_SELECTOR, "figure")
        assert figures
        for figure in figures:
            assert "live" in str(figure.get_attribute("class")), page
            assert figure.find_elements(By.TAG_NAME, "canvas")
            assert not figure.find_element(By.CSS_SELECTOR, ":scope > img").is_displayed()


def test_the_first_screen_has_the_finding_and_the_figure(
    chrome: webdriver.Chrome, reports: Path
) -> None:
    look(chrome, 1400, "light")
    for page in KINDS[1:]:
        chrome.get((reports / page).as_uri())
        assert chrome.find_element(By.CLASS_NAME, "finding").text.count(".") >= 2
        assert chrome.find_element(By.TAG_NAME, "canvas").location["y"] < 450, page


def test_pointing_at_a_chart_shows_values(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    over = charts[1].find_element(By.CLASS_NAME, "u-over")
    ActionChains(chrome).move_to_element(over).perform()
    tip = charts[1].find_element(By.CLASS_NAME, "tip").text
    assert tip.startswith("time (s): ")
    assert "wifi: " in tip
    assert "3g: " in tip


def test_pressing_an_entry_of_the_legend_hides_its_curve(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    chart = charts[1]
    before, key = pixels(chrome, chart), button(chart, "3g")
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert pixels(chrome, chart) != before
    ActionChains(chrome).move_to_element(chart.find_element(By.CLASS_NAME, "u-over")).perform()
    assert "3g: " not in chart.find_element(By.CLASS_NAME, "tip").text
    key.click()
    assert pixels(chrome, chart) == before


def test_an_axis_becomes_logarithmic_and_linear_again(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    chart = charts[2]
    before, switch = pixels(chrome, chart), button(chart, "log y")
    kind = "return arguments[0].chart.plot.scales.y.distr"
    assert chrome.execute_script(kind, chart) == 1
    switch.click()
    assert chrome.execute_script(kind, chart) == 3
    assert switch.get_attribute("aria-pressed") == "true"
    switch.click()
    assert pixels(chrome, chart) == before


def test_dragging_zooms_and_a_button_leads_back(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    chart = charts[2]
    ends = "const x = arguments[0].chart.plot.scales.x; return [x.min, x.max]"
    whole = chrome.execute_script(ends, chart)
    over = chart.find_element(By.CLASS_NAME, "u-over")
    mouse = ActionChains(chrome).move_to_element_with_offset(over, -60, 0).click_and_hold()
    mouse.move_by_offset(80, 5).release().perform()
    low, high = chrome.execute_script(ends, chart)
    assert whole[0] < low < high < whole[1]
    button(chart, "reset zoom").click()
    assert chrome.execute_script(ends, chart) == whole


def test_charts_follow_the_choice_of_light_or_dark(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    light = pixels(chrome, charts[0])
    look(chrome, 1400, "dark")
    WebDriverWait(chrome, 5).until(lambda _: pixels(chrome, charts[0]) != light)


def test_pictures_replace_the_charts_on_paper(
    chrome: webdriver.Chrome, charts: list[WebElement]
) -> None:
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    picture = chrome.find_element(By.CSS_SELECTOR, "figure > img")
    assert picture.is_displayed()
    assert not charts[0].is_displayed()


def test_pictures_stay_without_javascript(chrome: webdriver.Chrome, reports: Path) -> None:
    look(chrome, 800, "light")
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chrome.get((reports / "run/report.html").as_uri())
        pictures = chrome.find_elements(By.CSS_SELECTOR, "figure > img")
    finally:
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert len(pictures) == 6
    assert all(picture.is_displayed() for picture in pictures)


def test_a_claim_has_an_address(chrome: webdriver.Chrome, reports: Path) -> None:
    look(chrome, 800, "light")
    claim = catalogue.entry("ferlin14-drepas").claims[2].id
    chrome.get(f"{(reports / 'index.html').as_uri()}")
    link = chrome.find_element(By.CSS_SELECTOR, f'a[href$="#{claim}"]')
    chrome.get(str(link.get_attribute("href")))
    assert chrome.find_element(By.CSS_SELECTOR, ":target").get_attribute("id") == claim
    back = chrome.find_element(By.CSS_SELECTOR, ".crumbs a")
    assert str(back.get_attribute("href")) == (reports / "index.html").as_uri()
