"""Flows as JSON."""

from itertools import chain
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.files.fields import short, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_from_json, demand_to_json
from alltoall.ir.files.json.problem import (
    certificate_of,
    provenance_from_json,
    topology_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.values import (
    artefact,
    check_claims,
    integers,
    numbers,
    positive,
    terminal_positions,
)
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem

FLOW_FORMAT = "alltoall.flow/1"


def flow_to_json(flow: Flow) -> dict[str, Any]:
    """Return the JSON form of a flow, its problem and its certificate."""
    node = flow.problem.topology.terminals.tolist()
    destination = flow.destination.tolist() if flow.destination is not None else None
    start, link, amount = flow.start.tolist(), flow.link.tolist(), flow.amount.tolist()
    flows = [
        {"src": node[source]}
        | ({"dst": node[destination[group]]} if destination is not None else {})
        | {
            "links": link[start[group] : start[group + 1]],
            "amounts": amount[start[group] : start[group + 1]],
        }
        for group, source in enumerate(flow.source.tolist())
    ]
    return {
        "format": FLOW_FORMAT,
        "method": flow.method,
        "status": flow.status.value,
        "time": flow.time,
        "bound": flow.bound,
        "gap": flow.gap,
        "rate": flow.rate,
        "topology": topology_to_json(flow.problem.topology),
        "demand": demand_to_json(flow.problem.demand),
        "lengths": flow.certificate.lengths.tolist(),
        "flows": flows,
    } | ({} if flow.generators is None else {"generators": flow.generators.tolist()})


def flow_from_json(value: object, where: str) -> Flow:
    """Build a flow from its JSON form, unchecked (see `check.flow`)."""
    obj = artefact(value, FLOW_FORMAT, where)
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    demand = demand_from_json(obj.get("demand"), topology, f"{where}: demand")
    rows = take_list(obj, "flows", where)
    for index, row in enumerate(rows):
        take_object(row, f"{where}: flows[{index}]")
    links = [integers(row.get("links"), f"flows[{i}].links", where) for i, row in enumerate(rows)]
    amounts = [
        numbers(row.get("amounts"), f"flows[{i}].amounts", where) for i, row in enumerate(rows)
    ]
    # Refuse groups whose amounts are not one for each link, or of which some are commodities.
    for index, (on, each) in enumerate(zip(links, amounts, strict=True)):
        if len(on) != len(each):
            raise FormatError(
                f"{where}: flows[{index}] has {len(on)} links and {len(each)} amounts; "
                "expected as many"
            )
    commodities = sum("dst" in row for row in rows)
    if commodities not in (0, len(rows)):
        raise FormatError(f"{where}: {commodities} of {len(rows)} flows have a dst; expected all")
    per_commodity = bool(rows) and "dst" in rows[0]
    flow = Flow(
        problem=Problem(topology, demand),
        rate=positive(obj, "rate", where),
        source=terminal_positions(rows, "src", topology, where, "flows"),
        destination=terminal_positions(rows, "dst", topology, where, "flows")
        if per_commodity
        else None,
        start=starts_of([len(row) for row in links]),
        link=np.array(list(chain.from_iterable(links)), dtype=np.int64),
        amount=np.array(list(chain.from_iterable(amounts)), dtype=np.float64),
        certificate=certificate_of(obj, where),
        method=take_text(obj, "method", where),
        status=status_from_json(obj, where),
        generators=_generators(obj, topology.nodes, where),
        provenance=provenance_from_json(obj, where),
    )
    check_claims(obj, where, flow.time, flow.bound)
    return flow


def _generators(obj: dict[str, Any], nodes: int, where: str) -> Ints | None:
    """Return the automorphisms of a flow that stands for its images under them."""
    if "generators" not in obj:
        return None
    rows = take_list(obj, "generators", where)
    maps = [integers(row, f"generators[{i}]", where) for i, row in enumerate(rows)]
    wrong = next((index for index, row in enumerate(maps) if len(row) != nodes), None)
    if wrong is not None:
        raise FormatError(
            f"{where}: generators[{wrong}] has {len(maps[wrong])} entries; expected one for each "
            f"of the {nodes} nodes"
        )
    return np.array(maps, dtype=np.int64).reshape(len(maps), nodes)


def status_from_json(obj: dict[str, Any], where: str) -> Status:
    """Return the status that an artefact claims."""
    try:
        return Status(obj.get("status", ""))
    except ValueError:
        names = ", ".join(Status)
        raise FormatError(
            f"{where}: status is {short(obj.get('status'))}; expected one of {names}"
        ) from None
