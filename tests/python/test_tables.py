import dataclasses

import polars as pl
import pytest

from anabranch import _core
from anabranch.batches import batch
from anabranch.batches.reduction import Task, make, require_free_names
from anabranch.batches.tables import tables
from anabranch.errors import InputError
from anabranch.results.collected import Collected
from anabranch.results.folder import TABLES, Factor
from anabranch.results.provenance import build
from anabranch.scenarios import loading
from conftest import scenario

SCENARIO = loading.of_text(scenario("2s").to_toml(), "test")


def task(seed: int, factors: dict[str, Factor], of: _core.Scenario = SCENARIO) -> Task:
    return Task(cell="cell", factors=factors, scenario=of, seed=seed, build=build())


def collected(tasks: list[Task]) -> dict[str, pl.DataFrame]:
    scenarios = batch.Numbered(each.scenario for each in tasks)
    runs = list(zip(scenarios.of_each, map(make, tasks), strict=True))
    found = Collected(_core.collect(scenarios.distinct, runs))
    return tables(tasks, scenarios.of_each, found)


def test_each_row_has_the_labels_of_its_run() -> None:
    tasks = [task(1, {"n": 2}), task(2, {"n": 2.5, "late": True})]
    found = collected(tasks)
    assert list(found) == list(TABLES)
    for name in ("runs", "subflows", "links", "counters"):
        table = found[name]
        assert table.columns[:3] == ["cell", "n", "seed"], name
        assert table.columns[-1] == "late", name
        rows = table.select("n", "seed", "late").unique().sort("seed").rows()
        assert rows == [(2.0, 1, None), (2.5, 2, True)]
        assert table.schema["seed"] == pl.Int32
    assert found["blocks"].is_empty()
    assert found["samples"].is_empty()


def test_columns_that_only_later_runs_have_stand_at_the_right() -> None:
    text = SCENARIO.to_toml().replace('"wifi"', '"lte"')
    renamed = loading.of_text(text, "test")
    tasks = [task(1, {"n": 1}), task(1, {"n": 2}, renamed)]
    runs = collected(tasks)["runs"]
    assert runs.columns[-2:] == ["share_lte", "srtt_p95_ms_lte"]
    assert runs["share_wifi"].to_list()[1] is None
    assert runs["share_lte"].to_list()[0] is None


def test_kept_tables_have_the_columns_of_tables_that_are_not_kept() -> None:
    kept = dataclasses.replace(task(1, {"n": 1}), keep_blocks=True, keep_samples=True)
    full, empty = (collected([each]) for each in (kept, task(1, {"n": 1})))
    for name in ("blocks", "samples"):
        assert not full[name].is_empty()
        assert full[name].schema == empty[name].schema


def test_a_factor_cannot_have_the_name_of_a_column() -> None:
    with pytest.raises(InputError, match='"cwnd" is a column of the results; choose another name'):
        require_free_names([task(1, {}), task(1, {"cwnd": 1})])
