"""The parts that entries of the gallery are made of: bounds, claims, measures, metrics, panels."""

import dataclasses
import math
import re
import runpy
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from anabranch import forms
from anabranch.errors import InputError
from anabranch.gallery import catalogue, panels, registry, reproduce, systems
from anabranch.gallery.claims import (
    Quantity,
    all_of,
    at_every,
    carried,
    claim,
    each,
    for_each,
    least,
)
from anabranch.gallery.data import rows_of, template
from anabranch.gallery.entries import field_reports
from anabranch.gallery.entry import (
    Cell,
    Factors,
    Overview,
    ScenarioText,
    Tier,
    grid,
    joined,
    key_of,
)
from anabranch.gallery.measures import (
    by_seed,
    derived,
    difference,
    distance,
    in_words,
    mean,
    mean_ratio,
    median,
    over_largest,
    over_smallest,
    over_sum,
    ratio,
    ratio_of_ratios,
    smallest,
)
from anabranch.gallery.metrics import GOODPUT, PAUSE, Metric, share
from anabranch.gallery.parameters import Parameter, parameters, quoted, with_shared_rows
from anabranch.reports.figures import BLUE, RED, Style
from anabranch.results.claims import Claim, Verdict, judge
from anabranch.results.estimates import Sample
from anabranch.results.folder import TABLES, NothingMeasured, Results
from anabranch.scenarios import loading
from anabranch.scenarios.scenario import Bulk, Connection, NetworkPath, Scenario

SLOW, FAST = {"curve": "slow"}, {"curve": "fast"}


@pytest.fixture(scope="module")
def results() -> Results:
    """Three seeds of two curves at two sizes. Path two of the slow curve carries 1 %."""
    rows = [
        {
            "cell": f"{curve}-{size}",
            "seed": seed,
            "curve": curve,
            "size": size,
            "goodput_mbps": goodput * size + seed / 10,
            "recovery_ms": 1500.0,
            "share_two": 0.01 if curve == "slow" else 0.4,
        }
        for curve, goodput in (("slow", 2.0), ("fast", 8.0))
        for size in (1, 2)
        for seed in (1, 2, 3)
    ]
    tables: dict[str, Any] = {name: pl.DataFrame() for name in TABLES}
    tables["runs"] = pl.DataFrame(rows)
    return Results(provenance={}, scenarios={}, **tables)


def at(curve: str, size: int = 1) -> dict[str, Any]:
    return {"curve": curve, "size": size}


def named(claims: dict[str, Any], **words: object) -> tuple[Claim, ...]:
    """The claims of an entry with these words."""
    entry = dataclasses.replace(catalogue.entry("nsdi12-fig7"), named_claims=claims, words=words)
    return entry.with_row("x", dataclasses.replace(entry.row, headline="")).claims


def value(measure: Any, results: Results) -> float:
    return float(measure(results).value)


HEAD = "title = 't'\nquestion = 'q'\ncites = []\nquick = { seeds = 5, measured_s = 10 }\n"
ROW = f"{HEAD}['E.a']\nstatement = 's'\nsource = 's'\n"
"""An entry of the registry with a claim without a bound."""
SINCE = "since = 2026-11-20, reason = 'r'"


def test_a_bound_of_the_registry_states_its_ends_its_source_and_what_it_was() -> None:
    row = {
        "within": [0.5, 2],
        "unit": "s",
        "source": "1 / 4",
        "since": date(2026, 11, 20),
        "reason": "this project",
        "was": [[date(2026, 11, 24), "at least 1"], [date(2026, 11, 25), "at least 0.7"]],
    }
    bound = registry.bound_of("x", row)
    assert (bound.low, bound.high, bound.unit, bound.stated) == (0.5, 2, "s", (0.25,))
    assert (
        bound.reason == "this project; until 2026-11-24 at least 1; until 2026-11-25 at least 0.7"
    )
    row = {"above": 3, "since": date(2026, 11, 20), "reason": "r", "source": [3, 4]}
    strict = registry.bound_of("x", row)
    assert (strict.low, strict.high, strict.is_strict) == (3, math.inf, True)
    assert strict.stated == (3, 4)


SYSTEM = f'{HEAD}system = "NSDI\'12"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a", ": Expected ']'"),
        ("title = 't'", ' needs the key "question"'),
        ("title = 3", ": title = 3 has to be text"),
        ("title = ''", ": title = '' has to be text"),
        ("cites = 'a'", ": cites = 'a' has to be a list of names"),
        ("cites = [3]", ": cites = 3 has to be text"),
        (
            HEAD.replace("[]", "['RFC 6365']"),
            ': cites: unknown source "RFC 6365"; did you mean "RFC 6356"?',
        ),
        (f"{HEAD}system = 'NSDI12'", ': system: unknown system "NSDI12"; did you mean "NSDI\'12"?'),
        (f"{HEAD}uncertain = ['link']", ': uncertain: unknown group "link"; did you mean "links"?'),
        (f"{HEAD}studied = ['remedies']", ' has the key "studied", so it needs the key "system"'),
        (
            f"{SYSTEM}studied = ['remedy']",
            ': studied: unknown policy "remedy"; did you mean "remedies"?',
        ),
        (f"{HEAD}full = {{ seed = 5 }}", ': full: unknown key "seed"; did you mean "seeds"?'),
        (f"{HEAD}full = {{ seeds = 5 }}", ': full needs the key "measured_s"'),
        (
            f"{HEAD}full = {{ seeds = 0, measured_s = 5 }}",
            ": full: seeds = 0 has to be a whole number from 1",
        ),
        (
            f"{HEAD}full = {{ seeds = 5, measured_s = -1 }}",
            ": full: measured_s = -1 has to be a whole number from 0",
        ),
        (f"{HEAD}full = 3", ": full = 3 has to be a table"),
        (
            f"{HEAD}notes = 'a }} b'",
            ": notes: Single '}' encountered in format string; write words as {paths}",
        ),
        (f"{HEAD}captions = 3", ": captions = 3 has to be a table"),
        (f"{HEAD}[captions]\n'a: b' = 3", ': captions."a: b" = 3 has to be text'),
        (f"{HEAD}[caption]\na = 'b'", ': unknown key "caption"; did you mean "captions"?'),
        (f"{HEAD}titel = 't'", ': unknown key "titel"; did you mean "title"?'),
        (
            f"{HEAD}[a.b]\nstatement = 's'",
            ': "a" is no claim: write names in quotes, as ["E1.3-x"]',
        ),
        (f"{HEAD}['E.a']", ': "E.a" needs the key "statement"'),
        (f"{HEAD}['E.a']\nbound = {{ above = 1, {SINCE} }}", ': "E.a" needs the key "statement"'),
        (f"{HEAD}[a]\nstatement = 's'", ': "a" needs the key "source"'),
        (f"{HEAD}['E.a']\nstatment = 's'", ': "E.a": unknown key "statment"; did you mean "state'),
        (f"{HEAD}['E.a']\nstatement = 's'\nsource = 3", ': "E.a": source = 3 has to be text'),
        (
            f"{HEAD}['E.a']\nstatement = '{{}}'\nsource = 's'",
            ': "E.a": statement: {} names no word; write words as {paths} or {paths:.1f}, and a',
        ),
        (f"{ROW}where = 3", ': "E.a": where = 3 has to be text'),
        (f"{ROW}bounds = 3", ': "E.a": bounds = 3 has to be bounds by name, as bounds.mean'),
        (f"{ROW}bound = 3", ': "E.a": bound = 3 has to be a bound, or the name of one'),
        (f"{ROW}bounds.b = 'c d'", ": bounds.b = 'c d' is neither a bound nor names one"),
        (f"{ROW}bound = 'E.a'", ": bound = 'E.a' is neither a bound nor names one"),
        *(
            (f"{ROW}where = '{braces}'", f': "E.a": where: {braces} names no word')
            for braces in ("{a.b}", "{a b}", "{a-b}", "{a!r}", "{a:{b}}", "{a[0].b}")
        ),
        ("'a\\nb' = 3".replace("'", '"'), r': unknown key "a\nb"'),
        (f'{HEAD}["E.a\\nb"]\nsource = 3', r': "E.a\nb": source = 3 has to be text'),
        (f'{HEAD}[captions]\n"a\\nb" = 3', r': captions."a\nb" = 3 has to be text'),
        ("notes.a.b = 1", ": notes = {'a': {'b': 1}} has to be text"),
        ("[title]\nstatement = 's'", ": title = {'statement': 's'} has to be text"),
        (f"{ROW}bounds.'b c' = 'd'", ": bounds.\"b c\" = 'd' is neither a bound nor names one"),
        (f"{ROW}bound = {{}}", "its keys are none"),
        (f"{ROW}bound = {{ above = 1{'0' * 400}, {SINCE} }}", "0 has to be a number"),
        (f"{ROW}bound = ''", ": bound = '' is neither a bound nor names one"),
        (
            f"{ROW}bound = {{ at_leest = 3 }}",
            ": bound needs one of at_least, at_most, above, below, within; its keys are at_leest",
        ),
        (f"{ROW}bound = {{ at_least = 3, at_most = 4 }}", "its keys are at_least, at_most"),
        (f"{ROW}bounds.b = {{ above = 3 }}", ': "E.a": bounds.b needs the key "since"'),
        (f"{ROW}bounds.'b c' = {{ above = 3 }}", ': "E.a": bounds."b c" needs the key "since"'),
        *(
            (f"{ROW}bound = {{ {keys} }}", f': "E.a": bound: {words}')
            for keys, words in (
                (f"within = [1, 2], basis = 'b', {SINCE}", "within takes no basis"),
                (f"above = 3, {SINCE}, units = 's'", 'unknown key "units"; did you mean "unit"?'),
                (f"above = 3, {SINCE}, unit = 3", "unit = 3 has to be text"),
                (
                    f"above = 3, {SINCE}, was = [2026-11-20]",
                    "was = [datetime.date(2026, 11, 20)] has to be earlier bounds, as [[2026-11-24",
                ),
                (
                    f"above = 3, {SINCE}, was = [['x', 2026-01-02]]",
                    "was = [['x', datetime.date(2026, 1, 2)]] has to be earlier bounds",
                ),
                (
                    f"above = 3, {SINCE}, source = '1/4'",
                    "source = '1/4' has to be a number, [low, high], or a ratio as \"70 / 366\"",
                ),
                (f"above = 3, {SINCE}, source = '1 / 0.0'", "source = '1 / 0.0' has to be a"),
                (f"above = 3, {SINCE}, was = [[2026-01-02, '']]", "was = [[datetime.date("),
                (f"above = '3', {SINCE}", "above = '3' has to be a number"),
                (f"above = nan, {SINCE}", "above = nan has to be a number"),
                (f"above = true, {SINCE}", "above = True has to be a number"),
                (f"within = [4, 3], {SINCE}", "within = [4, 3] has to be [low, high]"),
                (f"within = [3], {SINCE}", "within = [3] has to be [low, high]"),
                (
                    "above = 3, since = '2026-11-20', reason = 'r'",
                    "since = '2026-11-20' has to be a day without quotes, as 2026-11-20",
                ),
                ("above = 3, since = 2026-11-20, reason = ''", "reason = '' has to be text"),
            )
        ),
    ],
)
def test_a_mistake_in_the_registry_is_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InputError) as error:
        registry.read(tmp_path)
    assert str(error.value).startswith("x.toml")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("of", "text", "words"),
    [
        (forms.TEXT, "a = 3", 'x.toml: "a" = 3 has to be text'),
        (
            template,
            "a = '{'",
            "x.toml: \"a\": Single '{' encountered in format string; write words as {paths} or",
        ),
        (forms.rows(forms.TEXT), "a = 3", 'x.toml: "a" = 3 has to be a table'),
        (forms.rows(forms.TEXT), "[a]\n'b c' = 3", 'x.toml: "a"."b c" = 3 has to be text'),
        (
            systems.SOURCE_ROW,
            "[a]\nsays = 's'\nlinks = 'clear'",
            'x.toml: "a": links: unknown kind of links "clear"; did you mean "clean"?',
        ),
        (systems.SOURCE_ROW, "[a]\nlinks = 'clean'", 'x.toml: "a" needs the key "says"'),
        (
            catalogue.TIMES,
            "a = [1, '2']",
            "x.toml: \"a\" = [1, '2'] has to be two times in s, [quick, full]",
        ),
        (
            field_reports.ROW,
            "[a]\nthread = 't'\nsays = 's'\nassumed = 'a'\nmbps = 1\nharmed = 'no'",
            "x.toml: \"a\": harmed = 'no' has to be true or false",
        ),
        (
            field_reports.ROW,
            "[a]\npaths = [{ name = 'a', rat = 'b' }]",
            'x.toml: "a": paths has to be a list of paths, as in a scenario: NetworkPath.__init',
        ),
        (
            field_reports.ROW,
            "[a]\npaths = []",
            'x.toml: "a": paths has to be a list of paths, as in a scenario: max()',
        ),
        (field_reports.ROW, "[a]\nkey = 'b'", 'x.toml: "a": unknown key "key" (valid: thread,'),
    ],
)
def test_a_mistake_in_a_data_file_is_named(
    of: forms.Form, text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.toml").write_text(text)
    monkeypatch.setattr("anabranch.gallery.data.files", lambda _: tmp_path)
    with pytest.raises(InputError) as error:
        rows_of("x.toml", of)
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)


def test_two_files_of_the_registry_cannot_have_one_claim(tmp_path: Path) -> None:
    for name in ("x.toml", "y.toml"):
        (tmp_path / name).write_text(ROW)
    with pytest.raises(InputError, match=r'y\.toml: "E\.a" is also in x\.toml'):
        registry.read(tmp_path)


def test_a_claim_finds_its_bounds_by_its_name_and_by_its_quantities() -> None:
    measure = GOODPUT.median(SLOW)
    quantities = Quantity("mean", measure), (Quantity("IQR", measure, "IQR"),)
    claims = {
        "E1.3-m12-beats-regular": claim(*quantities),
        "E1.3-m12-beats-regular-2012": claim(*quantities),
        "E1.3-other": claim(Quantity("q", measure), row="E7.c-less-delay"),
    }
    found, same, other = named(claims)
    assert [found.id, same.id, other.id] == [*claims]
    row = registry.row(found.id)
    assert (found.statement, found.source) == (row.statement, row.source)
    assert [each.bound for each in found.conditions] == [row.bound(""), row.bound("IQR")]
    assert [each.bound for each in same.conditions] == [row.bound(""), row.bound("IQR")]
    assert other.conditions[0].bound == registry.row("E7.c-less-delay").bound("")
    with pytest.raises(
        InputError, match=r'has the claim "E1\.1-3g"; did you mean "E1\.1-3g-slower"'
    ):
        named({"E1.1-3g": claim(Quantity("q", measure))})
    with pytest.raises(InputError, match=r'"E7\.c-less-delay" needs the key "bounds.other"'):
        named({"E7.c-less-delay": claim(Quantity("q", measure, "other"))})


def test_a_claim_gives_the_words_that_its_row_needs() -> None:
    shared = partial(claim, row="E1s.3-heavier-tail", setting="few queues")
    (found,) = named({"E1s.3-x": shared(queue="")})
    assert found.statement.startswith("With few queues, the tail of MPTCP")
    with pytest.raises(InputError, match=r'heavier-tail" has \{queue\}, .* code does not give'):
        named({"E1s.3-x": shared()})
    with pytest.raises(InputError, match=r"lacks \{other\}, which the entry.s code gives"):
        named({"E1s.3-x": shared(queue="", other="")})
    (same,) = named({"E1s.3-x": shared()}, queue="", other="for another claim")
    assert same.statement == found.statement


def test_words_can_have_lines_and_forms() -> None:
    row = registry.ClaimRow("x", "{a:.1f} of {{b}}, {c}", "source", "", {})
    texts = row.words({"a": 1, "c": "two\nlines"}, {"b": 1})
    assert texts == ("1.0 of {b}, two\nlines", "source", "")
    with pytest.raises(InputError, match="x: Unknown format code 'f'"):
        row.words({"a": "text", "c": ""}, {})


def test_a_style_has_a_colour_and_matplotlibs_form() -> None:
    assert (Style(RED, "s--").marker, Style(RED, ":").marker) == ("s", "")
    assert Style(RED, "x").line == "none"
    for wrong in ("oo-", "-o", "o---", "nonsense"):
        with pytest.raises(ValueError, match="is not a marker and a line, as o- or s--"):
            Style(RED, wrong)


def test_the_table_of_all_cells_has_the_units_of_its_headings(results: Results) -> None:
    recovery = Metric("recovery_ms", "recovery", "s", 1e-3)
    table = reproduce._overview_table(results, Overview("curve; size", "two", (GOODPUT, recovery)))
    assert table.headings == ("curve", "size", "goodput (Mbit/s)", "recovery (s)", "two carried")
    assert table.rows[0][3].startswith(recovery.text(results, at("slow")).removesuffix(" s"))
    assert table.rows[0][3].startswith("1.5")


def test_similar_quantities_are_described_once() -> None:
    measure = GOODPUT.median(SLOW)
    quantities = each("every cell", {"a": measure, "b": measure})
    both = claim(quantities)("E7.c-less-delay", {})
    assert both.check == "next to 2G: every cell ≤ 0.8 (each of 2)"
    sizes = at_every("a / b", (10, 20), "kB", lambda size: GOODPUT.median(at("slow", size)))
    assert [each.words for each in sizes] == ["a / b at 10 kB", "a / b at 20 kB"]
    assert {each.group for each in sizes} == {"a / b at every buffer"}


def test_there_is_one_quantity_for_each_case() -> None:
    def measure(curve: str, size: int = 1) -> Any:
        return GOODPUT.median(at(curve, size))

    found = for_each("{} curve", ("slow", "fast"), measure, "both curves", "tail")
    assert [each.words for each in found] == ["slow curve", "fast curve"]
    assert {(each.group, each.bound) for each in found} == {("both curves", "tail")}
    with pytest.raises(InputError, match='"goodput" gives several cases the same words'):
        for_each("goodput", ("slow", "fast"), measure)
    (of_pair,) = for_each("size {1}, {0}", [("slow", 2)], measure)
    assert of_pair.words == "size 2, slow"


def test_the_smallest_of_several_quantities_is_named(results: Results) -> None:
    cases = {name: GOODPUT.median(at(name)) for name in ("slow", "fast")}
    smallest = least("smallest goodput", cases)
    assert smallest.describe is not None
    assert smallest.describe(results) == "smallest of 2: slow"
    assert value(smallest.measure, results) == pytest.approx(2.2)


def test_a_precondition_names_the_path_that_carried_too_little(results: Results) -> None:
    assert carried("two", at("fast"))(results) is None
    reason = "two carried only 1.00 % of the bytes (slow, 1)"
    assert carried("two", at("fast"), at("slow"))(results) == reason
    assert carried("two", at("slow"), over=0.005)(results) is None
    assert "no share_two" in str(carried("two", at("none"))(results))
    assert all_of(carried("two", at("fast")), carried("two", at("slow")))(results) == reason
    quantity = Quantity("q", GOODPUT.median(at("slow")))
    needy = claim(quantity, needs=carried("two", at("slow")))
    judged = judge(needy("E7.c-less-delay", {}), results)
    assert (judged.verdict, judged.reason) == (Verdict.NOT_APPLICABLE, reason)


def test_measures_are_statistics_over_seeds(results: Results) -> None:
    # By seed: slow 2.1, 2.2, 2.3; fast 8.1, 8.2, 8.3; twice the size adds 2 and 8.
    slow, fast = (GOODPUT.values(at(curve)) for curve in ("slow", "fast"))
    large = GOODPUT.values(at("slow", 2))
    assert value(median(slow, 10), results) == pytest.approx(22)
    assert value(mean(slow), results) == pytest.approx(2.2)
    assert value(smallest(fast), results) == pytest.approx(8.1)
    texts = in_words(results, ("slow", "fast"), lambda curve: GOODPUT.mean(at(curve)), "Mbit/s")
    alone = (GOODPUT.mean(at(curve))(results).text("Mbit/s") for curve in ("slow", "fast"))
    assert texts == "slow {}, fast {}".format(*alone)
    assert value(ratio(fast, slow), results) == pytest.approx(8.2 / 2.2)
    assert value(mean_ratio(fast, slow), results) == pytest.approx(8.2 / 2.2)
    assert value(difference(fast, slow), results) == pytest.approx(6)
    assert value(distance(slow, fast), results) == pytest.approx((1 - 2.2 / 8.2) * 100)
    assert value(over_sum(fast, slow, large), results) == pytest.approx(8.2 / (2.2 + 4.2))
    assert value(over_largest(fast, slow, large), results) == pytest.approx(8.2 / 4.2)
    assert value(over_smallest(fast, slow, large), results) == pytest.approx(8.2 / 2.2)
    four = ratio_of_ratios(fast, slow, large, slow)
    assert value(four, results) == pytest.approx((8.2 / 2.2) / (4.2 / 2.2))
    assert derived(np.subtract, fast, slow)(results) == pytest.approx([6, 6, 6])


def test_values_of_an_entrys_own_are_applied_to_results_later(results: Results) -> None:
    @by_seed
    def times(results: Results, curve: str, factor: float) -> Sample:
        return results.values("goodput_mbps", **at(curve)) * factor

    assert times("slow", factor=2)(results) == pytest.approx([4.2, 4.4, 4.6])
    with pytest.raises(NothingMeasured):
        times("none", 1)(results)


def test_a_metric_has_its_words_and_its_unit(results: Results) -> None:
    assert GOODPUT.heading == "goodput (Mbit/s)"
    assert GOODPUT.called("rate").heading == "rate (Mbit/s)"
    assert Metric("reinjections", "reinjections").heading == "reinjections"
    assert share("two").heading == "two's share of the bytes (%)"
    assert PAUSE.number(results, at("slow")) == pytest.approx(1.5)
    assert PAUSE.text(results, at("slow")) == "1.50 s"
    assert share("two").text(results, at("fast")) == "40.00 %"
    assert GOODPUT.text(results, at("none")) == "–"
    assert value(GOODPUT.difference(at("fast"), at("slow")), results) == pytest.approx(6)


def test_factors_have_an_order_and_defaults() -> None:
    factors = Factors("curve", "size", blackout=False)
    assert list(factors("a", 1).items()) == [("curve", "a"), ("size", 1), ("blackout", False)]
    assert factors("a", size=2, blackout=True) == {"curve": "a", "size": 2, "blackout": True}
    for levels, named in ((("a",), {}), (("a", 1, True, 2), {}), (("a", 1), {"curve": "b"})):
        with pytest.raises(TypeError, match="the factors are curve, size, blackout"):
            factors(*levels, **named)


def test_the_key_of_a_cell_is_a_file_name() -> None:
    assert key_of("MPTCP+M1,2 (2012)", "3G WLAN") == "mptcp-m1-2-2012_3g-wlan"


def test_a_table_of_parameters_continues_indented_rows() -> None:
    found = parameters("""
WiFi | 8 Mbit/s, 20 ms RTT | NSDI'12
jitter | uniform, ± the value, only in the direction
    of the data
""")
    assert [each.name for each in found] == ["WiFi", "jitter"]
    assert found[1].value == "uniform, ± the value, only in the direction of the data"
    assert found[1].source == "this project"
    with pytest.raises(InputError, match=r'parameters: "WiFi" needs the form: name'):
        parameters("WiFi")


def test_tables_of_parameters_can_share_rows() -> None:
    names = [each.name for each in parameters(with_shared_rows("a | 1\n<low_bdp>\n<high_bdp>\n"))]
    assert names == ["a", "low-BDP", "high-BDP"]
    with pytest.raises(
        InputError, match='unknown shared rows "wifi"; did you mean "wifi_3g_stack"'
    ):
        with_shared_rows("<wifi>")


def _cell(tier: Tier, curve: str, size: int) -> Cell:
    link = NetworkPath(name="one", rate="1Mbit/s", delay="1ms", limit="10packets")
    main = Connection(name="main", workload=Bulk())
    return tier.cell(at(curve, size), (link,), main, keep_starts=size == 3)


def given(words: dict[str, Any], _: Results) -> dict[str, Any]:
    return words


def test_the_text_of_an_entry_has_words_from_its_code(results: Results) -> None:
    row = dataclasses.replace(
        registry.entry("nsdi12-fig7"),
        captions={"a *": "Up to {most} kB.", "b": "b"},
        notes="At {most} kB:\n{rates[slow | 1]}, {rates[fast | 1]}.\n\n{more}\n\n{none}\n",
        parameters="most | {most} kB",
    )
    texts = GOODPUT.texts(results, at)
    entry = dataclasses.replace(
        catalogue.entry("nsdi12-fig7"),
        row=row,
        source=None,
        design=grid(_cell, size=(1, 2, 3), curve=("slow", "fast")),
        drawings={"a panel": print, "b": print},
        words={"most": 3},
        measured_words=lambda _: {"rates": texts, "more": "one\n\ntwo", "none": ""},
    )
    assert [panel.caption for panel in entry.panels] == ["Up to 3 kB.", "b"]
    assert [(each.name, each.value) for each in entry.parameter_table()] == [("most", "3 kB")]
    slow, fast = (GOODPUT.text(results, at(curve, 1)) for curve in ("slow", "fast"))
    assert entry.notes(results) == [f"At 3 kB: {slow}, {fast}.", "one", "two"]
    place = "the entry nsdi12-fig7"
    for notes, words, measured, error in (
        ("{a}", {}, {}, "has {a}, which the entry's code does not give"),
        ("a", {}, {"a": 1}, "lacks {a}, which the entry's code gives"),
        ("{a}", {"a": 1}, {"a": 1}, "the entry's code gives {a} twice"),
        ("{a:.2f}", {"a": "x"}, {}, "Unknown format code 'f' for object of type 'str'"),
        ("{a}", {}, {"a": texts}, "goodput needs levels in brackets, as in {x[MPTCP | 32]}"),
        ("{a[slwo | 1]}", {}, {"a": texts}, "goodput of [slwo | 1]: no cell has these levels"),
        ("{a[1]}", {}, {"a": texts}, "goodput of [1]: no cell has these levels"),
        ("{a[slow |\n x]}", {}, {"a": texts}, "goodput of [slow | x]: no cell has these levels"),
        ("{a[slow | x]}", {}, {"a": texts}, "goodput of [slow | x]: no cell has these levels"),
        ("{a[slow | 1 | 2]}", {}, {"a": texts}, "takes from 1 to 2 positional arguments"),
    ):
        other = dataclasses.replace(row, notes=notes)
        changed = dataclasses.replace(
            entry, row=other, words=words, measured_words=partial(given, measured)
        )
        with pytest.raises(InputError) as found:
            changed.notes(results)
        assert str(found.value).startswith(f"{place}: notes")
        assert error in str(found.value)
    with pytest.raises(InputError, match='captions: none of the panel "c"'):
        _ = dataclasses.replace(entry, drawings={"c": print}).panels
    wrong = dataclasses.replace(row, parameters="most")
    with pytest.raises(InputError, match='nsdi12-fig7: parameters: "most" needs the form'):
        dataclasses.replace(entry, row=wrong).parameter_table()


def test_notes_name_levels_that_are_numbers(results: Results) -> None:
    factors = Factors("curve", "size", loss=0.0)
    runs = results.runs.with_columns(loss=pl.col("size") / 10)
    cells = [factors("slow", size, size / 10) for size in (1, 2, 3_000_000)]
    texts = GOODPUT.texts(dataclasses.replace(results, runs=runs), factors)
    texts = dataclasses.replace(texts, cells=cells)
    assert texts["slow | 1 | 0.1"] == texts["slow | 1.0 | 0.1"]
    assert texts["slow | 1 | 0.1"] == GOODPUT.text(results, at("slow", 1))
    assert texts["slow | 3000000 | 300000"] == "–", "these results lack the cell"
    with pytest.raises(InputError, match="no cell has these levels"):
        _ = texts["slow | 1"]
    for levels in ("slow", "slow | 1 | 0.1 | 2"):
        with pytest.raises(TypeError, match="the factors are curve, size, loss"):
            _ = texts[levels]


def test_a_tier_gives_scenarios_its_duration_and_warm_up() -> None:
    tier = Tier("quick", seeds=5, measured_s=10, warm_up_s=2)
    path = NetworkPath(name="one", rate="1Mbit/s", delay="1ms", limit="10packets")
    main = Connection(name="main", workload=Bulk())
    scenario = tier.scenario("name", [path], main)
    assert (scenario.duration, scenario.warm_up) == ("12s", "2s")
    assert (scenario.paths, scenario.connections) == ((path,), (main,))
    other = tier.scenario("name", [path], [main], warm_up=None, sample_interval="1s")
    assert (other.duration, other.warm_up, other.sample_interval) == ("12s", None, "1s")


STYLES = {"slow": Style(RED), "fast": Style(BLUE)}


def drawn(draw: panels.Draw, results: Results) -> Any:
    axes = Figure().subplots()
    draw(results, axes)
    return axes


def test_a_metric_is_drawn_over_a_factor_with_its_label(results: Results) -> None:
    curves = panels.curves(STYLES, "fast", "slow")
    axes = drawn(panels.over("size", GOODPUT, curves, "size (kB)", ticks=(1, 2), top=20), results)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size (kB)", "goodput (Mbit/s)")
    assert axes.get_ylim() == (0, 20)
    assert axes.get_xscale() == "log"
    labels = [text.get_label() for text in axes.containers]
    assert labels == ["fast", "slow"]


def test_what_was_not_measured_is_left_out_of_points(results: Results) -> None:
    def measure(curve: str, size: int) -> Any:
        return GOODPUT.median(at(curve, size))

    draw = panels.points((1, 2, 3), measure, STYLES, "size", "goodput", log=True, lines={5: "five"})
    axes = drawn(draw, results)
    assert all(len(container[0].get_xdata()) == 2 for container in axes.containers)
    assert axes.get_yscale() == "log"
    assert "five" in [text.get_text() for text in axes.texts]


def test_bars_can_lack_a_group_and_show_the_source(results: Results) -> None:
    def measure(curve: str, size: int) -> Any:
        return None if (curve, size) == ("slow", 2) else GOODPUT.median(at(curve, size))

    groups = {"small": 1, "large": 2}
    draw = panels.bars(groups, measure, STYLES, "goodput", {"fast": (7.0, None)}, stated=[(0, 1)])
    axes = drawn(draw, results)
    heights = sorted(round(patch.get_height(), 3) for patch in axes.patches)
    assert heights == pytest.approx([2.2, 8.2, 16.2])
    marks = [line for line in axes.lines if line.get_marker() == "D"]
    assert [list(line.get_ydata()) for line in marks] == [[7.0], [1]]
    of_metric = drawn(panels.bars_of({"small": 1}, GOODPUT, at, STYLES), results)
    assert of_metric.get_ylabel() == "goodput (Mbit/s)"


def test_rates_over_time_are_differences_of_counted_bytes() -> None:
    # 1,000 bytes in each of 40 samples of 100 ms are 80 kbit/s.
    samples = pl.DataFrame(
        {
            "cell": "a",
            "seed": 1,
            "curve": "slow",
            "time_ns": [n * 100_000_000 for n in range(1, 41)],
            "bytes_delivered": [n * 1000 for n in range(1, 41)],
        }
    )
    tables: dict[str, Any] = {name: pl.DataFrame() for name in TABLES} | {"samples": samples}
    results = Results(provenance={}, scenarios={}, **tables)
    columns = {"slow": (SLOW, "bytes_delivered", Style(RED))}
    draw = panels.series(columns, "rate (Mbit/s)", bin_samples=10, zero_s=1, span=(-1, 3))
    axes = drawn(draw, results)
    assert axes.lines[0].get_ydata() == pytest.approx([0.08] * 3)
    assert axes.lines[0].get_xdata() == pytest.approx([0.1, 1.1, 2.1])
    assert axes.get_xlim() == (-1, 3)
    later = panels.series(
        {"slow": (SLOW, "bytes_delivered", Style(RED))},
        "bytes",
        zero_s=1,
        since_zero=True,
        shown_s=(0, 1),
        where=pl.col("bytes_delivered") > 0,
    )
    shown = drawn(later, results).lines[0]
    assert min(shown.get_xdata()) == pytest.approx(0)
    assert max(shown.get_xdata()) == pytest.approx(1)
    assert shown.get_ydata()[0] == pytest.approx(0)
    missing = panels.series({"fast": (FAST, "bytes_delivered", Style(BLUE))}, "rate")
    with pytest.raises(NothingMeasured, match="fast"):
        drawn(missing, results)


def test_a_design_is_drawn_as_shares_of_its_settings(results: Results) -> None:
    values = {"slow": (GOODPUT.values(at("slow")), Style(RED))}
    axes = drawn(panels.settings(values, "goodput", {2: "twice", 3: ""}, span=(0, 5)), results)
    assert [text.get_text().strip() for text in axes.texts] == ["twice"]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 5), (0, 1))


def test_places_of_an_axis_have_words(results: Results) -> None:
    def measure(curve: str, size: int) -> Any:
        return GOODPUT.median(at(curve, size))

    look: Any = {"places": ("small", "large"), "turned": 60, "uprights": (0.5,)}
    axes = drawn(panels.points({0: 1, 1: 2}, measure, STYLES, "", "goodput", **look), results)
    labels = axes.get_xticklabels()
    assert [(each.get_text(), each.get_rotation()) for each in labels] == [
        ("small", 60),
        ("large", 60),
    ]


def quote(value: str, *paths: NetworkPath) -> str:
    controls: dict[str, tuple[Literal["tcp", "mptcp"], str]] = {
        "lia": ("mptcp", "2MB"),
        "olia": ("mptcp", "1MB"),
        "new_reno": ("tcp", "2MB"),
    }
    connections = tuple(
        Connection(
            name=name,
            protocol=protocol,
            paths=("one",),
            send_buffer=buffer,
            congestion_control=name,
            workload=Bulk(),
        )
        for name, (protocol, buffer) in controls.items()
    )
    cells = {
        f"cell_{path.rate}": loading.of(
            Scenario(name="a", duration="1s", paths=(path,), connections=connections)
        ).settings
        for path in paths
    }
    return quoted([Parameter("name", value)], cells)[0].value


def test_a_parameter_quotes_the_scenarios_of_the_cells() -> None:
    path = NetworkPath(name="one", rate="8Mbit/s", delay="10ms", limit="54packets")
    assert quote("<path.one> (80 ms)", path) == "8 Mbit/s, 20 ms RTT, 54 packets (80 ms)"
    other = dataclasses.replace(path, rate="9Mbit/s", limit="80ms", jitter="100us", loss="0.5%")
    assert quote("<path.one>", other) == "9 Mbit/s, 20 ms RTT ± 100 µs, 80 ms of queue, 0.5 % loss"
    assert quote("<path.*.rate>", path, other) == "8, 9 Mbit/s"
    assert quote("<path.one.limit>", path, other) == "54 packets, 80 ms"
    assert quote("<path.one in cell_9*>, <path.one.rtt>", path, other).endswith("loss, 20 ms")
    assert quote("<connection.*.send_buffer>", path) == "2, 1 MB"
    assert quote("<congestion control>", path) == "TCP: NewReno; MPTCP: LIA, OLIA"


def test_a_parameter_cannot_quote_a_setting_that_no_scenario_has() -> None:
    path = NetworkPath(name="one", rate="8Mbit/s", delay="10ms", limit="54packets")
    with pytest.raises(InputError, match=r"<path.two>: no scenario of this entry"):
        quote("<path.two>", path)


def test_several_levels_give_the_factors_of_several_cells() -> None:
    at = Factors("curve", "size", loss=0)
    assert at.every(("a", "b"), 1) == [at("a", 1), at("b", 1)]
    assert at.every("ab", size=(1, 2), loss=3) == [at("ab", 1, 3), at("ab", 2, 3)]


def test_a_grid_has_a_cell_for_each_combination_of_levels() -> None:
    tier = Tier("quick", seeds=1, measured_s=5)
    cells = joined(grid(_cell, size=(1, 2), curve=("a", "b")), lambda tier: [_cell(tier, "c", 3)])
    assert [each.key for each in cells(tier)] == ["a_1", "b_1", "a_2", "b_2", "c_3"]
    last = cells(tier)[-1]
    assert isinstance(last.scenario, ScenarioText)
    scenarios = [last.task(seed).scenario.settings for seed in (1, 2)]
    assert [each["connection"][0]["start"] for each in scenarios] == ["0s", "0s"]


def test_a_metric_gives_the_text_of_a_cell_by_its_levels(results: Results) -> None:
    text = GOODPUT.texts(results, at)
    assert text("fast", 2) == GOODPUT.text(results, at("fast", 2))


def test_the_entry_in_the_guide_for_contributors_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in ("example.toml", "example.py"):
        block = guide.partition(f"<!-- {name} -->\n\n```")[2].partition("```")[0]
        (tmp_path / name).write_text(block.partition("\n")[2], encoding="utf-8")
    found = registry.read(tmp_path)
    monkeypatch.setattr(registry, "registered", lambda: found)
    code = runpy.run_path(str(tmp_path / "example.py"))
    entry = code["EXPERIMENT"].with_row("example", registry.entry("example"))
    tier = dataclasses.replace(entry.quick, seeds=2, measured_s=5, warm_up_s=1)
    results = reproduce.execute(entry, tier, tmp_path / "results")
    (judgement,) = reproduce.save_entry(entry, results, tmp_path / "results")
    assert judgement.verdict is Verdict.REPRODUCED
    assert judgement.claim.statement.startswith("Multipath TCP over two paths of 10 Mbit/s")
    assert re.search(r"TCP has \d.* Mbit/s, and .* of 20 Mbit/s\.", entry.notes(results)[0])
