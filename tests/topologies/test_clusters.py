"""Clusters: hosts with a fabric inside, NICs, and a fabric outside that joins them."""

from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.errors import AlltoallError, FormatError, TopologyError, UsageError
from alltoall.flows import solve
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering import targets_for
from alltoall.runtime.in_process import Alltoall
from alltoall.schedules.search import least_steps
from alltoall.topologies.clusters import compose
from alltoall.topologies.formats import read_topology, write_topology
from alltoall.topologies.hosts import HOSTS, Host
from alltoall.topologies.spec import build, sized
from command_line import Run
from lowered_files import check_lowered

PRESETS = {
    f"{kind}:hosts=2,outside={outside}": 64 / 3200
    for kind in ("dgxh100", "mi300x")
    for outside in ("rail", "torus:2", "genkautz:d=1")
}
"""Two hosts, and the time in which the NICs of one have sent all that is for the other."""

LARGER = {
    "dgxh100:hosts=4,outside=rail": 3 * 64 / 3200,
    # A ring of four hosts takes 2 shards over one link, here 64 of them over 4 cables of 400.
    "dgxh100:hosts=4,outside=torus:2x2": 2 * 64 / 1600,
    "dgxh100:hosts=4,outside=torus:2x2,over=rails": 2 * 64 / 1600,
    # With two ports every host of three reaches both others at once, over 4 cables each.
    "mi300x:hosts=3,outside=genkautz:d=2": 64 / 1600,
}
"""More hosts, and the times in which their NICs are full throughout."""


def links_of(topology: Topology, tail: str, head: str) -> list[float]:
    """Return the capacities of the links from one node to another, by their names."""
    ends = (topology.tail == topology.node_of(tail)) & (topology.head == topology.node_of(head))
    return list(topology.capacity[ends].tolist())


def check_run(spec: str, time: float, *targets: str) -> None:
    """Schedule a cluster within a known time, lower it, and move random bytes by it."""
    topology = build(spec)
    found = alltoall.schedule(topology)
    assert found.bound == pytest.approx(time)
    assert found.time == pytest.approx(time)
    for name in targets:
        check_lowered(name, found)
    ranks = len(topology.terminals)
    send = np.random.default_rng(0).integers(0, 256, (ranks, ranks * 3), dtype=np.uint8)
    recv = np.zeros_like(send)
    Alltoall(found)(send, recv)
    shape = (ranks, ranks, 3)
    assert np.array_equal(recv.reshape(shape), send.reshape(shape).swapaxes(0, 1))


@pytest.mark.parametrize(("spec", "time"), PRESETS.items())
def test_presets_from_the_spec_to_the_bytes(spec: str, time: float) -> None:
    """The certified time is the known one, a schedule reaches it, and every target runs it."""
    check_run(spec, time, *targets_for(Schedule))


@pytest.mark.parametrize(("spec", "time"), LARGER.items())
def test_presets_of_more_hosts(spec: str, time: float) -> None:
    """Where hosts relay for each other too."""
    check_run(spec, time, "messages")


def test_the_hierarchy_is_in_the_names() -> None:
    """GPUs come first, host by host, and are the terminals; they can be grouped by their names."""
    topology = build("cluster:hosts=3,gpus=2,inside=nvswitch:100,nics=2x40,outside=ring:3")
    assert topology.terminals.tolist() == list(range(6))
    assert topology.names == (
        *("host0:gpu0", "host0:gpu1", "host1:gpu0", "host1:gpu1", "host2:gpu0", "host2:gpu1"),
        *("host0:switch", "host1:switch", "host2:switch"),
        *("host0:nic0", "host0:nic1", "host1:nic0", "host1:nic1", "host2:nic0", "host2:nic1"),
    )
    assert alltoall.solve(topology, groups=[["host0:gpu1", "host2:gpu0"]]).time > 0


def test_cables_are_dealt_out_to_nics() -> None:
    """As many cables as NICs, more NICs than cables, and fewer."""
    ring = "cluster:hosts=3,gpus=2,inside=complete,nics={},outside=ring"
    one = build(ring.format("2x40"))
    assert links_of(one, "host0:nic0", "host1:nic0") == [40.0]
    assert links_of(one, "host0:nic1", "host2:nic0") == [40.0]
    more = build(ring.format("5x40"))
    assert more.notes[0] == "3 NICs of 15 without a cable out"
    assert more.notes[1:] == one.notes  # that nobody stated the rate of the links inside
    assert sum(links_of(more, "host0:nic0", f"host1:nic{nic}") == [40.0] for nic in range(5)) == 1
    fewer = build(ring.format("1x40"))
    assert links_of(fewer, "host0:nic0", "host1:nic0/in") == [20.0]
    assert links_of(fewer, "host0:nic0", "host2:nic0/in") == [20.0]


def test_nics_pass_nothing_on() -> None:
    """What comes in reaches a GPU before it leaves, unless NICs forward by themselves."""
    around = "(circulant:jumps=1,directed=true)"
    spec = f"cluster:hosts=4,gpus=2,inside=ring,nics=1x10,outside={around}"
    found = build(spec)
    assert links_of(found, "host0:nic0", "host1:nic0/in") == [10.0]
    assert not links_of(found, "host0:nic0/in", "host0:nic0")
    assert links_of(found, "host0:nic0/in", "host0:gpu0") == [10.0]
    forwarding = build(f"{spec},forward=nic")
    assert links_of(forwarding, "host0:nic0/in", "host0:nic0") == [10.0]
    assert least_steps(Problem.all_to_all(found)) == 3
    assert least_steps(Problem.all_to_all(forwarding)) == 1


def test_gpus_that_share_a_nic_do_not_talk_through_it() -> None:
    """Two of four GPUs share each NIC, and the inside stays what it is."""
    found = build("cluster:hosts=2,gpus=4,inside=ring,nics=2x40,outside=ring")
    assert links_of(found, "host0:gpu1", "host0:nic0") == [40.0]
    assert links_of(found, "host0:nic0/in", "host0:gpu0") == [40.0]
    assert not links_of(found, "host0:gpu2", "host0:nic0")
    assert not links_of(found, "host0:nic0", "host0:gpu0")
    assert links_of(found, "host0:nic0", "host1:nic0/in") == [40.0]


def test_nics_on_a_switch_inside() -> None:
    """They are then linked to it, in turn where there are several."""
    found = build("cluster:hosts=2,gpus=16,inside=dgx2,nics=2x4,outside=rail,attach=switch")
    assert links_of(found, "host1:switch1", "host1:nic1") == [4.0]
    assert links_of(found, "host1:nic0", "rail0:switch") == [4.0]
    assert not links_of(found, "host1:gpu0", "host1:nic0")


def test_outsides_over_nics() -> None:
    """One switch for all, or any topology with switches of its own."""
    flat = build("cluster:hosts=2,gpus=2,nics=2x40,outside=switch,over=nics")
    assert flat.names is not None
    assert flat.names[-1] == "outside:switch"
    assert links_of(flat, "host1:nic1", "outside:switch") == [40.0]
    tree = build("cluster:hosts=4,gpus=4,nics=4x40,outside=fattree:k=4,over=nics")
    assert tree.nodes == 16 + 4 + 16 + 20
    assert set(tree.capacity.tolist()) == {40.0, 3600.0}


def test_hosts_of_several_kinds() -> None:
    """A cable is as fast as its slower end."""
    slow = Host(gpus=2, inside="complete", nics=4, rate=100.0, link=50.0)
    found = compose("mixed", [HOSTS["mi300x"], slow], "ring:2")
    assert len(found.terminals) == 10
    assert set(found.capacity.tolist()) == {512.0, 400.0, 100.0, 50.0}
    assert sum(links_of(found, f"host0:nic{nic}", f"host1:nic{nic}")[0] for nic in range(4)) == 400
    assert solve(Problem.all_to_all(found)).time == pytest.approx(16 / 400)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("cluster:hosts=0", "there are 0 hosts; expected 1 or more"),
        ("mi300x:hosts=1,outside=ring:4", "1 host, which the outside ring:4 cannot join"),
        ("cluster:hosts=2,inside=dgx1,link=25", r"link is 25.0 Gbit/s, .* dgx1 is 200.0 Gbit/s"),
        ("cluster:hosts=2,gpus=1", "a host of 1 GPUs and 8 NICs; expected 2 to 1,000,000 GPUs"),
        ("cluster:hosts=2,gpus=2,nics=1001x1", "2 GPUs and 1001 NICs; expected .* 1 to 1,000 NICs"),
        ("cluster:hosts=400000,gpus=2", "would have 4,400,000 nodes; at most 1,000,000"),
        ("cluster:hosts=999999999,gpus=999999999", "at most 1,000,000 nodes"),
        ("cluster:hosts=2,nics=8", "nics is '8'; expected a number and a rate, such as 8x400"),
        ("cluster:hosts=2,nics=0x400", "8 GPUs and 0 NICs"),
        ("cluster:hosts=2,nics=8x0", "the rate of the NICs is 0; expected a positive"),
        ("cluster:hosts=2,link=nan", "the link is nan; expected a positive"),
        ("cluster:hosts=2,inside=torus:3x3", "the inside torus:3x3 has 9 terminals; expected 8"),
        (
            "cluster:hosts=2,outside=torus:3x3",
            "has 9 terminals; expected 2, one for each of the ho",
        ),
        ("cluster:hosts=2,over=racks", "over is 'racks'; expected hosts or rails or nics"),
        ("cluster:hosts=2,forward=gpu", "forward is 'gpu'; expected host or nic"),
        ("cluster:hosts=2,attach=cpu", "attach is 'cpu'; expected gpu or switch"),
        ("cluster:hosts=2,inside=ring,attach=switch", "ring:8 has none; expected attach=gpu"),
        ("cluster:hosts=2,inside=rign", "unknown topology family 'rign'; did you mean 'ring'"),
        ("cluster:hosts=2,outside=(ring", "unknown topology family '.ring'"),
        ("dgxh100:hosts=2,outside=jellyfish:d=4,seed=1", "unknown parameter 'seed'"),
    ],
)
def test_what_is_no_cluster_is_refused(spec: str, problem: str) -> None:
    """With what was found and what is expected."""
    with pytest.raises((TopologyError, UsageError), match=problem):
        build(spec)


def test_sizes_are_filled_in() -> None:
    """Where a family has a number of nodes, and the SPEC gives none."""
    assert sized("genkautz:d=4", 8) == "genkautz:d=4,n=8"
    assert sized("nvswitch:3600", 4) == "nvswitch:3600,n=4"
    assert sized("ring", 4) == "ring:n=4"
    for spec in ("ring:5", "genkautz:5,2", "genkautz:n=5,d=2", "torus:2x2", "none:3"):
        assert sized(spec, 4) == spec


CLUSTER = """
outside = "torus:2x2"
[[hosts]]
count = 2
kind = "dgxh100"
[[hosts]]
count = 2
gpus = 4
inside = "ring"
link = 200
nics = 2
rate = 100
"""


def test_a_cluster_in_toml(tmp_path: Path, run: Run) -> None:
    """Hosts of several kinds; it is read by every verb, and written as something else."""
    path = tmp_path / "lab.toml"
    path.write_text(CLUSTER)
    found = read_topology(path)
    assert (found.name, len(found.terminals), found.nodes) == ("lab", 24, 50)
    assert found.node_of("host3:gpu3") == 23
    assert run("solve", path, "--json").json["time"] == pytest.approx(2 * 4 * 16 / 200)
    path.write_text('name = "two"\n[[hosts]]\ncount = 2\nkind = "mi300x"\nnics = 4\n')
    assert (read_topology(path).name, read_topology(path).nodes) == ("two", 16 + 8 + 8 + 4)
    with pytest.raises(UsageError, match="cluster is only read; write one of json"):
        write_topology(found, tmp_path / "out.toml", "cluster")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("outside =", "outside"), "not TOML"),
        (('"torus:2x2"', "3"), "outside is 3; expected a string"),
        (("outside", "outsides"), 'unknown key "outsides"; expected one of forward, hosts, name'),
        (("link", "links"), r'hosts\[1\]: unknown key "links"; expected one of attach'),
        (("[[hosts]]", "[[host]]"), 'unknown key "host"'),
        (('"dgxh100"', '"dgx"'), 'kind is "dgx"; expected dgxh100 or mi300x'),
        (("gpus = 4\n", ""), "gpus missing; expected gpus, inside, nics, rate, or a kind"),
        (("rate = 100", 'rate = "100"'), "rate is '100', a str; expected a number"),
        (("gpus = 4", "gpus = true"), "gpus is True, a bool; expected a whole number"),
        (("rate = 100", "rate = inf"), "the rate of the NICs is inf"),
        (("count = 2", "count = 9999999"), "count is 9999999; expected an integer 0..1000000"),
        (("count = 2", "count = 1000000"), "more than 1,000,000 hosts"),
        (("torus:2x2", "ring:5"), "ring:5 has 5 terminals; expected 4"),
    ],
)
def test_what_is_no_cluster_file_is_refused(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    """With the file and the table where it is wrong."""
    path = tmp_path / "lab.toml"
    path.write_text(CLUSTER.replace(*change))
    with pytest.raises((FormatError, TopologyError), match=problem) as caught:
        read_topology(path)
    assert str(path) in str(caught.value)
    path.write_text("hosts = [1]")
    with pytest.raises(AlltoallError, match="is 1; expected a table"):
        read_topology(path)
