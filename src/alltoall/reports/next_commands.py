"""What to run next: commands that go on from a file, exactly as they can be typed."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

RATE, UNIT = "25Gbps", "1Gbps"
"""What a link of capacity 1 carries in a command if nobody has said it: a guess where links have
capacity 1; where none has, their capacities are taken for rates in Gbit/s."""

WORTH_SOLVING = 0.01
"""A gap from which on it is worth while to look for better routes."""


@dataclass(frozen=True)
class Command:
    """A command, and what one gets from it."""

    why: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(("alltoall", *self.words))


def next_commands(
    noun: Flow | Routes | Schedule | Topology, path: str, spec: str | None, rate: str | None
) -> list[Command]:
    """Return what goes on from a file; `spec` is what builds its topology, if that is known."""
    if isinstance(noun, Topology):
        return [_solved(path), *_routes_and_schedule(path, path)]
    found = [Command("check it again, on any machine", ("verify", path))]
    if isinstance(noun, Flow):
        known = spec is not None and noun.problem.demand.uniform
        return [*found, *(_routes_and_schedule(str(spec), path) if known else [])]
    topology = noun.problem.topology
    stated = topology.bytes_per_second is not None
    guess = RATE if topology.capacity.min() <= 1.0 else UNIT
    link = () if stated else ("--link-bandwidth", rate or guess)
    sizes = ("--bytes", "64K:4M")
    found.append(Command("predict its time on your links", ("simulate", path, *link, *sizes)))
    if isinstance(noun, Routes):
        return [*found, *_from_routes(noun, path, spec)]
    return [*found, *_from_schedule(noun, path)]


def _from_schedule(schedule: Schedule, path: str) -> list[Command]:
    """Return a run, and the file of a runtime; MSCCL takes shards of one size only."""
    uniform = schedule.problem.demand.uniform
    target, suffix = ("msccl", ".xml") if uniform else ("messages", ".messages")
    return [
        Command("move real bytes by it, and check each", ("run", path, "--bytes", "4K")),
        Command(
            "make the file of a runtime",
            ("lower", path, "--to", target, "-o", _beside(path, suffix)),
        ),
    ]


def _solved(path: str) -> Command:
    return Command("prove the best rate", ("solve", path, "-o", _beside(path, ".flow.json")))


def _routes_and_schedule(spec: str, path: str) -> list[Command]:
    return [
        Command("routes, where NICs forward", ("route", spec, "-o", _beside(path, ".routes.json"))),
        Command(
            "a schedule, where hosts forward",
            ("schedule", spec, "-o", _beside(path, ".schedule.json")),
        ),
    ]


def _from_routes(routes: Routes, path: str, spec: str | None) -> list[Command]:
    """Return the fabric's table, if routes have layers, and better routes, if there may be any."""
    found = []
    if routes.layer is not None:
        table = ("lower", path, "--to", "routes", "-o", _beside(path, ".table.json"))
        found.append(Command("make the table of a fabric", table))
    if spec is not None and routes.gap > WORTH_SOLVING and routes.problem.demand.uniform:
        better = ("route", spec, "--method", "extp", "-o", _beside(path, ".extp.json"))
        found.append(Command("look for better routes", better))
    return found


def _beside(path: str, suffix: str) -> str:
    """Return the name of a new file beside another one, which no other file's is."""
    here = Path(path)
    return str(here.with_name((here.stem or here.name) + suffix))
