"""Options that a public function shares with its verb, each declared once.

The keyword is the name of the option: `link_bandwidth=` is `--link-bandwidth`. One that may be
repeated is plural in Python (`groups=`, `--group`); `from`, a word of Python, is `from_`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """What an option takes: its help, the word for its value, its type, and whether it repeats."""

    help: str
    metavar: str = ""
    kind: Any = str
    many: bool = False


OPTIONS: dict[str, Option] = {
    "method": Option("NAME or NAME:key=value; --help-all lists them", "METHOD"),
    "demand": Option("Traffic between terminals, or jobs (default: uniform)", "FILE"),
    "groups": Option(
        "All-to-all among these only, or in rows or columns of a grid", "A,B,C", many=True
    ),
    "background": Option("Subtract background traffic from the links", "FILE[@SHARE]"),
    "link_bandwidth": Option("Bandwidth of a capacity-1 link (default: from the file)", "RATE"),
    "bytes": Option("Size of a shard, for times in seconds", "SIZE"),
    "gap": Option("Certified gap to aim for", "SHARE", float),
    "time_limit": Option("Stop then, with the best certified answer so far", "TIME"),
    "threads": Option("Threads and processes to use (default: all cores)", "N", int),
    "max_routes": Option("Most routes per pair", "K", int),
    "max_layers": Option("Most virtual channels", "L", int),
    "chunks": Option("Cut every shard into C chunks (default: as few as do)", "C", int),
    "steps": Option("Most steps (default: the best number)", "N", int),
    "latency": Option("Cost of a step: a time, or a number of shard times", "TIME"),
    "from_": Option("Move as little as possible from this saved answer", "FILE"),
    "rank_map": Option("Lines `node rank` (default: ranks in the order of nodes)", "FILE"),
    "directed": Option("Lines of the edge list are one-way links", kind=bool),
    "parallel": Option("Lines of the edge list are cables of their own", kind=bool),
    "undirected": Option("Every link is a cable, which goes both ways", kind=bool),
    "format": Option("Format of the file, if its name does not tell", "NAME"),
    "capacity_attribute": Option("Edge attribute that holds the capacity", "NAME"),
    "remove_links": Option("Remove a link; repeatable", "U-V", many=True),
    "remove_nodes": Option("Remove a node; repeatable", "V", many=True),
    "drop_links": Option("Remove K random links", "K", int),
    "drop_nodes": Option("Remove K random nodes", "K", int),
    "seed": Option("Seed of what is random", "S", int),
    "set_capacities": Option("Set the capacity of a link; repeatable", "U-V=C", many=True),
    "scale_capacity": Option("Multiply all capacities by X", "X", float),
    "host_bandwidth": Option("Cap each host's bandwidth at B links", "B", float),
    "grid": Option("Grid points of each side: 64, or 64x48x32", "SIDE|AxBxC"),
    "tokens": Option("Tokens per rank", "T", int),
    "hidden": Option("Hidden size: 4-byte numbers per token", "H", int),
    "experts_per_rank": Option("Experts per rank", "E", int),
    "top_k": Option("Experts per token", "K", int),
    "skew": Option("Lognormal skew of the experts' popularity; 0: even", "SIGMA", float),
    "on": Option("mpi or torch", "RUNTIME"),
    "schedule": Option("Saved schedule or messages, or a SPEC to schedule", "FILE"),
    "resolve": Option("Also time schedules for the actual counts", kind=bool),
    "ranks": Option("Number of ranks; needed without --schedule", "N", int),
    "mpi": Option("mpich, openmpi, or path of an mpiexec", "MPI"),
    "iterations": Option("Timed iterations", "K", int),
    "warmup": Option("Untimed iterations first", "W", int),
    "timeout": Option("End all ranks after this time", "TIME"),
    "rate": Option("Emulate links, a capacity-1 link of this bandwidth", "RATE"),
    "fabric": Option("Run on the testbed that `testbed up` made", "NAME"),
    "routes": Option("Also time these routes on the testbed; repeatable", "FILE", many=True),
}
"""All of them, by keyword."""

HOOKS = {
    "progress": "Called with a line now and then.",
    "stop": "Asked now and then; once it is true, the best answer so far is returned.",
    "team": "MPI ranks that share the work.",
    "name": "Name of the file.",
    "others": "Further ways to move shards, as `workloads.launch` has them.",
    "to": "Target, or TARGET:key=value.",
}
"""Keywords that no option has."""

IRREGULAR = {"set_capacities": "--set-capacity", "routes": "--routes"}


def flag_of(keyword: str) -> str:
    """Return the option of a keyword: groups is --group, from_ is --from."""
    if keyword in IRREGULAR:
        return IRREGULAR[keyword]
    name = keyword.rstrip("_")
    if keyword in OPTIONS and OPTIONS[keyword].many:
        name = name.removesuffix("s")
    return "--" + name.replace("_", "-")


def documented(function: Callable[..., Any]) -> str:
    """Return the documentation of a function with a line for each keyword that is an option."""
    text = inspect.cleandoc(function.__doc__ or "")
    about = {key: f"{each.help}." for key, each in OPTIONS.items()} | HOOKS
    known = [each for each in inspect.signature(function).parameters if each in about]
    if not known or "Args:" in text:
        return text
    head, example, rest = text.partition(">>>")
    rows = "\n".join(f"    {each}: {about[each]}" for each in known)
    return f"{head.rstrip()}\n\nArgs:\n{rows}\n\n{example}{rest}".rstrip() + "\n"
