"""Measured and predicted times: the JSON of `alltoall run` and of `alltoall simulate`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import Json, short, take_int, take_list, take_object
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import is_file, read_text

HEAD = 1 << 16
"""Bytes to read for the format of an artefact, which runs lack."""

MOST_ROWS = 1_000
"""Most rows of a run."""

CURVES = {
    "throughput": "throughput",
    "bound_throughput": "certified bound",
    "native_throughput": "the library's own",
}
"""Throughputs of rows, in bytes a second, and their names in a chart."""


@dataclass(frozen=True)
class Run:
    """One run or simulation: bytes a second of each curve, by size."""

    of: str
    title: str
    bytes: tuple[int, ...]
    curves: dict[str, tuple[float | None, ...]]
    topology: str

    def content(self) -> dict[str, Any]:
        """Return it as plain values."""
        curves = [{"name": name, "values": list(row)} for name, row in self.curves.items()]
        return {"of": self.of, "title": self.title, "bytes": list(self.bytes), "curves": curves}


def read_run(path: Path) -> Run | None:
    """Return the run or simulation in a file, or None if it holds another thing, or is a pipe."""
    if not is_file(path):
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.lstrip()[:1] != b"{" or b'"format"' in head or b'"rows"' not in head:
        return None
    value = parse_json(read_text(path), str(path))
    artefact = isinstance(value, dict) and ("rows" not in value or "format" in value)
    return None if artefact else run_of(value, str(path))


def run_of(value: object, where: str) -> Run:
    """Return a run from parsed JSON; refuse anything else."""
    whole = take_object(value, where)
    rows = [
        take_object(row, f"{where}: row {index}")
        for index, row in enumerate(take_list(whole, "rows", where, MOST_ROWS))
    ]
    if not rows:
        raise FormatError(f"{where}: no rows; expected the JSON of `alltoall run` or `simulate`")
    sizes = tuple(take_int(row, "bytes", where, 2**62) for row in rows)
    curves = {
        name: tuple(_rate(row, key, f"{where}: row {index}") for index, row in enumerate(rows))
        for key, name in CURVES.items()
    }
    known = {name: row for name, row in curves.items() if any(rate is not None for rate in row)}
    if CURVES["throughput"] not in known:
        raise FormatError(
            f"{where}: no throughput in its rows; expected the JSON of `alltoall run` or `simulate`"
        )
    of, topology = _text(whole, "schedule", "file"), _text(whole, "topology")
    return Run(of, _title(whole), sizes, known, topology)


def _rate(row: Json, key: str, here: str) -> float | None:
    """Return bytes a second; a run outside a testbed nests them under `ours` and `native`."""
    apart = row.get({"throughput": "ours", "native_throughput": "native"}.get(key, ""))
    found = apart.get("throughput") if isinstance(apart, dict) else row.get(key)
    if found is None:
        return None
    known = isinstance(found, int | float) and not isinstance(found, bool)
    if not known or not 0 < found <= sys.float_info.max:
        raise FormatError(f"{here}: {key} is {short(found)}; expected a positive number")
    return float(found)


def _title(whole: Json) -> str:
    if "model" in whole:
        return f"predicted, {_text(whole, 'model')}"
    place = _text(whole, "topology", "on")
    return f"measured on {place}, {_text(whole, 'runtime')}"


def _text(whole: Json, *keys: str) -> str:
    """Return the first value that is a text, among some keys."""
    return next((whole[key] for key in keys if isinstance(whole.get(key), str)), "")
