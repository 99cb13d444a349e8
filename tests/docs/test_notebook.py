"""The notebook runs from top to bottom, and prints what it shows."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_notebook_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Execute its code cells in one namespace, and compare their text outputs."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {}
    wrong = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = _printed("".join(cell["source"]), names)
        if printed != "".join(line for each in cell["outputs"] for line in each["text"]):
            wrong.append(f"{cell['id']} prints\n{printed}")
        output = {"name": "stdout", "output_type": "stream", "text": printed.splitlines(True)}
        cell["outputs"] = [output] if printed else []
    if request.config.getoption("--update-docs"):
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        return
    assert not wrong, "\n".join([*wrong, "if this is right: `make outputs`"])


def _printed(source: str, names: dict[str, Any]) -> str:
    """Run a cell; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "notebook", "exec"), names)
    return out.getvalue()


def test_the_notebook_is_valid() -> None:
    """Every cell has what version 4.5 of the format requires."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(
        {"cell_type", "id", "metadata", "source"} <= cell.keys() for cell in notebook["cells"]
    )
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
