"""Lowered files with names, real addresses and ranks in another order than that of the nodes."""

import json
import re
from pathlib import Path

import pytest

from alltoall.lowering.tables.srv6 import node_batches
from command_line import Run

FABRIC = "a b\nb c\nc d\nd !e\ne f\nf a\na d 2\n"
RANKS = {"a": 3, "b": 0, "c": 4, "d": 1, "f": 2}
ADDRESSES = {name: f"192.168.7.{10 + rank}" for name, rank in RANKS.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, which is the current one, with a fabric and its tables."""
    monkeypatch.chdir(tmp_path)
    Path("fabric.edges").write_text(FABRIC)
    Path("ranks").write_text("# node rank\n" + "\n".join(f"{a} {b}" for a, b in RANKS.items()))
    Path("addresses.json").write_text(json.dumps(ADDRESSES))
    return tmp_path


def lowered(run: Run, verb: str, *words: object) -> str:
    """Run a verb on the fabric and lower what it saves; return the file's text."""
    assert run(verb, "fabric.edges", "-o", f"{verb}.json").code == 0
    outcome = run("lower", f"{verb}.json", *words, "-o", "lowered", "--json")
    assert outcome.code == 0, outcome.err
    return Path("lowered").read_text() if Path("lowered").is_file() else ""


@pytest.mark.parametrize("target", ["msccl", "mscclpp", "oneccl", "messages"])
def test_programs_by_rank(run: Run, folder: Path, target: str) -> None:
    """The file keeps to the links of the fabric, if one knows the ranks, and not without."""
    lowered(run, "schedule", "--to", target, "--rank-map", "ranks")
    words = ("verify", "lowered", "--topology", "fabric.edges")
    found = run(*words, "--rank-map", "ranks", "--json")
    assert found.code == 0, found.err
    schedule = run("verify", "schedule.json", "--json").json
    assert found.json["time"] == pytest.approx(schedule["time"])
    astray = run(*words)
    assert astray.code == 4
    assert "leads from node" in astray.err


def test_uneven_shards_by_rank(run: Run, folder: Path) -> None:
    """The chunks of each pair go with its ranks."""
    Path("demand.csv").write_text(",a,b,f\na,0,3,1\nc,1,0,2\n")
    words = ("schedule", "fabric.edges", "--demand", "demand.csv", "-o", "uneven.json", "--json")
    schedule = run(*words).json
    for ranks in ((), ("--rank-map", "ranks")):
        outcome = run("lower", "uneven.json", "--to", "messages", *ranks, "-o", "lowered", "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["time"] == pytest.approx(schedule["time"])


def test_oneccl_calls_ranks_by_name(run: Run, folder: Path) -> None:
    """Names go with the ranks that nodes have."""
    text = lowered(run, "schedule", "--to", "oneccl", "--rank-map", "ranks")
    assert re.findall(r'<rank id="(\d)".* name="(\w)">', text) == [
        (str(rank), name) for name, rank in sorted(RANKS.items(), key=lambda item: item[1])
    ]


def test_ompi_by_rank_and_address(run: Run, folder: Path) -> None:
    """Ranks have the node, address and name that the tables say; routes keep the fabric's nodes."""
    words = ("--rank-map", "ranks", "--to", "ompi:addresses=addresses.json")
    text = lowered(run, "route", *words)
    found = re.findall(r'<rank id="(\d)" node="(\d)" address="([0-9.]+)" name="(\w)">', text)
    nodes = {name: str(node) for node, name in enumerate("abcdef")}
    assert found == [
        (str(rank), nodes[name], ADDRESSES[name], name)
        for name, rank in sorted(RANKS.items(), key=lambda item: item[1])
    ]
    outcome = run("verify", "lowered", "--topology", "fabric.edges", "--json")
    assert outcome.code == 0, outcome.err
    route = run("verify", "route.json", "--json").json
    assert outcome.json["time"] == pytest.approx(route["time"])


def test_srv6_and_tables_have_names(run: Run, folder: Path) -> None:
    """Sections of nodes say whose they are; the table has them in its topology."""
    text = lowered(run, "route", "--to", "srv6")
    assert "\n# node 4 e\n" in text
    assert sorted(node_batches(text)) == list(range(6))
    assert run("verify", "lowered", "--topology", "fabric.edges").code == 0
    table = json.loads(lowered(run, "route", "--to", "routes"))
    assert table["topology"]["names"] == list("abcdef")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("a 0\n", "nothing for node b (4 such nodes)"),
        ("a 0\na 1\n", "line 2: node a is there twice"),
        ("e 0\n", "node e is not a terminal"),
        ("a 0\nz 1\n", "line 2: fabric: there is no node 'z'"),
        ("a\n", 'line 1: "a"; expected a node and its value'),
        ("a 0 1\nb 1\nc 2\nd 3\nf 4\n", '"0 1"; expected one value for each node'),
        ("a 0\nb 1\nc 2\nd 3\nf 3\n", "rank 3 twice; expected each of 0..4 once"),
        ("a 0\nb 1\nc 2\nd 3\nf 5\n", 'rank "5"; expected each of 0..4 once'),
        ('{"a": [1.5]}', '"a" has [1.5]; expected a text or a number'),
    ],
)
def test_bad_tables(run: Run, folder: Path, table: str, expected: str) -> None:
    """Exit code 3, with what is wrong and where."""
    assert run("schedule", "fabric.edges", "-o", "s.json").code == 0
    Path("bad").write_text(table)
    outcome = run("lower", "s.json", "--to", "oneccl", "--rank-map", "bad")
    assert (outcome.code, outcome.out) == (3, "")
    assert expected in outcome.err


@pytest.mark.parametrize(
    ("value", "expected"),
    [("10.0.0.256", "expected an IPv4 one"), ("192.168.7.10", "is there twice")],
)
def test_bad_addresses(run: Run, folder: Path, value: str, expected: str) -> None:
    """Addresses are IPv4, and one per terminal."""
    assert run("route", "fabric.edges", "-o", "r.json").code == 0
    Path("bad").write_text(json.dumps(ADDRESSES | {"a": value}))
    outcome = run("lower", "r.json", "--to", "ompi:addresses=bad")
    assert outcome.code == 3
    assert expected in outcome.err


PLACES = {
    "a": "2001:db8:a::/48 eth0 eth1 eth7",
    "b": "2001:db8:b::/48 eth0 eth1",
    "c": "2001:db8:c::/48 eth0 eth1",
    "d": "2001:db8:d::/48 rail1 rail2 rail3",
    "e": "fc01:0:5::/48 swp1 swp2",
    "f": "2001:db8:f swp1 swp2",
}


@pytest.mark.parametrize("steering", ["encap", "plain"])
def test_srv6_with_real_prefixes_and_devices(run: Run, folder: Path, steering: str) -> None:
    """No address or device of the pattern is left, and the file leads along the same paths."""
    Path("places").write_text("".join(f"{node} {row}\n" for node, row in PLACES.items()))
    target = f"srv6:steering={steering}"
    plain = lowered(run, "route", "--to", target)
    text = lowered(run, "route", "--to", f"{target},addresses=places")
    assert "\n# node 4 e\n# at fc01:0:5 swp1 swp2\n" in text
    assert "fc02" not in text
    assert not re.search(r"dev p\d", text)
    assert len(text.splitlines()) == len(plain.splitlines()) + 6
    outcome = run("verify", "lowered", "--topology", "fabric.edges", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["time"] == run("verify", "route.json", "--json").json["time"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# at 2001:db8:b eth0 eth1\n", ""),
        ("# at 2001:db8:b ", "# at 2001:db8:a "),
        ("# at 2001:db8:b eth0", "# at 2001:db8:b eth9"),
        ("# at 2001:db8:b eth0", "# at 2001:db8:b lo"),
        ("/128 dev eth0\n", "/128 dev p0\n"),
        ("address add 2001:db8:b:2:0::1", "address add fc02:1:0::1"),
        ("address add 2001:db8:b:2:0::1", "address add 2001:db8:99:2:0::1"),
        ("# at 2001:db8:b ", "# at 2001:db8 "),
    ],
)
def test_files_with_wrong_places_are_refused(
    run: Run, folder: Path, before: str, after: str
) -> None:
    """Every address and device must be one that the file states of its node."""
    Path("places").write_text("".join(f"{node} {row}\n" for node, row in PLACES.items()))
    text = lowered(run, "route", "--to", "srv6:addresses=places")
    assert before in text
    Path("lowered").write_text(text.replace(before, after, 1))
    assert run("verify", "lowered", "--topology", "fabric.edges").code in (3, 4)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("2001:db8:1", "0 devices at node a; expected one for each of its 3 ports"),
        ("2001:db8:1::/48 eth0 eth0 eth1", "2 devices at node a"),
        ("2001:db8:1::/48 eth0 eth1 e;reboot", "device 'e;reboot' of node a"),
        ("2001:db8::/32 eth0 eth1 eth2", "expected 48 bits"),
        ("10.0.0.1 eth0 eth1 eth2", "expected 48 bits"),
        ("2001:db8:00b eth0 eth1 eth2", "prefix 2001:db8:b is there twice"),
    ],
)
def test_bad_places(run: Run, folder: Path, row: str, expected: str) -> None:
    """Prefixes have 48 bits and are distinct; devices are one per port, with plain names."""
    assert run("route", "fabric.edges", "-o", "r.json").code == 0
    rows = PLACES | {"a": row}
    Path("places").write_text("".join(f"{node} {each}\n" for node, each in rows.items()))
    outcome = run("lower", "r.json", "--to", "srv6:addresses=places")
    assert (outcome.code, outcome.out) == (3, "")
    assert expected in outcome.err


def test_tables_that_a_target_has_no_use_for(run: Run, folder: Path) -> None:
    """They are refused rather than ignored."""
    assert run("route", "fabric.edges", "-o", "r.json").code == 0
    for words in (("routes", "--rank-map", "ranks"), ("srv6", "--rank-map", "ranks")):
        outcome = run("lower", "r.json", "--to", *words)
        assert (outcome.code, "takes no ranks" in outcome.err) == (2, True)
    assert run("verify", "r.json", "--rank-map", "ranks").code == 2
