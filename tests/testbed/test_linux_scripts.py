"""Scripts for Linux hosts on a fabric: kernels have our routes, packets take them, undo works."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fabrics import fabric, needs_testbed
from linux_hosts import SHOWN, inside, install, loads_by_tables, shown

import alltoall
from alltoall.ir.demand import Demand
from alltoall.ir.routes import Routes
from alltoall.lowering.tables.linux import direct_address
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.routed import run_routes

pytestmark = needs_testbed

CHANGED = (
    *("ipv4/ip_forward", "ipv4/conf/all/rp_filter", "ipv4/conf/p0/rp_filter"),
    *("ipv4/fib_multipath_hash_policy", "ipv6/fib_multipath_hash_policy"),
    *("ipv6/conf/all/forwarding", "ipv6/conf/all/seg6_enabled", "ipv6/conf/p0/seg6_enabled"),
)
"""Settings of a host that scripts change."""


def files_of(routes: Routes, target: str) -> dict[str, bytes]:
    """Return the scripts of all hosts."""
    files = alltoall.lower(routes, target).files
    return {name: text for name, text in files.items() if isinstance(text, bytes)}


def send_along(bed: Bed, routes: Routes, address: list[str]) -> None:
    """Send a flow along each route that scripts have installed; links carry what they should."""
    hosts = [address[node] for node in routes.problem.topology.terminals.tolist()]
    (row,) = run_routes(bed, routes, (1 << 14,), 1, 0, hosts=hosts)
    assert (row.counters_ok, row.disagreements) == (True, ())


@pytest.mark.parametrize("spec", ["hypercube:3", "mesh:2x3", "switch:n=4"])
def test_single_routes_by_tables(spec: str) -> None:
    """Every kernel has our next hops, and every packet crosses the links of its route."""
    routes = alltoall.route(spec, "single:layering=none")
    files = files_of(routes, "linux")
    topology = routes.problem.topology
    address = [direct_address(node) for node in range(topology.nodes)]
    with fabric(topology) as bed:
        install(bed, files)
        assert loads_by_tables(bed, address, routes) == pytest.approx(routes.load())
        send_along(bed, routes, [f"::ffff:{each}" for each in address])


def test_one_way_links_and_one_way_demands() -> None:
    """Who only receives has a way back for what it acknowledges."""
    demand = np.zeros((8, 8))
    demand[0, 1:] = 1.0
    routes = alltoall.route("genkautz:n=8,d=2", "sssp:layering=none", demand=Demand(8, demand))
    topology = routes.problem.topology
    address = [direct_address(node) for node in range(8)]
    with fabric(topology) as bed:
        install(bed, files_of(routes, "linux"))
        assert loads_by_tables(bed, address, routes) == pytest.approx(routes.load())
        get = subprocess.check_output(inside(bed, 5, "ip", "route", "get", address[0]), text=True)
        assert f"table {7_700_000 + 1 + 5}" in get


@pytest.mark.parametrize(("spec", "method"), [("bipartite:3x3", "extp"), ("mesh:3x3", "ewsp")])
def test_weighted_routes_share_connections(spec: str, method: str) -> None:
    """Next hops have the weights of routes, so the loads of links are those that were solved."""
    routes = alltoall.route(spec, f"{method}:layering=none")
    topology = routes.problem.topology
    address = [direct_address(node) for node in range(topology.nodes)]
    assert routes.count > len(address) * (len(address) - 1)
    with fabric(topology) as bed:
        install(bed, files_of(routes, "linux"))
        loads = loads_by_tables(bed, address, routes)
        assert loads == pytest.approx(routes.load(), rel=0.005)


def test_segments(tmp_path: Path) -> None:
    """With SRv6 the source names all links; prefixes and devices are those of a file."""
    routes = alltoall.route("bipartite:2x2", "single:layering=none")
    topology = routes.problem.topology
    lines = [f"{node} 2001:db8:{node + 1}::/48 p0 p1" for node in range(4)]
    (tmp_path / "hosts").write_text("\n".join(lines))
    address = [f"2001:db8:{node + 1}:2:{node}::1".replace(":0::", "::") for node in range(4)]
    with fabric(topology) as bed:
        before = [shown(bed, node) for node in range(4)]
        files = files_of(routes, f"linux:steering=encap,addresses={tmp_path / 'hosts'}")
        install(bed, files)
        install(bed, files)
        send_along(bed, routes, address)
        install(bed, files, ".undo.sh")
        assert [shown(bed, node) for node in range(4)] == before


@contextmanager
def bare_host(devices: int) -> Iterator[str]:
    """Give a namespace of our own that forwards nothing yet, with rules and routes of its user."""
    name = f"linux{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    # Addresses that devices give themselves come later, whoever looks.
    quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/addr_gen_mode"
    subprocess.run(["ip", "netns", "exec", name, "sh", "-c", quiet], check=True)
    batch = [
        f"link add p{n} netns {name} type veth peer name q{n} netns {name}" for n in range(devices)
    ]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(batch), text=True, check=True)
    try:
        theirs = "".join(f"link set {end}{n} up\n" for n in range(devices) for end in "pq")
        theirs += "address add 192.0.2.1/24 dev p0\n"
        theirs += "route add 10.77.0.2/32 via 192.0.2.9 dev p0\n"
        theirs += (
            "rule add from 192.0.2.5 lookup 99 pref 7701\nroute add 10.77.0.3 dev p0 table 99\n"
        )
        subprocess.run(["ip", "-n", name, "-batch", "-"], input=theirs, text=True, check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def state_of(host: str) -> list[str]:
    """Return all that a script could change."""
    shown = [["ip", "-o", *words.split()] for words in SHOWN]
    settings = ["cat", *(f"/proc/sys/net/{each}" for each in CHANGED)]
    command = [["ip", "netns", "exec", host, *words] for words in (*shown, settings)]
    told = [subprocess.check_output(words, text=True) for words in command]
    return ["\n".join(sorted(each.splitlines())) for each in told]


@pytest.mark.parametrize("steering", ["plain", "encap"])
def test_twice_is_once_and_undo_is_exact(tmp_path: Path, steering: str) -> None:
    """A script changes nothing the second time; what was there before stays, and is there after."""
    routes = alltoall.route("mesh:3x3", "ewsp:layering=none")
    files = alltoall.lower(routes, f"linux:steering={steering}")
    files.save(tmp_path)

    def call(host: str, file: str, *words: str) -> str:
        command = ["ip", "netns", "exec", host, "sh", str(tmp_path / file), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with bare_host(4) as host:
        before = state_of(host)
        dry = call(host, "4.sh", "--dry-run")
        assert state_of(host) == before
        assert "a2a0" in dry
        assert call(host, "4.sh") == ""
        once = state_of(host)
        assert once != before
        assert "192.0.2.9" in once[2]
        assert call(host, "4.sh") == ""
        assert state_of(host) == once
        call(host, "4.undo.sh", "--dry-run")
        assert state_of(host) == once
        call(host, "4.undo.sh")
        assert state_of(host) == before
        call(host, "4.undo.sh")
        assert state_of(host) == before
        assert not list(Path("/run").glob("alltoall-linux.4"))
    with bare_host(1) as host:
        with pytest.raises(subprocess.CalledProcessError) as told:
            call(host, "4.sh")
        assert (
            "no device p1 that is up; name those of this host with addresses=FILE"
            in told.value.stderr
        )
        assert "a2a0" not in "".join(state_of(host))


def test_what_a_dry_run_prints_is_what_a_run_does(tmp_path: Path) -> None:
    """The commands that are printed, run by a shell, leave a host as the script does."""
    routes = alltoall.route("mesh:3x3", "ewsp:layering=none")
    alltoall.lower(routes, "linux").save(tmp_path)
    states = []
    for words in (["sh", "4.sh"], ["sh", "-c", "sh 4.sh --dry-run | sh -e"]):
        with bare_host(4) as host:
            subprocess.run(["ip", "netns", "exec", host, *words], check=True, cwd=tmp_path)
            states.append(state_of(host)[:3])
            subprocess.run(
                ["ip", "netns", "exec", host, "sh", "4.undo.sh"], check=True, cwd=tmp_path
            )
    assert states[0] == states[1]
