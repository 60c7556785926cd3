"""The pages about policies: their examples are right, and they are complete."""

import re
from pathlib import Path

import pytest
from drawings import drawn

from anabranch import _core

PAGES = Path(__file__).parents[2] / "docs" / "policies"
NAMES = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "your-own")
PATHS = """
name = "page"
duration = "1s"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"
"""


@pytest.mark.parametrize("name", NAMES)
def test_what_a_page_switches_on_is_a_valid_connection(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(snippets) == 1
    _core.Scenario.parse(PATHS + snippets[0], f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
def test_links_and_pictures_of_a_page_exist(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", page)]
    files = [PAGES / target for target in targets if "://" not in target]
    assert all(file.exists() or file in drawn() for file in files), targets
    assert name == "README" or PAGES / f"img/{name}.svg" in files


def test_the_index_names_every_policy() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({policy['name']}.md)" in index for policy in _core.policies())
