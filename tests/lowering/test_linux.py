"""Scripts for Linux hosts as text: names, files, numbers, and what is refused."""

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from routed_cases import weighted

import alltoall
from alltoall.errors import FormatError, InputError, LimitError, UsageError
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.lowering import TARGETS, Options
from alltoall.lowering.tables.linux import next_hop_weights

NASTY = ("$(touch x)", "`touch x`", "a b;touch x", "-rf", "../up", "'\"\\", "%2Drf", "end\u202eOK")
"""Names of hosts that a shell, a path or a terminal would take for something else."""


def named(*names: str) -> Routes:
    """Return routes on a ring of hosts with names."""
    edges = [(node, (node + 1) % len(names)) for node in range(len(names))]
    topology = Topology.from_edges("ring; touch x", len(names), edges, names=names)
    return alltoall.route(topology, "sssp:layering=none")


@pytest.mark.parametrize("steering", ["plain", "encap"])
def test_names_of_hosts_are_never_code(tmp_path: Path, steering: str) -> None:
    """Whatever hosts are called: files stay in the folder, and a shell runs ip and echo."""
    names = [name for name in NASTY if name.isprintable()]
    alltoall.lower(named(*names), f"linux:steering={steering}").save(tmp_path / "scripts")
    files = sorted((tmp_path / "scripts").iterdir())
    assert len(files) == 2 * len(names)
    assert [each.name for each in tmp_path.iterdir()] == ["scripts"]
    for file in files:
        assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9._%~-]*", file.name)
        done = subprocess.run(
            ["sh", file.name, "--dry-run"],
            cwd=file.parent,
            capture_output=True,
            check=True,
            text=True,
        )
        assert not done.stderr
        for line in done.stdout.splitlines():
            assert re.match(r"ip |echo [01] > /proc/sys/net/", line)
            assert not set("$`;&|<\\'\"") & set(line.replace(" > /proc/sys/net/", ""))
            assert shlex.split(line)
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("10.0.0.1;reboot p0 p1", "address '10.0.0.1;reboot'; expected an IPv4 one"),
        ("10.0.0.1 p0 p1;reboot", "device 'p1;reboot' of node b; expected a name such as eth0"),
        ("10.0.0.1 p0 $(id)", r"device '\$\(id\)' of node b"),
        ("10.0.0.1 p0", "1 devices at node b; expected one for each of its 2 ports"),
        ("10.0.0.9 p0 p1", "address 10.0.0.9 is there twice"),
        ("2001:db8:1::/48 p0 p1", "IPv6 prefixes with steering=encap only"),
    ],
)
def test_a_file_of_addresses_is_untrusted(tmp_path: Path, row: str, problem: str) -> None:
    """Every cell is parsed before it is part of a script."""
    (tmp_path / "hosts").write_text(f"a 10.0.0.9 p0 p1\nb {row}\nc 10.0.0.3 p0 p1\n")
    with pytest.raises(FormatError, match=problem):
        alltoall.lower(named("a", "b", "c"), f"linux:addresses={tmp_path / 'hosts'}")


def test_addresses_and_devices_of_a_file(tmp_path: Path) -> None:
    """They are in the commands, in the place of those that follow the pattern."""
    (tmp_path / "hosts").write_text("a 10.0.0.1 e0 e1\nb 10.0.0.2 ib0 ib1\nc 10.0.0.3 eno1 eth.2\n")
    files = alltoall.lower(named("a", "b", "c"), f"linux:addresses={tmp_path / 'hosts'}").files
    assert sorted(files) == ["a.sh", "a.undo.sh", "b.sh", "b.undo.sh", "c.sh", "c.undo.sh"]
    text = files["c.sh"]
    assert isinstance(text, bytes)
    assert b"to 10.0.0.3/32" in text
    assert b"route add 10.0.0.2/32 table 7700003 src 10.0.0.3 proto 177 via 10.0.0.2 dev" in text
    assert b"setting ipv4/conf/eth.2/rp_filter 0" in text
    assert b"10.77." not in text


def test_two_hosts_want_one_file() -> None:
    """The script of one must not be what undoes another's."""
    with pytest.raises(FormatError, match=r"two hosts would have the file a\.undo\.sh"):
        alltoall.lower(named("a", "a.undo", "c"), "linux")


def test_what_is_refused() -> None:
    """Circles by hops, links without a way back, too many routes, unknown steering."""
    links = [(0, 1), (1, 2), (2, 3), (0, 2), (2, 1), (1, 3), (3, 0)]
    topology = Topology.from_links("two ways", 4, links)
    routes = alltoall.route(topology, "sssp:layering=none")
    kept = (routes.source != 0) | (routes.destination != 3)
    rest = routes.select(kept.nonzero()[0])
    crossed = replace(
        rest,
        source=np.append(rest.source, [0, 0]),
        destination=np.append(rest.destination, [3, 3]),
        start=np.append(rest.start, rest.start[-1] + np.array([3, 6])),
        link=np.append(rest.link, [0, 1, 2, 3, 4, 5]),
        weight=np.append(rest.weight, [0.5, 0.5]),
    )
    with pytest.raises(InputError, match="from node 0 to node 3 pass nodes in opposite orders"):
        TARGETS["linux"].emit(crossed, Options())
    with pytest.raises(InputError, match="has no way back, and a segment is an address"):
        TARGETS["linux"].emit(crossed, Options(steering="encap"))
    with pytest.raises(LimitError, match="at most 1 routes per destination"):
        TARGETS["linux"].emit(weighted("bipartite:4x4"), Options(max_routes=1))
    with pytest.raises(UsageError, match="steering 'mpls'; expected one of encap, plain"):
        alltoall.lower(routes, "linux:steering=mpls")


@pytest.mark.parametrize(
    ("shares", "weights"),
    [
        ([1.0], [1]),
        ([0.5, 0.5], [1, 1]),
        ([1 / 3, 2 / 3], [1, 2]),
        ([0.3, 0.7], [103, 240]),
        ([1e-9, 1.0], [1, 240]),
    ],
)
def test_weights_of_next_hops(shares: list[float], weights: list[int]) -> None:
    """Small whole numbers where there are some, and else within half a part in 240."""
    assert next_hop_weights(shares) == weights
