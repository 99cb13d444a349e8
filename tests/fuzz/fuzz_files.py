"""Fuzzers of every reader: valid files of every format, damaged, and given to the verbs."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from fuzz_case import Case, FuzzFailureError, Outcome, call, directory_of, run_case, shown
from fuzz_mutate import mutate
from fuzz_outside import best_time

import alltoall
from alltoall.errors import AlltoallError
from alltoall.ir.files.artefacts import file_bytes, read_artefact
from alltoall.ir.noun import Noun
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, parse_lowered, targets_for
from alltoall.topologies.formats import FORMATS

TOLERANCE = 1e-6
"""How far the certified numbers may be from those of the outside program."""

MOST_PAIRS = 60
"""Pairs up to which the outside program is asked; damaged files are seldom larger."""


@dataclass(frozen=True)
class Sample:
    """A valid file: the commands that make it, the last of which writes it, and its readers."""

    name: str
    make: tuple[str, ...]
    readers: tuple[str, ...]


SPEC = "bipartite:2x2"
QUICKLY = "--bytes 8 --iterations 1 --warmup 0"
SIMULATED = "simulate {0} --link-bandwidth 1Gbps --latency 1e-6"


def _topologies() -> list[Sample]:
    return [
        Sample(
            f"sample.{key}",
            (f"topology {SPEC} -o sample.{key} --to {key}",),
            (f"topology sample.{key} --format {key}", f"solve sample.{key} --format {key}")
            + (("verify sample.json",) if key == "json" else ()),
        )
        for key, entry in FORMATS.items()
        if entry.reads and entry.writes
    ]


def _to(target: str) -> str:
    """Return the words that ask for a target; a folder does not go to standard output."""
    return f"{target} -o folder" if target == "chakra" else target


def _artefacts() -> list[Sample]:
    """Return flows, routes and schedules in both forms, for even and uneven demands."""
    read = "verify {0}"
    onward = {
        "solve": (read,),
        "solve --method first-order": (read,),
        "route": (
            *(read, SIMULATED, f"route {SPEC} --from {{0}}", "failures {0} --only 0-2"),
            *(f"lower {{0}} --to {target}" for target in targets_for(Routes)),
        ),
        "schedule": (
            *(read, SIMULATED, f"run {{0}} {QUICKLY}", f"schedule {SPEC} --from {{0}}"),
            *(f"lower {{0}} --to {_to(target)}" for target in targets_for(Schedule)),
        ),
    }
    found = []
    for verb, readers in onward.items():
        for suffix in ("json", "npz"):
            name = f"{verb.replace(' ', '')}.{suffix}"
            verb_, *options = verb.split(" ")
            words = " ".join([verb_, SPEC, *options, "-o", name])
            found.append(Sample(name, (words,), tuple(each.format(name) for each in readers)))
    return found


def _lowered() -> list[Sample]:
    made = [(f"schedule {SPEC} -o s.json", "s.json", targets_for(Schedule))]
    made += [(f"route {SPEC} -o s.json", "s.json", targets_for(Routes))]
    return [
        Sample(
            f"lowered{target.suffix}",
            (words, f"lower {file} --to {kind} -o lowered{target.suffix}"),
            (f"verify lowered{target.suffix}", f"verify lowered{target.suffix} --topology {SPEC}")
            + ((f"run lowered{target.suffix} {QUICKLY}",) if target.takes is Schedule else ()),
        )
        for words, file, targets in made
        for kind, target in targets.items()
        if target.read is not None
    ]


PLACED = Sample(
    "placed.batch",
    (
        f"route {SPEC} -o s.json",
        "lower s.json --to srv6:addresses=places.txt -o placed.batch",
    ),
    (f"verify placed.batch --topology {SPEC}",),
)
"""Commands with the addresses and devices of a table."""

SAMPLES = [*_topologies(), *_artefacts(), *_lowered(), PLACED]

DEMANDS = {
    "demand.csv": b"0,1,2,0.5\n1,0,1,1\n0,0,0,3\n1,1,1,0\n",
    "demand.txt": b"0 1 2 0.5\n1 0 1 1\n0 0 0 3\n1 1 1 0\n",
    "demand.json": b'{"format":"alltoall.demand/1","entries":[[0,1,2.0],[2,3,1.5],[3,0,1]]}',
    "matrix.json": b"[[0,1,1,1],[1,0,1,1],[1,1,0,1],[1,1,1,0]]",
    "uniform.json": b'{"format":"alltoall.demand/1","terminals":4,"uniform":true}',
    "named.csv": b",0,1,3\n0,0,2,0.5\n2,1,0,1\n",
    "names.json": b'{"format":"alltoall.demand/1","names":["0","3"],"matrix":[[0,1],[2,0]]}',
    "entries.json": b'{"format":"alltoall.demand/1","entries":[["0","1",2.0],[2,3,1.5]]}',
}
"""Demands on `SPEC`, in every form."""

EDGES = {
    "named.edges": b"leaf-1 !spine 2\nleaf-2 spine\n0 spine  # a name too\n",
    "units.edges": b"a b 100Gbps\nb c 400Gbps\nc a 12.5GB/s\n",
    "golf.edges": b"0,0 0,1\n0,1 1,1\n1,1 1,0\n1,0 0,0\n",
    "both.edges": b"a b 100G\nb a 100G\nb c 100G\nc a 100 Gbit/s\n",
    "ports.edges": b"a:e0 <-> b:e1 100G\nb:e1 <-> a:e0 100G\nb:e0 -- c:e1 100GbE\nc:e0 - a:e1 4G\n",
    "arrows.edges": b"# Directed graph\n0 -> 1\n1 -> 2 3\n2 -> 0\n",
    "header.csv": b'"source","target","speed_gbps"\n"a","b",100\nb,c,400\nc,a,100\n',
    "commas.edges": b"# terminals: 0, 2\n0,1\n1, 2, 3.5\n",
    "networkx.edges": b"0 1 {}\n1 2 {'capacity': 2, 'a': [1, 'x']}\n2 0 {'capacity': 0.5}\n",
    "listed.edges": b'# names: ["rack 1", "b", "0"]\n# terminals: 0 2\n0 1 2\n1 2\n',
}
"""The forms of edge lists that are read besides the one that is written."""

LLDP = """{"lldp": {"interface": {"eth0": {"via": "LLDP", "chassis": {"%s": {"id": {"value": "x"},
"capability": [{"type": "Router", "enabled": true}]}}, "port": {"id": {"value": "y"},
"auto-negotiation": {"current": "100GbaseCR4 - copper"}}}}}}"""
"""The one neighbour of a host."""

CLUSTER = b"""outside = "ring"
over = "hosts"
[[hosts]]
count = 2
gpus = 2
inside = "nvswitch:100"
nics = 1
rate = 40.5
[[hosts]]
kind = "mi300x"
attach = "gpu"
"""
"""Hosts of two kinds."""

TABLES = {
    **{
        f"rack/{host}.json": ((LLDP % other).encode(), ("topology rack", "solve rack"))
        for host, other in ("ab", "ba")
    },
    "cluster.toml": (CLUSTER, ("topology cluster.toml", "solve cluster.toml")),
    "jobs.toml": (
        b'[[job]]\nname = "a"\ngroup = [0, "1", 2]\nweight = 2.5\n[[job]]\ngroups = [[2, 3]]\n',
        (f"solve {SPEC} --jobs jobs.toml", f"schedule {SPEC} --jobs jobs.toml --chunks 1"),
    ),
    "jobs.json": (
        b'{"jobs": [{"group": ["0", 3], "start": 0.5}, {"demand": [[0,1],[1,0]], "weight": 3}]}',
        (f"solve {SPEC} --jobs jobs.json",),
    ),
    "load.csv": (
        b"tail,head,rate\n0,2,0.5\n2 0 0.25  # others\n",
        (
            *(f"{verb} {SPEC} --background load.csv" for verb in ("solve", "route")),
            "simulate route.json --link-bandwidth 1Gbps --background load.csv@0.5",
        ),
    ),
    "starts.txt": (
        b"0 0\n1 0.5\n2 1e-3\n3,2\n",
        ("simulate route.json --link-bandwidth 1Gbps --start starts.txt",),
    ),
    "measured.json": (
        b'{"schedule":"s.json","on":"mpi","runtime":"MPICH","rows":[{"bytes":1024,"ours":'
        b'{"mean":1e-3,"throughput":3e6},"native":null},{"bytes":2048,"throughput":4e6,'
        b'"bound_throughput":5e6,"native_throughput":null}]}',
        ("report measured.json",),
    ),
    "groups.txt": (b"0,1\n2 3\n", (f"solve {SPEC} --group-file groups.txt",)),
    "ranks.txt": (
        b"0 3\n1,2\n2, 0  # the first\n3 1\n",
        (
            *(
                f"lower schedule.json --to {_to(target)} --rank-map ranks.txt"
                for target in targets_for(Schedule)
            ),
            "lower route.json --to ompi --rank-map ranks.txt",
        ),
    ),
    "addresses.json": (
        b'{"0": "10.0.0.1", "1": "10.0.0.9", "2": "192.168.1.2", "3": "10.1.0.3"}',
        ("lower route.json --to ompi:addresses=addresses.json",),
    ),
    "places.txt": (
        b"0 fd00:1:a::/48 eth0 eth1\n1 fd00:1:b a.1 b-2\n2 fd00:0:0::/48 x y\n3 fd00:1:d p1 p0\n",
        ("lower route.json --to srv6:addresses=places.txt",),
    ),
}
"""Tables that say something of terminals, and who reads them."""


def _lowered_nouns() -> dict[str, Noun]:
    """Return what files of runtimes say, which only the library saves."""
    schedule = alltoall.schedule(SPEC)
    read = {
        kind: parse_lowered(TARGETS[kind].emit(schedule, Options()), kind)[1]
        for kind in ("msccl", "oneccl", "mscclpp")
    }
    return {f"{kind}.json": noun for kind, noun in read.items() if isinstance(noun, Noun)}


@cache
def valid_files() -> dict[str, tuple[bytes, tuple[str, ...]]]:
    """Return the content of every valid file, and the commands that read it."""
    found = {
        name: (data, tuple(f"{verb} {SPEC} --demand {name}" for verb in ("solve", "route")))
        for name, data in DEMANDS.items()
    }
    reading = (
        *("topology {0}", "solve {0}", "topology {0} --undirected", "verify {0}"),
        *("topology {0} --directed", "solve {0} --parallel"),
    )
    for name, data in EDGES.items():
        found[name] = (data, tuple(each.format(name) for each in reading))
    found |= TABLES
    for name, noun in _lowered_nouns().items():
        readers = (f"verify {name}", f"verify {name} --topology {SPEC}")
        found[name] = (file_bytes(None, noun), readers)
    for sample in SAMPLES:
        with directory_of(Case([], {name: data for name, (data, _) in TABLES.items()})):
            for words in sample.make:
                outcome = call(words.split(" "))
                if outcome.code:
                    raise FuzzFailureError("wrong", f"{words}: {outcome.err}")
            for path in _files(Path(sample.name)):
                found[str(path)] = (path.read_bytes(), sample.readers)
    return found


def _files(path: Path) -> list[Path]:
    """Return a file, or those of a folder."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def make_damaged(rng: Random) -> Case:
    """Damage a file of some format, and give it to one of its readers."""
    name = rng.choice(sorted(valid_files()))
    data, readers = valid_files()[name]
    words = rng.choice(readers).split(" ")
    extra = ["--json"] if rng.random() < 0.5 else []
    others = {
        path: content
        for path, (content, _) in valid_files().items()
        if path.partition("/")[0] in words
    }
    return Case([[*words, *extra]], others | {name: mutate(rng, name, data)})


def check_damaged(case: Case) -> None:
    """Run the command; what it accepts has to be possible."""
    with directory_of(case):
        for outcome in run_case(case):
            words = outcome.words
            if outcome.code == 0 and words[0] == "verify" and "--json" in words:
                _require_possible(outcome, Path(words[1]))


def _require_possible(outcome: Outcome, path: Path) -> None:
    """Hold the time and the bound of a verified artefact against the optimum from outside."""
    try:
        problem = read_artefact(path).problem
    except AlltoallError:  # a topology, or a lowered file, which states no problem
        return
    found = outcome.json
    optimum = optimum_of(problem)
    if optimum is not None:
        require_between(found["bound"], optimum, found["time"], outcome.words)


def optimum_of(problem: Problem) -> float | None:
    """Return the optimum from outside, of a problem that is small enough to ask for it."""
    topology = problem.topology
    nodes = topology.terminals.tolist()
    rows = problem.demand.rows(problem.sources)
    demand = {
        (nodes[source], nodes[end]): amount
        for source, row in zip(problem.sources.tolist(), rows.tolist(), strict=True)
        for end, amount in enumerate(row)
        if amount > 0 and source != end
    }
    if len(demand) * topology.links > MOST_PAIRS * MOST_PAIRS:
        return None
    columns = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    return best_time(topology.nodes, list(zip(*columns, strict=True)), demand)


def require_between(bound: float, optimum: float, time: float, words: list[str]) -> None:
    """Refuse a bound above the optimum, and an answer that is faster than it."""
    if not bound <= optimum * (1 + TOLERANCE) or not optimum <= time * (1 + TOLERANCE):
        raise FuzzFailureError(
            "wrong", f"{shown(words)}: bound {bound}, time {time}, but the optimum is {optimum}"
        )
