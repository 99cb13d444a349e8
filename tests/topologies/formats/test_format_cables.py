"""Edge lists as people have them: cables from one end or both, ports, arrows, header rows."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import FormatError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import edgelist, read_topology
from command_line import Run

Edges = list[tuple[int, int]]


def read(text: str, **asked: bool) -> Topology:
    """Read an edge list from a made-up file."""
    return edgelist.read(text, "net.edges", "net", **asked)  # type: ignore[arg-type]


def links(topology: Topology) -> list[tuple[int, int, float]]:
    """Return the links in an order of their own."""
    ends = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity, strict=True)
    return sorted((u, v, float(width)) for u, v, width in ends)


def text_of(lines: list[str], seed: int) -> str:
    """Return the lines in some order."""
    random.Random(seed).shuffle(lines)
    return "\n".join(lines) + "\n"


@st.composite
def networks(draw: st.DrawFn) -> Edges:
    """Draw a ring and chords between distinct pairs, each in some order."""
    nodes = draw(st.integers(3, 8))
    pairs = [(u, v) for u in range(nodes) for v in range(u)]
    chords = draw(st.lists(st.sampled_from(pairs), max_size=8))
    ring = [(u, (u + 1) % nodes) for u in range(nodes)]
    found = {tuple(sorted(pair)) for pair in (*ring, *chords)}
    return [pair if draw(st.booleans()) else pair[::-1] for pair in sorted(found)]  # type: ignore[misc]


@given(edges=networks(), seed=st.integers(0, 9), data=st.data())
def test_a_cable_from_both_ends_never_counts_twice(
    edges: Edges, seed: int, data: st.DataObject
) -> None:
    """Lines that name pairs in both orders are counted and refused until a word settles them."""
    nodes = 1 + max(map(max, edges))
    once = Topology.from_edges("net", nodes, edges)
    assert links(read(text_of([f"{u} {v}" for u, v in edges], seed))) == links(once)
    again = data.draw(st.lists(st.sampled_from(edges), min_size=1, unique=True))
    lines = [f"{u} {v}" for u, v in edges] + [f"{v} {u}" for u, v in again]
    expected = f"lines name {len(again)} of {len(edges)} pairs in both orders"
    with pytest.raises(FormatError, match=f"{expected}.*--directed if .*--parallel if these are"):
        read(text_of(lines, seed))
    for asked in ({"parallel": True}, {}):
        twice = read(("" if asked else "# Parallel\n") + text_of(lines, seed), **asked)
        assert links(twice) == links(Topology.from_edges("net", nodes, [*edges, *again]))
    both = [f"{u} {v}" for u, v in edges] + [f"{v} {u}" for u, v in edges]
    assert links(read(text_of(both, seed), directed=True)) == links(once)


@given(edges=networks(), seed=st.integers(0, 9), extra=st.integers(0, 8))
def test_ports_tell_one_cable_from_two(edges: Edges, seed: int, extra: int) -> None:
    """A cable from both ends counts once, and parallel cables in either order count twice."""
    cables = [*edges, *(pair[::-1] for pair in edges[:extra])]
    ports = [(f"n{u}:eth{at}", f"n{v}:p{at}") for at, (u, v) in enumerate(cables)]
    lines = [f"{a} <-> {b} 100G" for a, b in ports] + [f"{b} <-> {a} 100G" for a, b in ports]
    found = read(text_of(lines, seed))
    node = {name: int(name[1:]) for name in found.names or ()}
    named = [(node[found.names[u]], node[found.names[v]], c) for u, v, c in links(found)]  # type: ignore[index]
    nodes = 1 + max(map(max, edges))
    assert sorted(named) == links(Topology.from_edges("net", nodes, cables, parallel=True))
    assert f"{len(cables)} of {2 * len(cables)} lines name a cable by its ports" in found.notes[0]


FOUR = Topology.from_edges("net", 3, [(0, 1, 1), (1, 2, 1), (2, 0, 4)])
"""A triangle, one side of which is four times as wide."""


@pytest.mark.parametrize(
    "text",
    [
        "a b 100G\nb c 100GbE\nc a 400 Gbit/s\n",
        "a\tb\t100G\nb\tc\t100 Gbps\nc\ta\t400G\n",
        "a,b,100G\nb,c,100 Gbps\nc,a,400G\n",
        '"a","b","100G"\n"b","c","100G"\n"c","a","400G"\n',
        "source,target,capacity\na,b,100G\nb,c,100G\nc,a,400G\n",
        "Node A, Node B, Speed\na, b, 100G\nb, c, 100G\nc, a, 400G\n",
        "src dst bandwidth\na b 100G\nb c 100G\nc a 400G\n",
        "from,to,speed_gbps\na,b,100\nb,c,100\nc,a,400\n",
        "from\tto\tbandwidth [GB/s]\na\tb\t12.5\nb\tc\t12.5\nc\ta\t50\n",
        "# from the rack, to the row\nfrom,to\na,b\nb,c\nc,a\nc,a\nc,a\nc,a\n",
        "a -- b 100G\nb -- c 100G  # short\n\n# wide\nc - a 400G\n",
        "a <-> b, 100G\nb<->c 100G\nc <-> a 400G\n",
        "a:eth0 <-> b:eth1 100G\nb:eth0 <-> c:eth1 100G\nc:eth0 -- a:eth1 400G\n",
        "a:mlx5_0:1 b:mlx5_0:1\nb:mlx5_1:1 c:mlx5_0:1\nc:mlx5_1:1 a:mlx5_1:1 4\n",
    ],
)
def test_what_people_have(text: str) -> None:
    """The same network, however its lines are written."""
    found = read(text)
    assert found.names == ("a", "b", "c")
    summed: dict[tuple[int, int], float] = {}
    for u, v, width in links(found):
        summed[u, v] = summed.get((u, v), 0.0) + width / found.capacity.min()
    assert summed == {(u, v): c for u, v, c in links(FOUR)}
    if any(unit in text for unit in ("G", "gbps")):
        assert found.bytes_per_second is not None
        assert found.bytes_per_second * found.capacity.min() == pytest.approx(12.5e9)


def test_arrows_one_way_are_directed() -> None:
    """As many links as lines, and no question of both orders."""
    assert links(read("0 -> 1\n1 -> 0\n1 -> 2 3\n2 -> 0\n")) == [
        (0, 1, 1.0), (1, 0, 1.0), (1, 2, 3.0), (2, 0, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "r0:h0 r0:h1\nr0:h1 r1:h0\nr1:h0 r0:h0\n",
        "0:0 0:1\n0:1 1:1\n1:1 1:0\n1:0 0:0\n",
        "a:x !s\nb:x s\nc:x s\n",
        '# names: ["a:x", "a:y", "s"]\na:x s\na:y s\n',
    ],
)
def test_names_with_colons_stay_names(text: str) -> None:
    """What is joined to several others is no port, nor what a line of names says."""
    assert all(name.count(":") or name == "s" for name in read(text).names or ("",))


@pytest.mark.parametrize("pair", ["node1,node2", "source,target"])
def test_nodes_that_are_called_like_columns(pair: str) -> None:
    """A first line whose words come again is an edge."""
    one, other = pair.split(",")
    assert read(f"{pair}\n{other},x\nx,{one}\n").links == 6
    assert read(f"{one} {other}\n").names == (one, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Directed graph\n0 1\n1 2\n", r"line 1: '# Directed graph' looks like `# directed`"),
        ("0 1\n#directed: yes\n", "line 2: .* --directed if a line is one direction, --parallel"),
        ("0 -> 1\n1 2\n", "1 of 2 lines have an arrow `->`; expected one in every line"),
        ("# parallel\n# directed\n0 1\n", "one direction .* and cables"),
        ("a:x s\na:y s\n", "a:x and a:y are two ports of a, or two nodes; give every line ports"),
        ("a:x b:x 1\nb:x a:x 2\n", "the cable b:x a:x is listed with two capacities"),
        ("a:x a:y\n", "a cable a:x a:y from a node to itself"),
        (":x b:y\n", "a port ':x' of no node"),
        ("a,b,weight\nb,c,3\n", "the column 'weight' and no capacity; .*-attribute weight"),
        ("a,b,speed (GBPS)\nb,c,3\n", "the column 'speed .GBPS.'; expected a unit such as Gbps"),
        ("a,b,cost\nb,c,3\n", "line 1: 'cost' is not a capacity"),
        ("a,p1,b,p2,speed\n", "is not an edge"),
        ("x y gbps\na b 100G\n", "lines have units, such as '100G', and a comment or the header"),
    ],
)
def test_what_is_not_clear_is_refused(text: str, message: str) -> None:
    """With the words that settle it."""
    with pytest.raises(FormatError, match=message):
        read(text)


@pytest.mark.parametrize("asked", [{"directed": True}, {"parallel": True}])
def test_a_comment_like_the_directive_is_settled_by_a_word(asked: dict[str, bool]) -> None:
    """Of the caller, or of the file itself."""
    text = "# Directed graph (each pair once)\n0 1\n1 2\n2 0\n"
    assert read(text, **asked).links == (3 if "directed" in asked else 6)
    assert read(f"{text}# {next(iter(asked))}\n") == read(text, **asked)


def test_long_lines_take_no_long_time() -> None:
    """Blanks, arrows and colons without end are read once."""
    for filling in (" ", "- ", ":", "<->", "_", "0 "):
        with pytest.raises(FormatError):
            read(f"a{filling * 200_000}b c d e f\n")


def test_a_column_of_weights_is_named(tmp_path: Path) -> None:
    """As an attribute is."""
    path = tmp_path / "net.csv"
    path.write_text("a,b,weight\nb,c,3\n")
    assert read_topology(path, capacity="weight").capacity.tolist() == [3.0, 3.0]


def test_the_throughput_of_cables_from_both_ends(run: Run, tmp_path: Path) -> None:
    """The verbs refuse with exit code 3; the word that settles it gives the true throughput."""
    one, both = tmp_path / "one.edges", tmp_path / "both.edges"
    cables = [(f"gpu-{u}", f"gpu-{(u + 1) % 4}") for u in range(4)]
    one.write_text("".join(f"{a} {b} 100G\n" for a, b in cables))
    both.write_text("".join(f"{a} {b} 100G\n{b} {a} 100G\n" for a, b in cables))
    true = run("solve", one, "--json").json["throughput_GBps"]
    refused = run("solve", both)
    assert refused.code == 3
    assert "lines name 4 of 4 pairs in both orders, such as gpu-0 gpu-1" in refused.err
    assert run("solve", both, "--directed", "--json").json["throughput_GBps"] == pytest.approx(true)
    parallel = run("solve", both, "--parallel", "--json").json
    assert parallel["throughput_GBps"] == pytest.approx(2 * true)
    assert run("solve", both, "--directed", "--parallel").code == 2
    assert "--parallel with 'ring:4', which is built" in run("solve", "ring:4", "--parallel").err
