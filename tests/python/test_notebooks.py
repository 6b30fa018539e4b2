"""The notebooks of the examples run from top to bottom."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples/python"


@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run_from_top_to_bottom_without_stored_outputs(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "notebooks are kept without their outputs"
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    assert names["runtime"].closed
