"""Routes as JSON."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.files.fields import short, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_to_json
from alltoall.ir.files.json.problem import (
    certificate_of_answer,
    problem_of_answer,
    provenance_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.values import (
    MAX_INTEGER,
    are_integers,
    artefact,
    check_claims,
    drop_unclaimed,
    integers,
    is_integer,
    is_number,
    many_objects,
    terminal_positions,
)
from alltoall.ir.routes import Routes

ROUTES_FORMAT = "alltoall.routes/1"
FRACTION = re.compile(r"[0-9]{1,15}/[1-9][0-9]{0,14}")


def routes_to_json(routes: Routes) -> dict[str, Any]:
    """Return the JSON form of routes; rational weights are "p/q"."""
    with many_objects():
        node, link, start = routes.problem.topology.terminals, routes.link.tolist(), routes.start
        columns = (
            node[routes.source].tolist(),
            node[routes.destination].tolist(),
            map(link.__getitem__, map(slice, start[:-1].tolist(), start[1:].tolist())),
            weights_as_text(routes),
        )
        rows = [
            {"src": src, "dst": dst, "links": links, "weight": weight}
            for src, dst, links, weight in zip(*columns, strict=True)
        ]
        for row, layer in zip(rows, layers_as_fields(routes), strict=False):
            row.update(layer)
    value = {
        "format": ROUTES_FORMAT,
        "method": routes.method,
        "time": routes.time,
        "bound": routes.bound,
        "gap": routes.gap,
        "topology": topology_to_json(routes.problem.topology),
        "demand": demand_to_json(routes.problem.demand),
        "lengths": routes.certificate.lengths.tolist(),
        "routes": rows,
    }
    return drop_unclaimed(value)


def layers_as_fields(routes: Routes) -> Iterator[dict[str, Any]]:
    """Yield the field of each route: "layer", or "layers" if it changes layer.

    Routes without layers have no fields.
    """
    if routes.layer is not None:
        yield from ({"layer": layer} for layer in routes.layer.tolist())
    if routes.hop_layer is not None:
        layers, changes = routes.hop_layer.tolist(), routes.changes_layer.tolist()
        for (begin, end), several in zip(pairwise(routes.start.tolist()), changes, strict=True):
            yield {"layers": layers[begin:end]} if several else {"layer": layers[begin]}


def layers_from_fields(
    rows: list[dict[str, Any]], links: str, where: str
) -> tuple[Ints | None, Ints | None]:
    """Return the layer of each route, or of each hop if any route changes; None without layers.

    `links` is the field with a value per hop.
    """
    several = [index for index, row in enumerate(rows) if "layers" in row]
    layered = [row["layer"] for row in rows if "layer" in row]
    for index in several:
        found, wanted = len(rows[index]["layers"]), len(rows[index][links])
        both = " and a layer" if "layer" in rows[index] else ""
        if both or found != wanted:
            raise FormatError(
                f"{where}: routes[{index}] has {found} layers{both}; expected one layer, or one "
                f"per hop, of which it has {wanted}"
            )
    known = len(layered) + len(several)
    if known not in (0, len(rows)):
        raise FormatError(f"{where}: {known} of {len(rows)} routes have a layer; expected all")
    if not several:
        return (np.array(layered, dtype=np.int64) if layered else None), None
    hops = (row.get("layers") or [row["layer"]] * len(row[links]) for row in rows)
    return None, np.array(list(chain.from_iterable(hops)), dtype=np.int64)


def weights_as_text(routes: Routes) -> list[Any]:
    """Return the weights, rational ones as "p/q"."""
    if routes.denominator is None:
        weights: list[Any] = routes.weight.tolist()
        return weights
    units = np.rint(routes.weight * routes.denominator).astype(np.int64)
    return [f"{unit}/{routes.denominator}" for unit in units.tolist()]


def routes_from_json(value: object, where: str) -> Routes:
    """Build routes from their JSON form, unchecked (see `check.routes`).

    Other tools may omit the demand (uniform), the bound with its lengths (hops), and the layers of
    all routes.
    """
    obj = artefact(value, ROUTES_FORMAT, where)
    problem = problem_of_answer(obj, where)
    rows = take_list(obj, "routes", where)
    if not _are_sound(rows):
        for index, row in enumerate(rows):
            _check_route(row, f"{where}: routes[{index}]")
    layer, hop_layer = layers_from_fields(rows, "links", where)
    weights, denominator = _weights_from_json([row["weight"] for row in rows], where)
    routes = Routes(
        problem=problem,
        source=terminal_positions(rows, "src", problem.topology, where, "routes"),
        destination=terminal_positions(rows, "dst", problem.topology, where, "routes"),
        start=starts_of([len(row["links"]) for row in rows]),
        link=np.array(list(chain.from_iterable(row["links"] for row in rows)), dtype=np.int64),
        weight=weights,
        certificate=certificate_of_answer(obj, problem.topology, where),
        method=take_text(obj, "method", where) if "method" in obj else "unknown",
        layer=layer,
        hop_layer=hop_layer,
        denominator=denominator,
        provenance=provenance_from_json(obj, where),
    )
    check_claims(obj, where, routes.time, routes.bound)
    return routes


def _are_sound(rows: list[Any]) -> bool:
    """Whether all rows pass `_check_route`, at the speed that a million of them need.

    It looks at all links, weights and layers at once; `_check_route` then finds the wrong one.
    """
    if set(map(type, rows)) != {dict}:
        return False
    links = [row.get("links") for row in rows]
    weights = [row.get("weight") for row in rows]
    kinds = set(map(type, weights))
    return (
        _are_lists_of_integers(links)
        and are_integers([row["layer"] for row in rows if "layer" in row])
        and _are_lists_of_integers([row["layers"] for row in rows if "layers" in row])
        and (kinds == {float} or (kinds == {str} and all(map(FRACTION.fullmatch, set(weights)))))
    )


def _are_lists_of_integers(values: list[Any]) -> bool:
    return set(map(type, values)) <= {list} and are_integers(list(chain.from_iterable(values)))


def _check_route(value: object, where: str) -> None:
    row = take_object(value, where)
    integers(row.get("links"), "links", where)
    weight = row.get("weight")
    if not is_number(weight) and not (isinstance(weight, str) and FRACTION.fullmatch(weight)):
        raise FormatError(f'{where}: weight is {short(weight)}; expected a number or "p/q"')
    if "layer" in row and not is_integer(row["layer"]):
        raise FormatError(f"{where}: layer is {short(row['layer'])}; expected an integer")
    if "layers" in row:
        integers(row["layers"], "layers", where)


def _weights_from_json(weights: list[Any], where: str) -> tuple[Floats, int | None]:
    """Return the weights, and the common denominator if all of them are fractions."""
    if set(map(type, weights)) != {str}:
        mixed = [float(Fraction(each) if isinstance(each, str) else each) for each in weights]
        return np.array(mixed, dtype=np.float64), None
    parts = {weight: tuple(map(int, weight.split("/"))) for weight in set(weights)}
    common = math.lcm(*{below for _, below in parts.values()})
    if common > MAX_INTEGER:
        raise FormatError(f"{where}: the weights have no common denominator below {MAX_INTEGER:,}")
    units = {weight: above * (common // below) for weight, (above, below) in parts.items()}
    return np.array([units[weight] for weight in weights], dtype=np.float64) / common, common
