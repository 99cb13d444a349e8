"""One command leads to a file for OpenSM on any network of cables; its tables are walked here.

The walk and the search for cycles know the file and the netlist, and nothing of the package.
"""

import os
import re
import shutil
import subprocess
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import InputError, UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.lowering.options import Options
from alltoall.lowering.tables.opensm import emit_opensm
from alltoall.routes.deadlock_free import best
from alltoall.routes.search import find_routes
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.formats.ibsim import write
from alltoall.topologies.spec import build
from strategies import capacities

BY_TABLES = RouteSettings(destination_based=True)
NETWORK = "jellyfish:n=32,d=4,seed=1"

Cables = dict[tuple[str, int], str]
"""Where each port of a switch leads."""

Entries = dict[str, dict[str, int]]
"""The port of each switch to each destination."""


def cables_of(netlist: str) -> Cables:
    """Read the cables of an ibsim netlist."""
    cables: Cables = {}
    for record in re.split(r"\n\s*\n", netlist):
        name = re.search(r'^Switch \d+ "(\w+)"', record, re.MULTILINE)
        for port, far in re.findall(r'^\[(\d+)\] "(\w+)"', record, re.MULTILINE):
            if name is not None:
                cables[name[1], int(port)] = far
    return cables


def entries_of(text: str) -> Entries:
    """Read forwarding tables, ours or a dump of OpenSM."""
    entries: Entries = {}
    for line in text.splitlines():
        if header := re.search(r"of switch .*\('(\w+)'\)", line):
            mine = entries.setdefault(header[1], {})
        elif row := re.match(r"0x\w+ (\d+) # .*: '(\w+)'", line):
            mine[row[2]] = int(row[1])
    return entries


def walk(entries: Entries, cables: Cables, source: str, destination: str) -> list[tuple[str, int]]:
    """Follow the tables from the switch of one adapter to another adapter; return the channels."""
    at, channels = f"S{source[1:]}", []
    while at != destination:
        channels.append((at, entries[at][destination]))
        at = cables[channels[-1]]
        assert len(channels) <= len(entries) + 1, "the tables go round in a circle"
    return channels


def require_sound(routes: Routes) -> float:
    """Walk all pairs of the file of some routes; return the largest number of ways over a cable."""
    topology, demand = routes.problem.topology, routes.problem.demand.table()
    entries, cables = entries_of(emit_opensm(routes, Options())), cables_of(write(topology))
    names = [f"H{node}" for node in topology.terminals]
    waits: dict[tuple[str, int], set[tuple[str, int]]] = {}
    load: dict[tuple[str, int], float] = {}
    for source, row in zip(names, demand, strict=True):
        for destination, amount in zip(names, row, strict=True):
            channels = walk(entries, cables, source, destination) if amount else []
            for held, wanted in pairwise(channels):
                waits.setdefault(held, set()).add(wanted)
            for channel in channels[:-1]:
                load[channel] = load.get(channel, 0.0) + amount
    TopologicalSorter(waits).prepare()  # raises CycleError where channels wait in a circle
    return max(load.values())


@st.composite
def cabled(draw: st.DrawFn) -> Problem:
    """Draw a connected network of cables, some parallel, with switches and uneven demand."""
    nodes = draw(st.integers(2, 9))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    more = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=2 * nodes))
    widths = [(u, v, draw(capacities)) for u, v in tree + more]
    links = [each for u, v, width in widths for each in ((u, v, width), (v, u, width))]
    terminals = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=2)))
    topology = Topology.from_links("cabled", nodes, links, terminals)
    count = len(terminals)
    cells = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=count**2, max_size=count**2)
    matrix = [
        [0.0 if s == d else amount for d, amount in enumerate(row)]
        for s, row in enumerate(zip(*[iter(draw(cells))] * count, strict=True))
    ]
    matrix[0][1] = matrix[0][1] or 3.0
    return Problem(
        topology, draw(st.sampled_from([Demand(count), Demand(count, np.array(matrix))]))
    )


@given(problem=cabled())
def test_every_network_of_cables_has_a_file(problem: Problem) -> None:
    """All pairs arrive, no channels wait in a circle, whatever the network and the demand."""
    found = find_routes(problem, "deadlock-free", BY_TABLES)
    assert found.routes.layers == 1
    require_sound(found.routes)


def test_a_network_of_32_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sssp needs three layers: one is enough, and faster than sssp."""
    monkeypatch.setattr(best, "MOST_TABLE_TRIES", 1)
    problem = Problem.all_to_all(build(NETWORK))
    routes = find_routes(problem, "deadlock-free", BY_TABLES).routes
    assert require_sound(routes) == routes.time
    sssp = find_routes(problem, "sssp").routes
    assert (routes.layers, sssp.layers) == (1, 3)
    assert routes.time < sssp.time


def test_the_same_seed_gives_the_same_tables() -> None:
    """The search draws from a seed, and from nothing else."""
    problem = Problem.all_to_all(build("jellyfish:n=10,d=3,seed=1"))
    first, again = (find_routes(problem, "deadlock-free", BY_TABLES).routes for _ in range(2))
    assert first == again


@pytest.mark.parametrize("spec", ["hypercube:3", "torus:4x4", "mesh:3x3"])
def test_grids_lose_nothing(spec: str) -> None:
    """Where dimension order goes by destination in one layer, it is a start."""
    found = find_routes(Problem.all_to_all(build(spec)), "deadlock-free", BY_TABLES)
    assert found.routes.gap < 1e-6
    require_sound(found.routes)


def test_no_time_leaves_an_answer() -> None:
    """Up and down from a root takes no search."""
    late = RouteSettings(destination_based=True, solve=SolveSettings(time_limit=1e-9))
    problem = Problem.all_to_all(build(NETWORK))
    require_sound(find_routes(problem, "deadlock-free", late).routes)


def test_what_cannot_be_is_refused() -> None:
    """A ring of one-way links waits in a circle; a change of layer contradicts one layer."""
    one_way = Topology.from_links("one-way", 3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)])
    with pytest.raises(InputError, match=r"no order of the links of one-way .*leave out dest"):
        find_routes(Problem.all_to_all(one_way), "deadlock-free", BY_TABLES)
    changing = RouteSettings(destination_based=True, layer_change=True)
    with pytest.raises(UsageError, match="destination-based with change=true"):
        find_routes(Problem.all_to_all(build("ring:4")), "deadlock-free", changing)


def test_too_few_layers_name_the_command() -> None:
    """Tables that need more layers than are allowed lead to those that need one."""
    one = RouteSettings(max_layers=1)
    with pytest.raises(InputError, match="--method deadlock-free:destination-based"):
        find_routes(Problem.all_to_all(build("ring:5")), "sssp", one)


@pytest.mark.skipif(
    not (shutil.which("opensm") and shutil.which("ibsim")), reason="opensm or ibsim is missing"
)
def test_opensm_loads_the_file(tmp_path: Path) -> None:
    """On the simulated fabric of the same netlist, what OpenSM configures is what we wrote."""
    routes = find_routes(Problem.all_to_all(build("jellyfish:n=10,d=3,seed=1")), "deadlock-free",
                         BY_TABLES).routes  # fmt: skip
    (tmp_path / "net").write_text(write(routes.problem.topology))
    (tmp_path / "lfts").write_text(emit_opensm(routes, Options()))
    environment = {**os.environ, "IBSIM_SOCKNAME": f"{os.getpid()}", "SIM_HOST": "H0"}
    command = "ibsim-run opensm -o -e -R file -U lfts -f log --dump_files_dir . -D 0x43"
    with subprocess.Popen(
        ["ibsim", "-s", "-n", "net"], cwd=tmp_path, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as fabric:  # fmt: skip
        try:
            assert fabric.stdout is not None
            assert any("ready" in line for line in fabric.stdout)
            subprocess.run(
                command.split(), cwd=tmp_path, env=environment, check=True, capture_output=True
            )
        finally:
            fabric.kill()
    assert "file tables configured on all switches" in (tmp_path / "log").read_text()
    loaded = entries_of((tmp_path / "opensm-lfts.dump").read_text())
    assert loaded == entries_of((tmp_path / "lfts").read_text())
