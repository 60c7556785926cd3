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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("before", ["", "import matplotlib.pyplot\n"])
def test_a_notebook_shows_a_plot_once_as_a_picture(before: str) -> None:
    run = 'anabranch.run("examples/wifi_3g.toml", settings={"duration": "6s"})'
    code = f"{before}import anabranch\n{run}.plot()"
    cell = nbformat.v4.new_code_cell(code)  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]
    root = str(Path(__file__).parents[2])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": root}}).execute()
    (output,) = cell.outputs
    assert "image/png" in output.data
