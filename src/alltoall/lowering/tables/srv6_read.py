"""Read the Linux commands of routes back into paths, as strictly as they are written."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alltoall.errors import FormatError, VerificationError
from alltoall.ir.arrays import starts_of
from alltoall.ir.files.json.saved_answers import WEIGHT, layers_from_rows, weights_from_text
from alltoall.ir.files.json.values import Rows
from alltoall.lowering.options import STEERING
from alltoall.lowering.tables.routed_file import RoutedFile, require_order
from alltoall.lowering.tables.srv6_emit import VERSION
from alltoall.lowering.tables.srv6_places import plain_lines

HEAD = re.compile(
    rf"# alltoall srv6/{VERSION} steering=({'|'.join(STEERING)}) device=([a-z]{{1,9}}) "
    r"nodes=([1-9][0-9]{0,4}) routes=([1-9][0-9]{0,8})"
)
_HEX = r"(0|[1-9a-f][0-9a-f]{0,3})"
_ROUTE = rf"fc02:{_HEX}:{_HEX}::([1-9a-f][0-9a-f]{{0,3}})"
_LINK = rf"fc01:{_HEX}:{_HEX}::([1-9a-f][0-9a-f]{{0,3}})"
_ANY_LINK = r"fc01:[0-9a-f]{1,4}:[0-9a-f]{1,4}::[0-9a-f]{1,4}"
_DEVICE = r"([a-z]{1,9})(0|[1-9][0-9]{0,4})"
_LAYERS = r"[0-9]{1,9}(?:,[0-9]{1,9}){0,9999}"
LINK = re.compile(_LINK)

Key = tuple[str, str, str]
"""Destination, source and number of a route, as in its address."""
Hop = tuple[str, str, str]
"""Head, tail and port of a link, as in its address."""


@dataclass
class _Lines:
    """The commands read so far, by route; `node` is that of the current section."""

    device: str
    node: int = 0
    claims: dict[Key, tuple[str, str]] = field(default_factory=dict)
    paths: dict[Key, list[Hop]] = field(default_factory=dict)
    hops: dict[Key, dict[int, Hop]] = field(default_factory=dict)
    received: Counter[tuple[Key, int]] = field(default_factory=Counter)
    segments: set[tuple[int, Hop]] = field(default_factory=set)


def read_srv6(text: str, where: str) -> RoutedFile:
    """Read the commands of all nodes; `rebuild` resolves their routes."""
    lines = text.splitlines()
    head = HEAD.fullmatch(lines[0]) if lines else None
    if head is None or not lines[1:2] or not lines[1].startswith("# name "):
        expected = "expected '# alltoall srv6/1'"
        raise FormatError(f"{where}: line 1 is no header of an srv6 file; {expected}")
    if lines[-1] != "# end" or not text.endswith("\n"):
        raise FormatError(f"{where}: does not end with '# end'; the file may be truncated")
    read = _Lines(head[2])
    nodes = int(head[3])
    for number, line in plain_lines(lines[2:-1], head[2], nodes, where):
        here = f"{where}: line {number}"
        for pattern, take in _LINES:
            if match := pattern.fullmatch(line):
                take(match, here, read)
                break
        else:
            problem = f"{line[:80]!r} is no line of an srv6 file; see its description"
            raise FormatError(f"{here}: {problem}")
        if read.node >= nodes:
            raise FormatError(f"{here}: node {read.node}; the header says {nodes} nodes")
    if len(read.claims) != int(head[4]):
        raise FormatError(f"{where}: {len(read.claims)} routes; its header says {head[4]}")
    paths = read.paths if head[1] == "encap" else _walk(read, where)
    _check_all(read, paths, head[1], where)
    return _file(read, paths, head[1], where)


def _take_node(found: re.Match[str], here: str, read: _Lines) -> None:
    read.node = int(found[1])


def _take_claim(found: re.Match[str], here: str, read: _Lines) -> None:
    key = (found[1], found[2], found[3])
    if key in read.claims or int(found[2], 16) != read.node:
        problem = "a route twice, or in the section of a node that is not its source"
        raise FormatError(f"{here}: {problem}")
    read.claims[key] = (found[4], found[5])


def _take_address(found: re.Match[str], here: str, read: _Lines) -> None:
    read.received[(found[1], found[2], found[3]), read.node] += 1


def _take_segment(found: re.Match[str], here: str, read: _Lines) -> None:
    hop = (found[1], found[2], found[3])
    _require_device(found[4], int(found[5]), hop, here, read)
    read.segments.add((read.node, hop))


def _take_encap(found: re.Match[str], here: str, read: _Lines) -> None:
    key = (found[1], found[2], found[3])
    path: list[Hop] = LINK.findall(found[4])
    if key in read.paths or len(path) != found[4].count(",") + 1:
        raise FormatError(f"{here}: a route twice, or a segment that is no address of a link")
    _require_device(found[5], int(found[6]), path[0], here, read)
    read.paths[key] = path


def _take_hop(found: re.Match[str], here: str, read: _Lines) -> None:
    hop = (found[4], found[5], found[6])
    _require_device(found[7], int(found[8]), hop, here, read)
    at = read.hops.setdefault((found[1], found[2], found[3]), {})
    if read.node in at:
        raise FormatError(f"{here}: a second hop of one route at node {read.node}")
    at[read.node] = hop


def _require_device(device: str, port: int, hop: Hop, here: str, read: _Lines) -> None:
    """Compare the device with the link's address."""
    if device != read.device or int(hop[1], 16) != read.node or int(hop[2], 16) != port + 1:
        address = f"fc01:{hop[0]}:{hop[1]}::{hop[2]}"
        violation = f"device {device}{port} of node {read.node} does not lead to {address}"
        raise VerificationError(here, [violation])


_LINES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, _Lines], None]], ...] = (
    (re.compile(rf"route add {_ROUTE}/128 via {_LINK} dev {_DEVICE} onlink"), _take_hop),
    (
        re.compile(
            rf"route add {_ROUTE}/128 encap seg6 mode encap segs "
            rf"({_ANY_LINK}(?:,{_ANY_LINK})*) dev {_DEVICE}"
        ),
        _take_encap,
    ),
    (
        re.compile(rf"# route {_ROUTE} weight ([0-9./e+-]{{1,40}}) layer (-|{_LAYERS})"),
        _take_claim,
    ),
    (re.compile(rf"address add {_ROUTE}/128 dev lo nodad"), _take_address),
    (re.compile(rf"route add {_LINK}/128 dev {_DEVICE}"), _take_segment),
    (re.compile(r"# node (0|[1-9][0-9]{0,4})( \S(.{0,198}\S)?)?"), _take_node),
)
"""Every line of a file is one of these; the most frequent first."""


def _walk(read: _Lines, where: str) -> dict[Key, list[Hop]]:
    """Follow the routes from hop to hop; each must use all its hops."""
    paths: dict[Key, list[Hop]] = {}
    for key, at in read.hops.items():
        node, path = int(key[1], 16), list[Hop]()
        while node in at and len(path) < len(at):
            path.append(at[node])
            node = int(at[node][0], 16)
        if len(path) != len(at):
            violation = f"{_name(key)} breaks off at node {node}, or has hops that it never takes"
            raise VerificationError(where, [violation])
        paths[key] = path
    return paths


def _check_all(read: _Lines, paths: dict[Key, list[Hop]], steering: str, where: str) -> None:
    """Check that each route is claimed, steered and received, and that segments are reachable."""
    violations = [
        f"{_name(key)} lacks its commands, or its line with weight and layer"
        for key in sorted(read.claims.keys() ^ paths.keys())[:1]
    ]
    wanted = Counter({(key, int(key[0], 16)): 1 for key in read.claims})
    if read.received != wanted:
        differ = (read.received - wanted) + (wanted - read.received)
        key, node = min(differ)
        violations.append(f"{_name(key)} has its address at the wrong node, twice or not at all")
    if steering == "encap":
        used = {(int(hop[1], 16), hop) for path in paths.values() for hop in path}
        for node, hop in sorted(used - read.segments)[:1]:
            violations.append(f"node {node} has no route to fc01:{hop[0]}:{hop[1]}::{hop[2]}")
    if read.paths and read.hops:
        violations.append("some routes are steered by segments and some hop by hop")
    if violations:
        raise VerificationError(where, violations)


def _name(key: Key) -> str:
    return f"the route to fc02:{key[0]}:{key[1]}::{key[2]}"


def _file(read: _Lines, paths: dict[Key, list[Hop]], steering: str, where: str) -> RoutedFile:
    keys = np.array([[int(part, 16) for part in key] for key in read.claims], dtype=np.int64)
    hops = np.array([len(paths[key]) for key in read.claims], dtype=np.int64)
    parts = [int(part, 16) for key in read.claims for hop in paths[key] for part in hop]
    links = np.array(parts, dtype=np.int64).reshape(-1, 3)
    rows = Rows([_fields(*read.claims[key]) for key in read.claims], f"{where}: routes")
    weight, _ = weights_from_text(rows.column("weight", WEIGHT), where)
    layer, hop_layer = layers_from_rows(rows, [paths[key] for key in read.claims])
    file = RoutedFile(
        kind="srv6",
        name=where,
        source=keys[:, 1],
        destination=keys[:, 0],
        start=starts_of(hops),
        node=links[:, 1],
        port=links[:, 2] - 1,
        weight=weight,
        layer=layer,
        hop_layer=hop_layer,
        facts={"steering": steering},
    )
    require_order(file, keys[:, 2] - 1, where)
    # Check that each link's address names the node at which the next hop begins.
    head = links[:, 0]
    follows = np.append(file.node[1:], 0)
    follows[file.start[1:] - 1] = file.destination
    for at in np.flatnonzero(head != follows)[:1]:
        name = file.route(int(np.searchsorted(file.start, at, side="right")) - 1)
        violation = f"{name} goes to node {head[at]} and on from node {follows[at]}"
        raise VerificationError(where, [violation])
    return file


def _fields(weight: str, layer: str) -> dict[str, Any]:
    """Return the weight and the layers of a route, as the fields of a route in JSON."""
    given = [] if layer == "-" else [int(each) for each in layer.split(",")]
    layers = {"layer": given[0]} if len(given) == 1 else {"layers": given} if given else {}
    try:
        return {"weight": weight if "/" in weight else float(weight), **layers}
    except ValueError:
        return {"weight": weight, **layers}
