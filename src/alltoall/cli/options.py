"""The options that every verb with a SPEC shares, and the problem that they describe."""

import re
import reprlib
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.progress import progress
from alltoall.cli.signals import searching
from alltoall.errors import UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.files.node_tables import group_of, read_groups
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import parse_seconds
from alltoall.ir.topology import Topology
from alltoall.lp import solver_names
from alltoall.settings import SolveSettings
from alltoall.topologies import operators
from alltoall.topologies.background import without_background
from alltoall.topologies.given import load_topology, problem_of
from alltoall.topologies.operators import both_ways

CHANGES = "Changes to the topology"
DEFAULTS = SolveSettings()

Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="A topology: family:args, such as torus:3x3x3 or genkautz:n=64,d=4, or a file. "
        "`alltoall topology` lists the families.",
        show_default=False,
    ),
]


def time_option(help_text: str, panel: str | None = None) -> Any:
    """Return an option that takes `2us`, `0.5ms`, or a plain number of seconds."""
    return typer.Option(metavar="TIME", help=help_text, rich_help_panel=panel, parser=parse_seconds)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DemandFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Demand between terminals; uniform if left out."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="A,B,C",
        help="All-to-all among these terminals only, names or numbers; may be repeated. A pair in "
        "several groups sends a shard in each.",
    ),
]
GroupFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Such groups from a file, one a line.")
]
JobsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Jobs that share the fabric, as TOML or JSON: groups or a demand, weight and start.",
    ),
]
Background = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[@SHARE]",
        help="What others use of the links is taken away: lines tail,head,rate, or a saved flow or "
        "routes at full speed; @0.5 is half of that.",
    ),
]
LinkBandwidth = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Bandwidth of a capacity-1 link, such as 100G (default: from SPEC or file).",
    ),
]
KeepProvenance = Annotated[
    bool,
    typer.Option(
        "--provenance/--no-provenance",
        help="Save where the answer comes from; without it equal answers are equal files.",
    ),
]

Robust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FAMILY",
        help="A template for demands of a family: skew, pairs, destinations or hose; or for those "
        "of a FILE. May be repeated.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Save as JSON, or compactly if FILE ends in .npz; - is standard output.",
    ),
]


def _option(name: str, help_text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=help_text, metavar=metavar, rich_help_panel=CHANGES)


def chosen_topology(
    spec: Spec,
    input_format: Annotated[
        str | None, _option("--format", "Format of the file, if its name does not tell.", "NAME")
    ] = None,
    directed: Annotated[
        bool, _option("--directed", "Take the lines of an edge list as one-way links.")
    ] = False,
    parallel: Annotated[
        bool,
        _option("--parallel", "Take every line of an edge list as a cable of its own."),
    ] = False,
    undirected: Annotated[
        bool, _option("--undirected", "Take every link as a cable, which goes both ways.")
    ] = False,
    capacity_attribute: Annotated[
        str | None,
        _option(
            "--capacity-attribute", "The attribute of GraphML or networkx edges to take.", "NAME"
        ),
    ] = None,
    remove_link: Annotated[
        list[str] | None,
        _option("--remove-link", "Remove a link, by names or numbers; may be repeated.", "U-V"),
    ] = None,
    remove_node: Annotated[
        list[str] | None,
        _option("--remove-node", "Remove a node, by name or number; may be repeated.", "V"),
    ] = None,
    drop_links: Annotated[int, _option("--drop-links", "Remove K random links.", "K")] = 0,
    drop_nodes: Annotated[int, _option("--drop-nodes", "Remove K random nodes.", "K")] = 0,
    seed: Annotated[int, _option("--seed", "Seed of what is removed at random.", "S")] = 0,
    set_capacity: Annotated[
        list[str] | None,
        _option("--set-capacity", "Set a link's capacity; may be repeated.", "U-V=C"),
    ] = None,
    scale_capacity: Annotated[
        float | None, _option("--scale-capacity", "Multiply all capacities.", "X")
    ] = None,
    host_bandwidth: Annotated[
        float | None,
        _option(
            "--host-bandwidth",
            "Make all that passes a node pass its host, at B units of one link.",
            "B",
        ),
    ] = None,
) -> Topology:
    """Build or read the topology, then change it in the order of these options."""
    if seed < 0:
        raise UsageError(f"seed {seed}; expected 0 or more")
    if directed and undirected:
        raise UsageError("--directed and --undirected; expected one of them")
    if directed and parallel:
        raise UsageError("--directed and --parallel; expected one of them")
    topology = load_topology(spec, input_format, directed, capacity_attribute, parallel)
    if undirected:
        topology = both_ways(topology)
    if remove_link:
        topology = operators.remove_links(topology, map(topology.ends_of, remove_link))
    if remove_node:
        topology = operators.remove_nodes(topology, map(topology.node_of, remove_node))
    if drop_links:
        topology = operators.drop_links(topology, drop_links, seed)
    if drop_nodes:
        topology = operators.drop_nodes(topology, drop_nodes, seed)
    if set_capacity:
        wanted = dict(_capacity(topology, text) for text in set_capacity)
        topology = operators.set_capacities(topology, wanted)
    if scale_capacity is not None:
        topology = operators.scale_capacities(topology, scale_capacity)
    if host_bandwidth is not None:
        topology = operators.with_host_bandwidth(topology, host_bandwidth)
    return topology


@dataclass(frozen=True)
class Asked:
    """What the words of a call ask of a search; the search itself gives the settings their clock.

    They are made when the search begins, so that reading the problem is not part of its time.
    """

    settings: SolveSettings

    @contextmanager
    def search(self) -> Iterator[SolveSettings]:
        """Give the settings of a search that reports its progress and that a signal ends."""
        with progress() as report, searching() as stopped:
            yield replace(self.settings, report=report, stopped=stopped).begin()


def asked_settings(
    solver: Annotated[str, typer.Option(help=f"One of {', '.join(solver_names())}.")] = "auto",
    gap: Annotated[float, typer.Option(help="The certified gap to aim for.")] = DEFAULTS.gap,
    time_limit: Annotated[
        float | None,
        time_option("Stop then, with the best certified answer so far."),
    ] = None,
    workers: Annotated[
        int, typer.Option("--threads", "--workers", help="Threads and processes to use.")
    ] = DEFAULTS.workers,
    symmetry: Annotated[
        bool,
        typer.Option(
            "--symmetry/--no-symmetry",
            help="Let one source stand for all that are symmetric to it.",
        ),
    ] = True,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run the work per source on the Dask cluster at tcp://host:port, which you trust.",
        ),
    ] = None,
) -> Asked:
    """Return what the words of a call ask of any search."""
    return Asked(
        SolveSettings(gap, solver, time_limit, workers, cluster=cluster, symmetry=symmetry)
    )


def command_of(context: typer.Context) -> str:
    """Return the words of a call as a shell takes them; `app` left them here."""
    return shlex.join(("alltoall", *context.obj))


def given_options(context: typer.Context) -> dict[str, Any]:
    """Return the values of the parameters that the command line states, by name."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def load_problem(
    topology: Topology,
    demand: Path | None,
    groups: list[str] | None = None,
    group_file: Path | None = None,
    jobs: Path | None = None,
    background: str | None = None,
) -> Problem:
    """Return the problem on a topology: uniform, of a file, within groups, or of several jobs."""
    if demand is not None and (groups or group_file):
        raise UsageError("--demand and groups; expected one of them, as either says all there is")
    topology = without_background(topology, background)
    found = [group_of(text.split(","), topology) for text in groups or ()]
    found += read_groups(group_file, topology) if group_file else []
    if not found:
        return problem_of(topology, demand, jobs=jobs)
    if jobs is not None:
        raise UsageError("--jobs and groups; expected one of them, as either says all there is")
    return Problem(topology, Demand.of_groups(len(topology.terminals), found))


def sides_of(text: str) -> tuple[int, ...]:
    """Return the sides of a grid that is written like 3x3x3."""
    if not re.fullmatch(r"[0-9]{1,7}(x[0-9]{1,7})*", text):
        raise UsageError(f"shape {reprlib.repr(text)}; expected sides such as 3x3x3")
    return tuple(map(int, text.split("x")))


def _capacity(topology: Topology, text: str) -> tuple[tuple[int, int], float]:
    link, _, number = text.rpartition("=")
    try:
        capacity = float(number if link else "")
    except ValueError:
        raise UsageError(
            f"capacity {reprlib.repr(text)}; expected a link and a number, such as 3-4=2.5"
        ) from None
    return topology.ends_of(link), capacity
