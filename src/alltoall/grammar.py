"""Methods and targets with their settings: NAME, or NAME:key=value,key=value.

`pmcf:paths=bounded,slack=2` sets the keys of one method, on the command line and in Python. Help
and documentation follow from these tables, which import no method.
"""

import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alltoall.errors import UsageError
from alltoall.ir.quantities import parse_seconds, parse_size
from alltoall.ir.words import did_you_mean


@dataclass(frozen=True)
class Key:
    """A setting of a method: its field, the reader of its text, and its help."""

    field: str
    read: Callable[[str], Any]
    help: str


@dataclass(frozen=True)
class Method:
    """The purpose of a method or target, and its keys by name."""

    summary: str
    keys: Mapping[str, Key] = field(default_factory=dict)


def read_words(
    kind: str, text: str, known: Mapping[str, Method], shared: Mapping[str, Key]
) -> tuple[str, dict[str, Any]]:
    """Return the name at the start of a text, and its settings by field.

    An unknown name may be a registered one, so it takes every key.
    """
    name, _, rest = text.partition(":")
    every = {key: about for method in known.values() for key, about in method.keys.items()}
    own = known[name].keys if name in known else every
    keys = {**shared, **own}
    found: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        label, equals, value = word.partition("=")
        if label not in keys and name not in known:
            raise UsageError(
                f"{kind} {reprlib.repr(name)} is unknown, and no known one has a setting "
                f"{reprlib.repr(label)}; expected one of {', '.join(known)}"
            )
        if label not in keys:
            names = ", ".join(sorted(keys)) or "no settings"
            raise UsageError(
                f"{kind} {name}: no setting {reprlib.repr(label)}; {did_you_mean(label, keys)}"
                f"expected {names}"
            )
        key = keys[label]
        try:
            found[key.field] = key.read(value if equals else "true")
        except ValueError:
            raise UsageError(
                f"{kind} {name}: {reprlib.repr(word)}; expected {label}= {key.help}"
            ) from None
    return name, found


def read_flag(text: str) -> bool:
    """Read true or false."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def read_sides(text: str) -> tuple[int, ...]:
    """Return the sides of a grid such as 3x3x3."""
    if not re.fullmatch(r"[0-9]{1,7}(x[0-9]{1,7})*", text):
        raise UsageError(f"shape {reprlib.repr(text)}; expected sides such as 3x3x3")
    return tuple(map(int, text.split("x")))


def read_names(text: str) -> tuple[str, ...]:
    """Return names joined by +."""
    return tuple(text.split("+"))


def read_layering(text: str) -> str | None:
    """Return the name of a layer assignment, None for `none`."""
    return None if text == "none" else text


SEARCH = {
    "solver": Key("solver", str, "a solver of linear programs, such as ipm"),
    "symmetry": Key("symmetry", read_flag, "true or false: one source for all symmetric ones"),
    "cluster": Key("cluster", str, "a Dask scheduler that you trust, tcp://host:port"),
}
"""Keys that every method takes."""

CHECKPOINT = {
    "checkpoint": Key("checkpoint", str, "a file to save the state in, and to continue from")
}

GRID = {
    "shape": Key("shape", read_sides, "PxQ, the process grid (of torus:PxQ and the like: its own)"),
    "relay": Key("relay", str, "members or any: who forwards (any: all ranks are in the call)"),
}
GROUPS = {
    "rows": Method("all-to-all within each row of a process grid", GRID),
    "columns": Method("all-to-all within each column of a process grid", GRID),
}
"""Groups by name, the communicators of pencil decompositions."""

SOLVE = {
    "auto": Method("choose by size", CHECKPOINT),
    "decomposed": Method("master program, then a flow per pair by widest paths", CHECKPOINT),
    "decomposed-lp": Method("master program, then the paper's child programs"),
    "link": Method("the link-based program, for reference on small networks"),
    "grouped": Method("master program as a linear program, a flow per source"),
    "first-order": Method("sweeps and primal-dual steps, for large networks", CHECKPOINT),
}
"""Methods of `solve`; all have the same optimum."""

DEMANDS = Key(
    "robust", read_names, "families joined by + (skew, pairs, destinations, hose) or files"
)
TABLES = {
    "destination-based": Key(
        "destination_based", read_flag, "true or false: one next hop per destination"
    )
}

ROUTE_KEYS = SEARCH | {
    "layering": Key("layers", read_layering, "an algorithm for virtual layers, or none")
}
"""Keys that every method of `route` takes."""

ROUTE = {
    "auto": Method("extp; with --from, the method of the last routes"),
    "extp": Method(
        "optimal flow, then widest paths in whole chunks",
        {"raw": Key("raw", read_flag, "true or false: extracted paths as they are, as published")},
    ),
    "pmcf": Method(
        "optimal weights on given paths",
        {
            "paths": Key("paths", str, "disjoint, shortest, bounded, k-shortest or columns"),
            "slack": Key("slack", int, "hops of bounded paths beyond the shortest"),
            "k": Key("k", int, "how many k-shortest paths"),
        },
    ),
    "single": Method("one route per pair, loads as even as can be", TABLES),
    "few": Method(
        "as few routes as lose little",
        {"loss": Key("loss", float, "the share that few routes may lose, such as 0.01")},
    ),
    "deadlock-free": Method(
        "best routes for so many virtual channels",
        TABLES
        | {
            "layers": Key("max_layers", int, "virtual channels, 2 by default"),
            "change": Key("layer_change", read_flag, "true or false: routes may change layer"),
        },
    ),
    "robust": Method("one template for many demands", {"demands": DEMANDS}),
    "sssp": Method("baseline: shortest paths that avoid load, as subnet managers do"),
    "ewsp": Method("baseline: equal split over all shortest paths"),
    "ecmp": Method("baseline: shortest paths, a hash of the destination picks the link"),
    "updown": Method("baseline: climb to a root, then descend (up*/down*)"),
    "dor": Method(
        "baseline: dimension order, on tori and meshes",
        {"shape": Key("shape", read_sides, "the sides of the grid, 4x4x4")},
    ),
    "ilp-disjoint": Method("baseline: integer program over disjoint paths"),
    "ilp-shortest": Method("baseline: integer program over shortest paths"),
    "fptas": Method(
        "baseline: multiplicative weights",
        {
            "epsilon": Key("epsilon", float, "the accuracy, 0.05 by default"),
            "published": Key("published", read_flag, "true or false: the published stop"),
        },
    ),
}
"""Methods of `route`, ours and the baselines."""

CHUNKED = {
    "loss": Key("loss", float, "the share that whole chunks may lose, 0.01 by default"),
    "max-chunks": Key("max_chunks", int, "the most chunks to try per shard"),
}
COSTLY = {
    "message-cost": Key("operation_cost", str, "what a message costs its rank: 1us or shard times")
}
STEPS = {"step-tolerance": Key("step_tolerance", float, "the share that a further step must save")}

SCHEDULE = {
    "auto": Method("choose by size", CHUNKED | COSTLY | STEPS | {"demands": DEMANDS}),
    "tsmcf": Method("the time-stepped program", CHUNKED | COSTLY | STEPS),
    "tsmcf-decomposed": Method("tsmcf as published: master, then child programs", CHUNKED | STEPS),
    "list": Method("routes, then an order of their chunks", CHUNKED | {"demands": DEMANDS}),
    "sccl": Method("baseline: least steps by SMT, small networks only"),
    "taccl": Method("baseline: routing, ordering and contiguity by integer programs"),
}
"""Methods of `schedule`."""


PHASES = {
    "phases": Key("phases", int, "split the routes into K phases; 0: as many as fit the loss"),
    "phase-loss": Key("phase_loss", float, "the share that phases may lose, 0.05 by default"),
}
TABLE_SIZE = {"max-routes": Key("max_routes", int, "routes per destination that the fabric holds")}
LINKS = {
    "latency": Key("link_latency", parse_seconds, "the latency of a link, 1us by default"),
}
CHANNELS = {"channels": Key("channels", int, "run the schedule on K channels at once")}
ADDRESSES = {"addresses": Key("addresses", str, "a file with a line `node address ...` per node")}

TARGETS = {
    "msccl": Method(
        "MSCCL XML, which NCCL reads on GPUs; not yet run there",
        CHANNELS
        | {
            "runtime": Key("runtime", str, "whose limits hold: msccl, executor or rccl"),
            "protocol": Key("protocol", str, "Simple, LL or LL128"),
            "max-bytes": Key("max_bytes", parse_size, "the largest send buffer, 1G by default"),
        },
    ),
    "mscclpp": Method("plan for the executor of MSCCL++ on GPUs; not yet run there", CHANNELS),
    "oneccl": Method("oneCCL-style XML; runs in `alltoall run` only", CHANNELS),
    "messages": Method("messages of ranks; `wrap`, MPI and torch run them"),
    "goal": Method("GOAL text for LogGOPSim and ATLAHS; not yet run there"),
    "chakra": Method("Chakra traces for ASTRA-sim, a folder; not yet run there"),
    "routes": Method("egress ports and layers, for tools of your own", TABLE_SIZE),
    "ompi": Method(
        "path-steered XML, as the paper has it; nothing runs it yet",
        TABLE_SIZE
        | PHASES
        | ADDRESSES
        | {
            "hash": Key("hash", str, "the fabric's hash, crc32 by default"),
            "queue-pairs": Key("queue_pairs", str, "what a queue pair carries: chunk or route"),
        },
    ),
    "opensm": Method("tables that `opensm -R file` loads; run on ibsim"),
    "srv6": Method(
        "lines for `ip -6 -batch` of Linux; run in namespaces",
        ADDRESSES
        | TABLE_SIZE
        | {"steering": Key("steering", str, "encap (segments) or plain (a route per hop)")},
    ),
    "linux": Method(
        "scripts for Linux hosts that forward, a folder; run in namespaces",
        ADDRESSES
        | TABLE_SIZE
        | {"steering": Key("steering", str, "plain (ip route, ip rule) or encap (SRv6)")},
    ),
    "simgrid": Method("platform for SimGrid, with a route per pair; run there", LINKS),
}
"""Targets of `lower`."""
