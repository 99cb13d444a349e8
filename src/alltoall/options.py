"""Options of all verbs, each declared once: settings, help and documentation follow from them.

The keyword of the public function is the name of the option: `link_bandwidth=` is
`--link-bandwidth`. One that may be repeated is plural in Python (`groups=`, `--group`); `from`, a
word of Python, is `from_`. Where a word needs another explanation in one verb, `OF_VERB` has it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option: its help, the word for its value, its type, and whether it repeats.

    An `argument` has no name on the command line. Help lists options by `group`.
    """

    help: str
    metavar: str = ""
    kind: Any = str
    many: bool = False
    argument: bool = False
    group: str | None = None


def flag(help: str, group: str | None = None) -> Option:
    """Return an option without a value."""
    return Option(help, kind=bool, group=group)


NETWORK = "Changes to the network"
TESTBED = "On a testbed"

OPTIONS: dict[str, Option] = {
    "given": Option("Family, such as torus:3x3x3, or a file", "SPEC", argument=True),
    "subject": Option("Saved schedule or routes", "FILE", argument=True),
    "file": Option("Saved routes or schedule", "FILE", argument=True),
    # The problem, and how to search.
    "method": Option("NAME or NAME:key=value; --help-all lists them", "METHOD"),
    "methods": Option("Method to compare; repeatable", "NAME", many=True),
    "demand": Option("Traffic between terminals, or jobs (default: uniform)", "FILE"),
    "groups": Option("All-to-all among these only, or rows, columns", "A,B,C", many=True),
    "background": Option("Subtract background traffic from the links", "FILE[@SHARE]"),
    "link_bandwidth": Option("Bandwidth of a capacity-1 link (default: from the file)", "RATE"),
    "bytes": Option("Size of a shard, for times in seconds", "SIZE"),
    "gap": Option("Certified gap to aim for", "SHARE", float),
    "time_limit": Option("Stop then, with the best certified answer so far", "TIME"),
    "threads": Option("Threads and processes to use (default: all cores)", "N", int),
    "cluster": Option("Run points on this Dask cluster, which you trust", "ADDRESS"),
    "max_routes": Option("Most routes per pair", "K", int),
    "max_layers": Option("Most virtual channels", "L", int),
    "chunks": Option("Cut every shard into C chunks (default: as few as do)", "C", int),
    "steps": Option("Most steps (default: the best number)", "N", int),
    "latency": Option("Latency of every link, such as 2us", "TIME"),
    "from_": Option("Move as little as possible from this saved answer", "FILE"),
    "over": Option("Values of {KEY}: 16,32,64 or 1..5; repeatable", "KEY=VALUES", many=True),
    "seed": Option("Seed of random choices", "S", int),
    # Networks.
    "format": Option("Format of the file, if its name does not tell", "NAME", group=NETWORK),
    "directed": flag("Lines of the edge list are one-way links", NETWORK),
    "parallel": flag("Lines of the edge list are cables of their own", NETWORK),
    "undirected": flag("Every link is a cable, which goes both ways", NETWORK),
    "capacity_attribute": Option("Edge attribute that holds the capacity", "NAME", group=NETWORK),
    "remove_links": Option("Remove a link; repeatable", "U-V", many=True, group=NETWORK),
    "remove_nodes": Option("Remove a node; repeatable", "V", many=True, group=NETWORK),
    "drop_links": Option("Remove K random links", "K", int, group=NETWORK),
    "drop_nodes": Option("Remove K random nodes", "K", int, group=NETWORK),
    "set_capacities": Option("Set a capacity; repeatable", "U-V=C", many=True, group=NETWORK),
    "scale_capacity": Option("Multiply all capacities by X", "X", float, group=NETWORK),
    "host_bandwidth": Option("Cap each host's bandwidth at B links", "B", float, group=NETWORK),
    # Designs.
    "nodes": Option("Number of nodes", "N", int),
    "degree": Option("Links per node, in and out", "D", int),
    "bidirectional": flag("Use cables, which go both ways (default: one-way links)"),
    "constraints": Option("Fixed cables, panels, prices or a network to expand", "FILE.toml"),
    "workload": Option("Demand between nodes (default: uniform)", "FILE"),
    "objective": Option("Rank by alltoall, alltoall+failures or alltoall+diameter", "NAME"),
    "layers": Option("Most virtual channels", "L", int),
    "failures": Option("Solve K single failures of the best candidates", "K", int),
    "links": Option("Fail every set of K links or cables (default: 1)", "K", int),
    "only": Option("Only these: a-b a link, a a node, a-b+c both", "A-B,…"),
    # Lowering and running.
    "to": Option("NAME or NAME:key=value; listed below", "TARGET"),
    "rank_map": Option("Lines `node rank` (default: ranks in the order of nodes)", "FILE"),
    "topology": Option("Network of a lowered file, which does not name it", "SPEC"),
    "ranks": Option("Number of ranks (default: as the schedule has)", "N", int),
    "iterations": Option("Timed iterations", "K", int),
    "warmup": Option("Untimed iterations first", "W", int),
    "sync": Option("dataflow: forward on arrival; step: a barrier after each step", "NAME"),
    "mpi": Option("mpich, openmpi, or path of an mpiexec", "MPI"),
    "timeout": Option("End all ranks after this time", "TIME"),
    "rate": Option("Emulate links: bandwidth of a capacity-1 link", "RATE", group=TESTBED),
    "ranks_per_host": Option("Ranks on each host, by wrap: 2, or 2,2,4", "R", group=TESTBED),
    "fabric": Option("Name of a testbed that `testbed up` made", "NAME", group=TESTBED),
    "through": Option("Ranks of mpi or torch", "NAME", group=TESTBED),
    "native": flag("Also time the library's own all-to-all", TESTBED),
    "weights": Option("Routes: by weights, chunks, paced or phases", "NAME", group=TESTBED),
    "steering": Option(
        "encap (SRv6), plain (all hops) or ports (a flow per chunk)", "NAME", group=TESTBED
    ),
    "cut": Option("Cut this cable during the run; time the recovery", "A-B", group=TESTBED),
    "node": Option("Node (default: that of this MPI rank)", "NODE"),
    "cable": Option("Cable between two nodes, such as 0-1", "A-B", argument=True),
    "command": Option("Command to run", "-- COMMAND...", many=True, argument=True),
    "files": Option(
        "Schedules, messages or SPECs (FILE@64K: for shards of 64 KiB and above)",
        "FILE... -- COMMAND...",
        many=True,
        argument=True,
    ),
    "min_bytes": Option("Leave smaller shards to the MPI library", "SIZE"),
    "mpicc": Option("The program's MPI compiler (default: beside the launcher)", "MPICC"),
    "report": flag("Always print how many all-to-alls used which schedule, and who is where"),
    "quiet": flag("Never print how many all-to-alls used a schedule"),
    # Simulations.
    "overhead": Option("Time that sending a message takes, such as 1us", "TIME"),
    "injection": Option("Bandwidth of each terminal, in and out", "RATE"),
    "start": Option("Start times: lines `node seconds` (default: 0)", "FILE"),
    "sharing": Option("Schedules: due (earliest step first) or fair (as TCP shares)", "NAME"),
    "flows": Option("Routes: parallel flows of each route", "K", int),
    "chunk_bytes": Option("Routes: size of a message of a flow", "SIZE"),
    "phases": Option("Routes: send in K phases; 0 for as many as fit the loss", "K", int),
    "phase_loss": Option("Throughput that phases may lose (default: 0.05)", "LOSS", float),
    "resolution": Option("Routes: time resolution, a share; 0 is exact", "SHARE", float),
    "jobs": Option("Routes of a job that shares the links; repeatable", "FILE[@TIME]", many=True),
    # Workloads.
    "grid": Option("Grid points of each side: 64, or 64x48x32", "SIDE|AxBxC"),
    "schedule": Option("Saved schedule or messages, or a SPEC to schedule", "FILE"),
    "routes": Option("Also time these routes; repeatable", "FILE", many=True, group=TESTBED),
    "pencils": Option("Also cut the grid in two sides, among P rows of Q ranks", "PxQ"),
    "tokens": Option("Tokens per rank", "T", int),
    "hidden": Option("Hidden size: 4-byte numbers per token", "H", int),
    "experts_per_rank": Option("Experts per rank", "E", int),
    "top_k": Option("Experts per token", "K", int),
    "skew": Option("Lognormal skew of the experts' popularity; 0: even", "SIGMA", float),
    "on": Option("Runtime: mpi or torch", "NAME"),
    "resolve": flag("Also time schedules for the actual counts"),
    # Reports and figures.
    "tolerance": Option("Largest relative error", "SHARE", float),
    "subjects": Option(
        "Flows, routes, schedules, topologies; JSON of `run` or `simulate`",
        "FILE...",
        many=True,
        argument=True,
    ),
    "title": Option("Title of the page (default: its networks)", "TEXT"),
    "sources": Option("Show paths from this terminal; repeatable", "NODE", many=True),
    "figure": Option("Name of a figure, or all", "FIGURE", argument=True),
    "quick": flag("Fewer and smaller points: about a minute per figure"),
    "size": Option("full, quick, or sample: a few points in seconds (default: full)", "SIZE"),
    "peers": Option("Also show MSCCL XML of another tool; repeatable", "FILE.xml", many=True),
    "testbed": flag("Measure on emulated links, or only simulate"),
    "results": Option("Write a page of all figures in DIR", "FILE.md"),
    "against": Option("Compare with another run (default: our own)", "DIR"),
    # Where an answer goes: in Python an answer has methods for these.
    "output": Option("Save as JSON, or compactly as .npz; - is standard output", "FILE"),
    "json": flag("Print one JSON object and nothing else"),
    "draw": Option("Draw the network", "FILE.svg"),
    "patch": Option("Save its cabling: a line per cable, with ports", "FILE.csv"),
    "export": flag("Print the variables for a job script; run nothing"),
}
"""All of them, by keyword."""

DRAWN = ("output", "json", "draw", "patch", "export")
"""Options of the command line alone: an answer in Python has methods for these."""

OF_VERB: dict[str, dict[str, Option]] = {
    "topology": {
        "seed": Option("Seed of random removals", "S", int, group=NETWORK),
        "to": Option("Format of that file, if not by its name", "FORMAT"),
    },
    "schedule": {
        "latency": Option("Cost of a step: a time, or a number of shard times", "TIME"),
    },
    "compare": {
        "given": Option(
            "Networks, saved flows, routes or schedules, or what `alltoall run --json` printed; "
            "{key} in a SPEC takes each value of --over",
            "SPEC|FILE...",
            many=True,
            argument=True,
        ),
        "bytes": Option("Size of a shard: adds seconds, and picks that of runs", "SIZE"),
        "time_limit": Option("End each point then", "TIME"),
        "output": Option(
            "Save as .csv, .json, .svg or .html; continue from a .json that exists", "FILE"
        ),
    },
    "design": {"output": Option("Save the best network", "FILE")},
    "failures": {
        "nodes": Option("Fail every set of K nodes", "K", int),
        "time_limit": Option("Stop then, with the failures found so far", "TIME"),
        "output": Option("Save an answer for each failure, and index.json", "DIR"),
    },
    "lower": {
        "subject": Option("A saved schedule, routes, or an MSCCL file", "FILE", argument=True),
        "output": Option("Where to, a folder for several files (default: -)", "FILE"),
    },
    "run": {
        "subject": Option(
            "Schedule, messages, MSCCL XML, MSCCL++ plan or oneCCL-style XML; with --on testbed "
            "also routes",
            "FILE",
            argument=True,
        ),
        "on": Option("Runtime: reference, mpi, torch or testbed", "NAME"),
        "bytes": Option("Size of a shard; 1K:16M doubles", "SIZE[:SIZE]"),
        "iterations": Option("Timed iterations (default: 20; testbed: 5)", "K", int),
        "warmup": Option("Untimed iterations first (default: 3; testbed: 1)", "W", int),
        "sync": Option("dataflow: forward on arrival; step: MPI barrier after each step", "NAME"),
        "topology": Option("Its network, if the file has none", "SPEC", group=TESTBED),
        "jobs": Option(
            "A schedule to run at the same time; repeatable, with one size",
            "FILE",
            many=True,
            group=TESTBED,
        ),
    },
    "simulate": {
        "subject": Option(
            "Saved schedule, routes or messages; optional with --job", "FILE", argument=True
        ),
        "bytes": Option("Size of a shard; 1K:16M doubles", "SIZE[:SIZE]"),
        "weights": Option("Routes: share links equally (equal), or by weight (share)", "NAME"),
    },
    "verify": {
        "subject": Option("File to check", "FILE", argument=True),
        "demand": Option(
            "Judge routes or a schedule under this demand; for lowered routes, their own", "FILE"
        ),
    },
    "report": {"output": Option("Save the HTML page; - is standard output", "FILE")},
    "wrap": {
        "rank_map": Option("Lines `node rank` (default: by host names, else in order)", "FILE")
    },
    "reproduce": {
        "time_limit": Option("Start no further points then", "TIME"),
        "output": Option("Save rows, pictures and claims here; continue from it", "DIR"),
    },
    "up": {
        "given": Option("Topology, or a file with one, such as a schedule", "SPEC", argument=True),
        "rate": Option("Bandwidth of a capacity-1 link, such as 20mbit", "RATE"),
        "fabric": Option("Name of the testbed", "NAME"),
    },
    "status": {"fabric": Option("Name of the testbed (default: all)", "NAME")},
    **{
        part: {"fabric": Option("Name of the testbed", "NAME")}
        for part in ("cut", "mend", "down", "execute")
    },
    "fair_rates": {"jobs": Option("Jobs that share the links", many=True)},
}
"""Options that mean something else in one verb."""

HOOKS = {
    "progress": "Called with a line now and then.",
    "stop": "Asked now and then; once it is true, the best answer so far is returned.",
    "team": "MPI ranks that share the work.",
    "launcher": "Command beside which mpicc is looked for, before the PATH.",
    "others": "Further ways to move shards.",
    "name": "Name of the file.",
}
"""Keywords without an option."""


def option_of(keyword: str, verb: str) -> Option | None:
    """Return the option of a keyword in a verb, or None."""
    return OF_VERB.get(verb, {}).get(keyword) or OPTIONS.get(keyword)


def flag_of(keyword: str, about: Option) -> str:
    """Return the option of a keyword: groups is --group, from_ is --from."""
    name = keyword.rstrip("_")
    if about.many and name.endswith("s"):
        name = name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")
    return "--" + name.replace("_", "-")


def documented(function: Callable[..., Any]) -> str:
    """Return the documentation of a function with a line for each known keyword."""
    text = inspect.cleandoc(function.__doc__ or "")
    rows = keywords_of(function)
    if not rows or "Args:" in text:
        return text
    head, example, rest = text.partition(">>>")
    listed = "\n".join(f"    {keyword}: {about}" for keyword, about in rows.items())
    return f"{head.rstrip()}\n\nArgs:\n{listed}\n\n{example}{rest}".rstrip() + "\n"


def keywords_of(function: Callable[..., Any]) -> dict[str, str]:
    """Return the explanation of each known keyword of a function."""
    parameters = inspect.signature(function).parameters
    if all(each.kind is not each.KEYWORD_ONLY for each in parameters.values()):
        return {}
    known = {keyword: option_of(keyword, function.__name__) for keyword in parameters}
    options = {keyword: f"{each.help}." for keyword, each in known.items() if each is not None}
    return {key: text for key in known if (text := options.get(key) or HOOKS.get(key))}
