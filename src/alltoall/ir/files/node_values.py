"""Tables that say something of every terminal: its rank, or its address."""

from collections import Counter
from pathlib import Path

import numpy as np

from alltoall.errors import FormatError, UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.fields import short
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import read_text
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted

MAX_BYTES = 64 << 20

Row = tuple[str, str, list[str]]
"""Where it is, the node, and its values."""


def read_node_values(path: Path, topology: Topology) -> list[str]:
    """Return the one value of every terminal, in their order; see `read_node_rows`."""
    rows = read_node_rows(path, topology, topology.terminals)
    long = next((row for row in rows if len(row) > 1), None)
    if long is not None:
        raise FormatError(f"{path}: {short(' '.join(long))}; expected one value for each node")
    return [row[0] for row in rows]


def read_node_rows(path: Path, topology: Topology, nodes: Ints) -> list[list[str]]:
    """Return the values of some nodes, in their order.

    A file has a line `node value ...` for each, with blanks in between, or one comma, and comments
    after `#`, or is a JSON object from nodes to values or arrays of them. Nodes are names or
    numbers; each of these is there once, and no other.
    """
    text, where = read_text(path, MAX_BYTES), str(path)
    rows = _json_rows(text, where) if text.lstrip()[:1] == "{" else _text_rows(text, where)
    values: dict[int, list[str]] = {}
    for place, name, value in rows:
        try:
            node = topology.node_of(name)
        except UsageError as error:
            raise FormatError(f"{place}: {error}") from None
        if node in values:
            raise FormatError(f"{place}: node {topology.node_name(node)} is there twice")
        values[node] = value
    _require_all(values, set(nodes.tolist()), topology, where)
    return [values[node] for node in nodes.tolist()]


def read_ranks(path: Path, topology: Topology) -> Ints:
    """Return the rank of every terminal: all of 0 to N - 1, each once."""
    values = read_node_values(path, topology)
    expected = {str(rank) for rank in range(len(values))}
    strange = next((value for value in values if value not in expected), None)
    twice = next((value for value, times in Counter(values).items() if times > 1), None)
    if strange is not None or twice is not None:
        found = f"rank {short(strange)}" if strange is not None else f"rank {twice} twice"
        raise FormatError(f"{path}: {found}; expected each of 0..{len(values) - 1} once")
    return np.array(values, dtype=np.int64)


def _text_rows(text: str, where: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            words = words[0].rsplit(",", 1)
        if not words:
            continue
        if len(words) < 2:
            raise FormatError(
                f"{where}: line {number}: {short(line)}; expected a node and its value, or, for "
                "names with blanks in them, a JSON object"
            )
        rows.append((f"{where}: line {number}", words[0].removesuffix(","), words[1:]))
    return rows


def _json_rows(text: str, where: str) -> list[Row]:
    value = parse_json(text, where)
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected a JSON object from nodes to values")
    rows = {name: each if isinstance(each, list) else [each] for name, each in value.items()}
    for name, row in rows.items():
        if not row or not all(type(each) in (str, int) for each in row):
            raise FormatError(
                f"{where}: {short(name)} has {short(row)}; expected a text or a number, or some"
            )
    return [(where, name, list(map(str, row))) for name, row in rows.items()]


def _require_all(
    values: dict[int, list[str]], nodes: set[int], topology: Topology, where: str
) -> None:
    strays, missing = values.keys() - nodes, nodes - values.keys()
    if strays:
        raise FormatError(
            f"{where}: node {topology.node_name(min(strays))} is not a terminal of "
            f"{topology.name}; leave it out"
        )
    if missing:
        raise FormatError(
            f"{where}: nothing for node {topology.node_name(min(missing))} "
            f"({counted(len(missing), 'such node')}); expected a line for every one"
        )
