"""The notebooks as pages, with the outputs of a run that is made for them."""

from __future__ import annotations

import nbformat
from links import NOTEBOOKS
from nbclient import NotebookClient
from nbconvert import MarkdownExporter


def notebooks() -> dict[str, bytes]:
    """Files of the site by their names: a page for each notebook, and its images."""
    files: dict[str, bytes] = {}
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
        NotebookClient(notebook, timeout=300).execute()
        images = f"{file.stem}_files"
        text, resources = MarkdownExporter().from_notebook_node(
            notebook, resources={"output_files_dir": images}
        )
        note = f"*This page is the notebook `examples/notebooks/{file.name}`, executed.*\n\n"
        head, _, rest = text.partition("\n\n")
        files[f"{file.stem}.md"] = f"{head}\n\n{note}{rest}".encode()
        files |= resources["outputs"]
    return files
