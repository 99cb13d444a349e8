"""Demands from files: JSON, or a matrix as text."""

from pathlib import Path

import numpy as np

from a2aflow.errors import FormatError
from a2aflow.ir.demand import Demand
from a2aflow.ir.files.json import demand_from_json, demand_from_matrix, parse_json
from a2aflow.ir.files.text import read_text
from a2aflow.ir.topology import Topology


def read_demand(path: Path, topology: Topology) -> Demand:
    """Read JSON, or a matrix as text with blanks or commas between the cells."""
    text = read_text(path)
    if text.lstrip()[:1] in ("{", "["):
        return demand_from_json(parse_json(text, str(path)), topology, str(path))
    rows = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    if not rows:
        raise FormatError(f"{path}: the file is empty; expected a demand matrix or JSON")
    if len({len(row) for row in rows}) != 1:
        raise FormatError(f"{path}: rows of different lengths; expected a square matrix")
    try:
        matrix = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise FormatError(f"{path}: {error}; expected a matrix of numbers") from None
    return demand_from_matrix(matrix, topology, str(path))
