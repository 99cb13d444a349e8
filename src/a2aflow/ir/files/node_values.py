"""Tables that say something of every terminal: its rank, or its address."""

from collections import Counter
from pathlib import Path

import numpy as np

from a2aflow.errors import FormatError, UsageError
from a2aflow.ir.arrays import Ints
from a2aflow.ir.files.json import parse_json
from a2aflow.ir.files.json.values import short
from a2aflow.ir.files.text import read_text
from a2aflow.ir.topology import Topology

MAX_BYTES = 64 << 20


def read_node_values(path: Path, topology: Topology) -> list[str]:
    """Return the value of every terminal, in their order.

    A file has a line `node value` for each, with blanks or a comma in between and comments after
    `#`, or is a JSON object from nodes to values. Nodes are names or numbers; each terminal is
    there once, and no other node.
    """
    text, where = read_text(path, MAX_BYTES), str(path)
    rows = _json_rows(text, where) if text.lstrip()[:1] == "{" else _text_rows(text, where)
    values: dict[int, str] = {}
    for place, name, value in rows:
        try:
            node = topology.node_of(name)
        except UsageError as error:
            raise FormatError(f"{place}: {error}") from None
        if node in values:
            raise FormatError(f"{place}: node {topology.node_name(node)} is there twice")
        values[node] = value
    _require_terminals(values, topology, where)
    return [values[node] for node in topology.terminals.tolist()]


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


def _text_rows(text: str, where: str) -> list[tuple[str, str, str]]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            words = words[0].rsplit(",", 1)
        if not words:
            continue
        if len(words) != 2:
            raise FormatError(
                f"{where}: line {number}: {short(line)}; expected a node and its value, or, for "
                "names with blanks in them, a JSON object"
            )
        rows.append((f"{where}: line {number}", words[0].removesuffix(","), words[1]))
    return rows


def _json_rows(text: str, where: str) -> list[tuple[str, str, str]]:
    value = parse_json(text, where)
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected a JSON object from nodes to values")
    for name, each in value.items():
        if type(each) not in (str, int):
            raise FormatError(
                f"{where}: {short(name)} has {short(each)}; expected a text or a number"
            )
    return [(where, name, str(each)) for name, each in value.items()]


def _require_terminals(values: dict[int, str], topology: Topology, where: str) -> None:
    terminals = set(topology.terminals.tolist())
    strays, missing = values.keys() - terminals, terminals - values.keys()
    if strays:
        raise FormatError(
            f"{where}: node {topology.node_name(min(strays))} is not a terminal of "
            f"{topology.name}; leave it out"
        )
    if missing:
        raise FormatError(
            f"{where}: nothing for node {topology.node_name(min(missing))} "
            f"({len(missing)} such nodes); expected a line for every terminal"
        )
