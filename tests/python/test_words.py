"""Numbers of things in words, and tables without rows."""

import re
from pathlib import Path

import pytest
from rich.console import Console

import anabranch
from anabranch.cli.tables import Grid
from anabranch.gallery import registry
from anabranch.reports import page, strips
from anabranch.reports.table import Table
from anabranch.results.bounds import within
from anabranch.results.claims import Condition, Measured
from anabranch.results.estimates import Estimate
from anabranch.words import counted, listed


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1200, "1,200 lines")]
)
def test_one_thing_is_singular(count: int, words: str) -> None:
    assert counted(count, "line") == words


@pytest.mark.parametrize(
    ("names", "words"), [("", ""), ("a", "a"), ("ab", "a and b"), ("abcd", "a, b, c and d")]
)
def test_names_are_listed_with_one_and(names: str, words: str) -> None:
    assert listed(names) == words


def test_names_are_listed_with_another_word() -> None:
    assert listed((1, 2, 3), "or") == "1, 2 or 3"


def test_all_sentences_list_names_in_the_same_way() -> None:
    package = Path(anabranch.__file__).parent
    others = [
        f"{file.relative_to(package)}: {found[0]}"
        for file in package.rglob("*.py")
        if file.name != "words.py"
        for found in re.finditer(r"""["'] (and|or) ["']\.join""", file.read_text(encoding="utf-8"))
    ]
    assert not others


def test_a_table_without_rows_is_a_line() -> None:
    screen = Console(width=80)
    with screen.capture() as captured:
        for part in Grid("Counters", ("counter", "client"), []).fitted(screen):
            screen.print(part)
    assert captured.get() == "Counters: none\n\n"
    html = page.template("parts.html").module.table(Table(("a", "b"), ()), "empty")  # type: ignore[attr-defined]
    assert "None." in html
    assert "<table>" not in html


def test_the_number_of_a_source_stands_beside_ours() -> None:
    bound = within(1.06, 1.18, "2026-11-24", "12 % more").stating(1.12)
    measured = Measured(
        Condition("ratio", lambda _: Estimate(1.1, 1.0, 1.2, 5), bound), "ratio",
        Estimate(1.1, 1.0, 1.2, 5),
    )  # fmt: skip
    assert bound.text == "1.06 to 1.18 (source: 1.12)"
    assert measured.text().startswith("ratio = 1.10 [1.00, 1.20], source 1.12 (1.06 to 1.18: open")
    assert measured.as_json()["bound"]["stated"] == [1.12]
    assert strips.strip(measured).count('class="stated"') == 1


def test_the_numbers_of_sources_lie_in_their_bounds() -> None:
    for row in registry.registered().claims.values():
        for name, bound in row.bounds.items():
            for stated in bound.stated:
                assert bound.distance(stated) <= 1e-9, (row.place, name)
