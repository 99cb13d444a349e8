"""Groups of terminals: by name, from files, or as rows and columns of a process grid.

Rows and columns are communicators, and only members take part in a call. So no terminal forwards
for another group: links on no path within a group are removed, and the proven bound is for groups
on their own links.
"""

import re
import reprlib
from collections.abc import Iterable, Sequence
from math import prod
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np

from alltoall.errors import DemandError, UsageError
from alltoall.grammar import GROUPS, read_words
from alltoall.ir.arrays import reachable
from alltoall.ir.files.node_tables import group_of, read_groups
from alltoall.ir.problem import without_links
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, listed

GivenGroups: TypeAlias = Iterable[str | Iterable[str | int]] | str | PathLike[str] | None
"""Groups of terminals, each by its names or numbers (`"a,b,c"`), `"rows"` or `"columns"` of a grid,
or a file with a group a line."""

RELAYS = ("members", "any")
"""Relays of rows and columns."""

_SHAPE = re.compile(r"[a-z-]+:([0-9]+)x([0-9]+)")


def with_groups(given: GivenGroups, topology: Topology) -> tuple[Topology, list[list[int]]]:
    """Return groups of terminal positions, and the links that they may use.

    A text such as `a,b,c` is a group, `@FILE` a file of groups, for which all terminals relay.
    """
    words = [given] if isinstance(given, str) and _is_grid(given) else given
    if isinstance(words, str | PathLike):
        return topology, read_groups(Path(words), topology)
    words = list(words or ())
    if any(map(_is_grid, words)):
        if len(words) > 1:
            raise UsageError(
                f"group {words[0]!r} and others; expected rows or columns alone, as every terminal "
                "is in one of them"
            )
        return _on_grid(str(words[0]), topology)
    found: list[list[int]] = []
    for group in words:
        if isinstance(group, str) and group.startswith("@"):
            found += read_groups(Path(group[1:]), topology)
        elif isinstance(group, str) and "," not in group:
            raise UsageError(
                f"group {reprlib.repr(group)} names one terminal; expected several, such as "
                "'a,b,c', rows, columns, or a list of lists"
            )
        else:
            members = group.split(",") if isinstance(group, str) else map(str, group)
            found.append(group_of(members, topology))
    return topology, found


def grid_groups(topology: Topology, name: str, sides: Sequence[int]) -> list[list[int]]:
    """Return the rows or columns of a grid of all terminals in their order, as positions."""
    if len(sides) != 2 or prod(sides) != len(topology.terminals) or min(sides) < 1:
        raise UsageError(
            f"{name} of {topology.name} as a grid of {'x'.join(map(str, sides)) or 'no known'} "
            f"sides; expected two that make {len(topology.terminals)} terminals, such as "
            f"{name}:shape=PxQ"
        )
    grid = np.arange(prod(sides)).reshape(tuple(sides))
    found: list[list[int]] = (grid if name == "rows" else grid.T).tolist()
    if len(found[0]) < 2:
        raise DemandError(f"{name} of one terminal each; expected two or more in each")
    return found


def within_groups(topology: Topology, groups: Sequence[Sequence[int]], words: str) -> Topology:
    """Remove the links that no path takes on which only members of its group are terminals."""
    used = np.zeros(topology.links, dtype=np.bool_)
    shared = np.zeros(topology.nodes, dtype=np.int64)
    for group in groups:
        members = topology.terminals[np.array(group)]
        inside = topology.position < 0
        inside[members] = True
        links = np.flatnonzero(inside[topology.tail] & inside[topology.head])
        tail, head = topology.tail[links], topology.head[links]
        ahead = reachable(topology.nodes, tail, head, members)
        ways = ((tail, head), (head, tail))
        if not all(reachable(topology.nodes, *way, members[0])[members].all() for way in ways):
            named = listed(map(topology.node_name, members.tolist()))
            raise DemandError(
                f"{words} of {topology.name}: no way among {named} but over others, which are not "
                "in the call; take another shape, or let everyone relay (relay=any)"
            )
        between = ahead & reachable(topology.nodes, head, tail, members)
        shared += between
        used[links[between[tail] & between[head]]] = True
    if shared.max() > 1:
        raise DemandError(
            f"{words} of {topology.name}: groups meet at switches, behind which nothing keeps them "
            "apart; let everyone relay (relay=any)"
        )
    gone = np.flatnonzero(~used)
    if not len(gone):
        return topology
    return without_links(topology, gone, f"{counted(len(gone), 'link')} outside of {words} unused")


def _is_grid(word: object) -> bool:
    return isinstance(word, str) and word.partition(":")[0] in GROUPS


def _on_grid(word: str, topology: Topology) -> tuple[Topology, list[list[int]]]:
    name, asked = read_words("group", word, GROUPS, {})
    relay = asked.get("relay", RELAYS[0])
    if relay not in RELAYS:
        raise UsageError(f"relay {relay!r} for {name}; expected {' or '.join(RELAYS)}")
    known = _SHAPE.fullmatch(topology.name.partition(",")[0])
    sides = asked.get("shape", () if known is None else tuple(map(int, known.groups())))
    groups = grid_groups(topology, name, sides)
    if relay == "any":
        note = f"{name} share all links: every rank forwards for them, and has to be in the call"
        return topology.changed(note), groups
    return within_groups(topology, groups, name), groups
