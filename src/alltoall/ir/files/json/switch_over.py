"""Routes after a failure as JSON: only what is different from the healthy ones.

Everything in the file goes by the numbers of the healthy topology, of nodes, links and routes, also
where a node is gone. The healthy routes are in a file beside it, and known by a digest of what they
say, whatever form their file has.
"""

import hashlib
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.fields import short, take_ints, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_to_json
from alltoall.ir.files.json.routes import ROUTES_FORMAT, routes_from_json, routes_to_json
from alltoall.ir.files.json.topology import topology_to_json
from alltoall.ir.files.json.values import artefact, numbers, without_unclaimed
from alltoall.ir.routes import Routes
from alltoall.ir.without import demand_without, numbers_left, without_links, without_nodes

SWITCH_OVER_FORMAT = "alltoall.switch-over/1"
HEALTHY_FILE = "healthy.npz"
"""What the file of the healthy routes is called, beside the differences to them."""

Row = dict[str, Any]


def digest_of(routes: Routes) -> str:
    """Return what tells routes from all others: SHA-256 of their arrays, one after the other.

    Whole numbers have 64 bits, others are doubles, the lowest byte comes first.
    """
    topology, demand = routes.problem.topology, routes.problem.demand.matrix
    sizes = np.array([topology.nodes, topology.links, len(topology.terminals), routes.count])
    ends = (topology.tail, topology.head, topology.capacity, topology.terminals)
    paths = (routes.source, routes.destination, routes.start, routes.link, routes.weight)
    digest = hashlib.sha256()
    for part in (sizes, *ends, demand, *paths, routes.layer, routes.hop_layer):
        if part is not None:
            kind = "<f8" if part.dtype.kind == "f" else "<i8"
            digest.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    return digest.hexdigest()


def switch_over_to_json(healthy: Routes, now: Routes, links: Ints, nodes: Ints) -> dict[str, Any]:
    """Return what differs between healthy routes and those without some links and nodes."""
    numbers_of = _Numbers(healthy, links, nodes)
    place = {_key(row): index for index, row in enumerate(routes_to_json(healthy)["routes"])}
    whole = routes_to_json(now)
    stays, layers, added = set(), [], []
    for row in map(numbers_of.healthy, whole["routes"]):
        index = place.pop(_key(row), None)
        if index is None:
            added.append(row)
            continue
        stays.add(index)
        if healthy.layer is not None and row["layer"] != healthy.layer[index]:
            layers.append([index, row["layer"]])
    lengths = np.zeros(healthy.problem.topology.links)
    lengths[numbers_of.link] = now.certificate.lengths
    return {
        "format": SWITCH_OVER_FORMAT,
        "healthy": {"file": HEALTHY_FILE, "digest": digest_of(healthy)},
        "failed": {"links": links.tolist(), "nodes": nodes.tolist()},
        **{key: whole[key] for key in ("method", "time", "bound", "gap") if key in whole},
        "lengths": lengths.tolist(),
        "removed": [index for index in range(healthy.count) if index not in stays],
        "layers": layers,
        "added": added,
    }


def healthy_file(value: object, where: str) -> str:
    """Return the name of the file that a difference is to, beside its own."""
    name = take_text(take_object(_fields(value, where).get("healthy"), where), "file", where)
    if not name or name.startswith(".") or set(name) & set("/\\:\0"):
        raise FormatError(f"{where}: healthy.file is {short(name)}; expected the name of a file")
    return name


def routes_from_switch_over(value: object, healthy: Routes, where: str) -> Routes:
    """Apply a difference to the healthy routes; `check.routes` says whether the whole is true."""
    obj = _fields(value, where)
    told = take_text(take_object(obj.get("healthy"), where), "digest", where)
    if told != digest_of(healthy):
        raise FormatError(
            f"{where}: is a difference to routes with digest {short(told)}, and those beside it "
            f"have {digest_of(healthy)}; expected the healthy routes that it was made with"
        )
    failed, topology = take_object(obj.get("failed"), where), healthy.problem.topology
    links, nodes = (
        np.array(_below(failed, key, most, where), dtype=np.int64)
        for key, most in (("links", topology.links), ("nodes", topology.nodes))
    )
    numbers_of = _Numbers(healthy, links, nodes)
    rows = _applied(obj, healthy, where)
    lengths = numbers(obj.get("lengths"), "lengths", where)
    if len(lengths) != topology.links:
        raise FormatError(f"{where}: {len(lengths)} lengths; expected {topology.links}")
    left = without_nodes(without_links(topology, links, "links failed"), nodes, "nodes failed")
    whole: dict[str, Any] = {
        **{key: obj[key] for key in ("method", "time", "bound", "gap") if key in obj},
        "format": ROUTES_FORMAT,
        "topology": topology_to_json(left),
        "demand": demand_to_json(demand_without(healthy.problem, nodes)),
        "lengths": np.array(lengths)[numbers_of.link].tolist(),
        "routes": sorted(
            (numbers_of.left(row, where) for row in rows), key=lambda row: (row["src"], row["dst"])
        ),
    }
    return routes_from_json(without_unclaimed(whole), where)


class _Numbers:
    """Numbers of nodes and links before and after a failure."""

    def __init__(self, healthy: Routes, links: Ints, nodes: Ints) -> None:
        node, self.link = numbers_left(healthy.problem.topology, links, nodes)
        self._node, self._link = node.tolist(), self.link.tolist()
        self._new_node = {node: index for index, node in enumerate(self._node)}
        self._new_link = {link: index for index, link in enumerate(self._link)}

    def healthy(self, row: Row) -> Row:
        """Return a route of what is left by the numbers before the failure."""
        ends = {key: self._node[row[key]] for key in ("src", "dst")}
        return {**row, **ends, "links": [self._link[link] for link in row["links"]]}

    def left(self, row: Row, where: str) -> Row:
        """Return a route by the numbers after the failure; refuse one that is cut."""
        try:
            ends = {key: self._new_node[row[key]] for key in ("src", "dst")}
            return {**row, **ends, "links": [self._new_link[link] for link in row["links"]]}
        except (KeyError, TypeError):
            raise FormatError(
                f"{where}: the route {short(row)} has a node or link that failed or is none; "
                "expected it to be among those removed, or others to be added"
            ) from None


def _fields(value: object, where: str) -> dict[str, Any]:
    return artefact(value, SWITCH_OVER_FORMAT, where)


def _below(obj: Row, key: str, most: int, where: str) -> list[int]:
    """Return numbers below a limit, each once."""
    found = take_ints(obj, key, where, most)
    if len(set(found)) < len(found) or any(each >= most for each in found):
        raise FormatError(f"{where}: {key} is {short(found)}; expected numbers 0..{most - 1}, once")
    return found


def _applied(obj: Row, healthy: Routes, where: str) -> list[Row]:
    """Return the routes that stay, in their layers of now, and those that are added."""
    rows: list[Row] = routes_to_json(healthy)["routes"]
    for entry in take_list(obj, "layers", where, healthy.count):
        sound = isinstance(entry, list) and len(entry) == 2 and healthy.layer is not None
        if not sound or not all(type(each) is int and each >= 0 for each in entry):
            raise FormatError(f"{where}: layers has {short(entry)}; expected [route, layer]")
        if entry[0] >= healthy.count:
            raise FormatError(f"{where}: layers of route {entry[0]}; there are {healthy.count}")
        rows[entry[0]]["layer"] = entry[1]
    removed = set(_below(obj, "removed", healthy.count, where))
    added = take_list(obj, "added", where)
    for row in added:
        take_list(take_object(row, f"{where}: added"), "links", f"{where}: added")
    return [row for index, row in enumerate(rows) if index not in removed] + added


def _key(row: Row) -> tuple[Any, ...]:
    """Return what tells a route from others, but for its one layer."""
    several = tuple(row.get("layers", ()))
    ends = row["src"], row["dst"], row["weight"], "layer" in row, several
    return *ends, *row["links"]
