"""The notebooks run without errors, and contain no outputs that could be out of date."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples/notebooks").glob("*.ipynb"))


def read(file: Path) -> Any:
    return nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_holds_no_outputs(file: Path) -> None:
    cells = [cell for cell in read(file).cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    assert {cell.execution_count for cell in cells} == {None}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file: Path) -> None:
    NotebookClient(read(file), timeout=300).execute()
