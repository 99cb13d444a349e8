"""The next commands for a file, ready to type."""

import shlex
from pathlib import Path

from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

RATE, UNIT = "25Gbps", "1Gbps"
"""Rates of a capacity-1 link in commands if none is known: RATE if links have capacity 1; other
capacities are taken as Gbit/s."""

WORTH_SOLVING = 0.01
"""Gap above which better routes are worth a search."""

Commands = list[dict[str, str]]


def next_commands(
    noun: Flow | Routes | Schedule | Topology, path: str, spec: str | None, rate: str | None
) -> Commands:
    """Return the next commands and why to run them; `spec` builds the file's topology."""
    if isinstance(noun, Topology):
        solve = _command("prove the best rate", "solve", path, *_output(path, ".flow.json"))
        return [solve, *_routes_and_schedule(path, path)]
    verify = _command("check it again, on any machine", "verify", path)
    if isinstance(noun, Flow):
        known = spec is not None and noun.problem.demand.uniform
        return [verify, *(_routes_and_schedule(str(spec), path) if known else [])]
    topology = noun.problem.topology
    guess = RATE if topology.capacity.min() <= 1.0 else UNIT
    known_rate = topology.bytes_per_second is not None
    link = () if known_rate else ("--link-bandwidth", rate or guess)
    why = "predict its time on your links"
    simulate = _command(why, "simulate", path, *link, "--bytes", "64K:4M")
    more = (
        _from_routes(noun, path, spec) if isinstance(noun, Routes) else _from_schedule(noun, path)
    )
    return [verify, simulate, *more]


def _from_schedule(schedule: Schedule, path: str) -> Commands:
    """Return the commands for a schedule; MSCCL takes shards of one size only."""
    uniform = schedule.problem.demand.uniform
    target, suffix = ("msccl", ".xml") if uniform else ("messages", ".messages")
    to = ("--to", target, *_output(path, suffix))
    return [
        _command("move real bytes by it, and check each", "run", path, "--bytes", "4K"),
        _command("make the file of a runtime", "lower", path, *to),
    ]


def _from_routes(routes: Routes, path: str, spec: str | None) -> Commands:
    """Return the commands for the fabric's table, if routes have layers, and for better routes."""
    commands = []
    if routes.layer is not None:
        to = ("--to", "routes", *_output(path, ".table.json"))
        commands.append(_command("make the table of a fabric", "lower", path, *to))
    if spec is not None and routes.gap > WORTH_SOLVING and routes.problem.demand.uniform:
        how = ("--method", "extp", *_output(path, ".extp.json"))
        commands.append(_command("look for better routes", "route", spec, *how))
    return commands


def _routes_and_schedule(spec: str, path: str) -> Commands:
    return [
        _command("routes, where NICs forward", "route", spec, *_output(path, ".routes.json")),
        _command(
            "a schedule, where hosts forward", "schedule", spec, *_output(path, ".schedule.json")
        ),
    ]


def _command(why: str, *words: str) -> dict[str, str]:
    return {"why": why, "command": shlex.join(("alltoall", *words))}


def _output(path: str, suffix: str) -> tuple[str, str]:
    """Return the output option for a new file beside another."""
    here = Path(path)
    return "-o", str(here.with_name((here.stem or here.name) + suffix))
