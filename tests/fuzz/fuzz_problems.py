"""Fuzzer of the pipeline: random small problems, by every method, against an outside optimum."""

import json
from itertools import pairwise
from random import Random
from typing import Any

from fuzz_case import Case, FuzzFailureError, Outcome, directory_of, run_case, shown
from fuzz_files import require_between
from fuzz_outside import best_time

from alltoall.flows import METHODS
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering import targets_for
from alltoall.routes import ROUTERS, USED_BY

Link = tuple[int, int, float]
EVEN = (1.0, 1.0, 1.0, 2.0)
MIXED = (0.25, 0.5, 1.0, 1.0, 3.0, 10.0)
WILD = (1.0, 1e-3, 1e3, 1e6)
VERBS = ("solve", "route", "schedule")
AMOUNTS = (0.0, 0.0, 0.125, 1.0, 1.0, 2.0, 5.0, 100.0)
GAP = 1e-6
"""The gap that is asked for by default, which every small problem has to reach."""

LEFT_OUT = ("ilp-disjoint", "ilp-shortest", "fptas", "dor", "updown")
"""Baselines that take seconds on what others do at once, that need a grid, or that need cables."""

CHOICE = sorted(set(ROUTERS) - set(LEFT_OUT))


def make_problem(rng: Random) -> Case:
    """Make a random problem with capacities of one order of magnitude, and its pipeline."""
    return _case(rng, rng.choice((EVEN, MIXED)))


def make_wild(rng: Random) -> Case:
    """Make a problem whose capacities are up to nine orders of magnitude apart."""
    return _case(rng, WILD, ("solve",))


def _case(
    rng: Random,
    capacities: tuple[float, ...],
    verbs: tuple[str, ...] = ("solve", "route", "schedule"),
) -> Case:
    nodes, links, talking = rng.choice((_digraph, _digraph, _hosts, _ring))(rng, capacities)
    strays = _strays(rng, nodes, capacities) if rng.random() < 0.3 else []
    silent = [stray for stray, _ in strays if rng.random() < 0.5]
    nodes, links = nodes + len(strays), [*links, *(link for _, link in strays)]
    uneven = bool(silent) or rng.random() < 0.4
    terminals = [*talking, *silent]
    pairs = [(a, b) for a in talking for b in talking if a != b]
    amounts = {(a, b): 0.0 for a in terminals for b in terminals if a != b}
    amounts |= {pair: rng.choice(AMOUNTS) if uneven else 1.0 for pair in pairs}
    amounts[pairs[0]] = 1.0
    topology = {"format": "alltoall.topology/1", "name": "fuzz", "nodes": nodes, "links": links}
    files = {"t.json": _json(topology | {"terminals": terminals})}
    demand = []
    if uneven:
        entries = [[*pair, amount] for pair, amount in amounts.items()]
        files["d.json"] = _json({"format": "alltoall.demand/1", "entries": entries})
        demand = ["--demand", "d.json"]
    commands = _commands(rng, demand, rng.choice(verbs))
    optimum = best_time(nodes, links, {pair: x for pair, x in amounts.items() if x > 0})
    if optimum is None:
        return _case(rng, capacities, verbs)
    return Case(commands, files, 0, {"optimum": optimum})


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _digraph(rng: Random, capacities: tuple[float, ...]) -> tuple[int, list[Link], list[int]]:
    """Return a cycle through all nodes with random links on top; some nodes may be switches."""
    nodes = rng.randrange(2, 8)
    order = rng.sample(range(nodes), nodes)
    ends = [*pairwise(order), (order[-1], order[0])]
    ends += [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.randrange(2 * nodes))]
    links = [(u, v, rng.choice(capacities)) for u, v in ends if u != v]
    count = nodes if rng.random() < 0.6 else rng.randrange(2, nodes + 1)
    return nodes, links, sorted(rng.sample(range(nodes), count))


def _strays(rng: Random, nodes: int, capacities: tuple[float, ...]) -> list[tuple[int, Link]]:
    """Return nodes with one link each, in or out: switches, or terminals that have no demand."""
    found = []
    for stray in range(nodes, nodes + rng.randrange(1, 3)):
        ends = rng.choice(((stray, rng.randrange(nodes)), (rng.randrange(nodes), stray)))
        found.append((stray, (*ends, rng.choice(capacities))))
    return found


def _hosts(rng: Random, capacities: tuple[float, ...]) -> tuple[int, list[Link], list[int]]:
    """Return hosts of some GPUs behind a switch each, fast inside, in a ring or all to all."""
    hosts, gpus = rng.choice(((2, 2), (3, 1), (3, 2), (2, 3)))
    count = hosts * gpus
    inside = 10 * max(capacities)
    links = [
        (*ends, inside)
        for gpu in range(count)
        for ends in ((gpu, count + gpu // gpus), (count + gpu // gpus, gpu))
    ]
    between = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
    if rng.random() < 0.5:
        between = [(a, b) for a, b in between if (b - a) % hosts == 1]
    links += [(count + a, count + b, rng.choice(capacities)) for a, b in between]
    return count + hosts, links, list(range(count))


def _ring(rng: Random, capacities: tuple[float, ...]) -> tuple[int, list[Link], list[int]]:
    """Return a symmetric fabric: a circulant digraph with one capacity for each jump."""
    nodes = rng.randrange(3, 8)
    jumps = {1, *(rng.randrange(1, nodes) for _ in range(rng.randrange(3)))}
    width = {jump: rng.choice(capacities) for jump in sorted(jumps)}
    links = [(v, (v + jump) % nodes, width[jump]) for jump in sorted(jumps) for v in range(nodes)]
    return nodes, links, list(range(nodes))


def _commands(rng: Random, demand: list[str], verb: str) -> list[list[str]]:
    """Return a walk through the pipeline, every artefact of which is saved and verified."""
    out = rng.choice(("a.json", "a.npz"))
    first = [verb, "t.json", *demand, "--output", out, "--json"]
    after = [["verify", out, "--json"]]
    if verb == "solve":
        first += ["--method", rng.choice(sorted(METHODS)) + rng.choice(("", ":symmetry=false"))]
        return [first, *after]
    if verb == "route":
        method = rng.choice(CHOICE)
        first += ["--method", method, *_route_limits(rng, method)]
        kind = rng.choice(sorted(set(targets_for(Routes)) - {"opensm", "simgrid", "linux"}))
        lowered = ["lower", out, "--to", f"{kind}:max-routes=4096", "-o", "l", "--json"]
        after += [lowered, ["verify", "l", "--topology", "t.json", *demand, "--json"]]
        return [first, *after]
    first += ["--method", f"auto:max-chunks={rng.randrange(1, 9)}"] if rng.random() < 0.5 else []
    if not demand:
        kind = rng.choice(sorted(each for each, by in targets_for(Schedule).items() if by.read))
        after += [
            ["lower", out, "--to", kind, "-o", "l", "--json"],
            ["verify", "l", "--topology", "t.json", "--json"],
            ["run", out, "--bytes", "64", "--iterations", "1", "--warmup", "0", "--json"],
        ]
    return [first, *after]


def _route_limits(rng: Random, method: str) -> list[str]:
    """Return limits that a method takes; every weight becomes whole eighths, as files take them."""
    limits = ["--max-routes", str(rng.randrange(1, 4))] if rng.random() < 0.5 else []
    limits = limits if method in USED_BY["max_routes"] else []
    whole = method in USED_BY["chunks"] and (method == "robust" or bool(limits))
    return [*limits, *(["--chunks", "8"] if whole else [])]


def check_problem(case: Case) -> None:
    """Run the pipeline; every time and bound must agree with the optimum from outside."""
    with directory_of(case):
        for outcome in run_case(case):
            _require_true(outcome, case.facts["optimum"])


def _require_true(outcome: Outcome, optimum: float) -> None:
    found = outcome.json
    if "time" in found and "bound" in found:
        require_between(found["bound"], optimum, found["time"], outcome.words)
    if "--max-routes" in outcome.words and outcome.words[0] == "route":
        most = int(outcome.words[outcome.words.index("--max-routes") + 1])
        if found["max_routes_per_pair"] > most:
            raise FuzzFailureError("wrong", f"{shown(outcome.words)}: more than {most} routes")
    if outcome.words[0] == "solve" and not found["gap"] <= GAP:
        raise FuzzFailureError(
            "wrong", f"{shown(outcome.words)}: gap {found['gap']}, {found['status']}"
        )
