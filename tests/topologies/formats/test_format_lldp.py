"""Neighbours as `lldpcli -f json` prints them."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import alltoall
from alltoall.errors import AlltoallError, FormatError, UsageError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import lldp_json, read_topology
from command_line import Run

Ports = dict[str, tuple[str, str]]
"""The neighbour of each port of a host, and its port there."""

HUNDRED = "100GbaseCR4 - 100GBASE-CR4 PCS/PMA"
"""A medium as lldpd words it."""


def entry(name: str | None, port: str, medium: str | None, caps: tuple[str, ...]) -> dict[str, Any]:
    """Return what lldpcli says of a neighbour; without a name, its address is its id."""
    about: dict[str, Any] = {
        "id": {"type": "mac", "value": "00:00:00:00:00:02"},
        "descr": "Debian GNU/Linux 12",
        "capability": [
            {"type": each, "enabled": each in caps} for each in ("Bridge", "Router", "Station")
        ],
    }
    there: dict[str, Any] = {"id": {"type": "mac", "value": "00:00:00:00:00:02"}, "descr": port}
    if medium:
        there["auto-negotiation"] = {"supported": True, "enabled": True, "current": medium}
    chassis = about if name is None else {name: about}
    return {"via": "LLDP", "rid": "1", "age": "0 day, 00:00:59", "chassis": chassis, "port": there}


def as_json(
    ports: Ports, medium: str | None = None, caps: tuple[str, ...] = ("Bridge", "Router")
) -> str:
    """Print as `-f json`: an array of several interfaces, one as an object, none at all."""
    found = [{at: entry(*there, medium, caps)} for at, there in ports.items()]
    if not found:
        return json.dumps({"lldp": {}})
    return json.dumps({"lldp": {"interface": found if len(found) > 1 else found[0]}}, indent=2)


def as_json0(ports: Ports, medium: str | None = None) -> str:
    """Print as `-f json0`: arrays everywhere, and names as values."""
    found = []
    for at, (name, port) in ports.items():
        each = entry(name, port, medium, ("Router",))
        about = each["chassis"][name]
        about = {key: [value] if key == "id" else value for key, value in about.items()}
        there = {"id": [each["port"]["id"]], "descr": [{"value": port}]}
        if medium:
            there["auto-negotiation"] = [{"supported": True, "current": [{"value": medium}]}]
        about["name"] = [{"value": name}]
        found.append({"name": at, "via": "LLDP", "chassis": [about], "port": [there]})
    return json.dumps({"lldp": [{"interface": found}]})


TRIANGLE: dict[str, Ports] = {
    "a": {"eth0": ("b", "eth1"), "eth1": ("c", "eth0"), "eth2": ("c", "eth2")},
    "b": {"eth1": ("a", "eth0"), "eth0": ("c", "eth1")},
    "c": {"eth0": ("a", "eth1"), "eth1": ("b", "eth0"), "eth2": ("a", "eth2")},
}
"""Three hosts, two of which have two cables in between."""

EDGES = [(0, 1), (0, 2), (0, 2), (1, 2)]


def save(folder: Path, files: dict[str, str]) -> Path:
    """Save files into a folder of their own."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("written", [as_json, as_json0])
def test_a_cable_is_told_by_both_ends_and_counts_once(written: Any, tmp_path: Path) -> None:
    """In either form of lldpcli, with a file of each host in a folder."""
    files = {f"{host}.json": written(ports) for host, ports in TRIANGLE.items()}
    found = read_topology(save(tmp_path / "rack", files))
    assert found == Topology.from_edges("rack", 3, EDGES)
    assert (found.name, found.names) == ("rack", ("a", "b", "c"))
    assert found.notes == ("every cable has capacity 1",)
    assert found.bytes_per_second is None
    fast = {f"{host}.json": written(ports, HUNDRED) for host, ports in TRIANGLE.items()}
    rated = read_topology(save(tmp_path / "fast", fast))
    assert rated == found
    assert rated.bytes_per_second == 12.5e9


def test_one_interface_is_an_object() -> None:
    """And several are an array: a host of a pair, and its switch with two."""
    files = {"a": as_json({"eth0": ("sw", "p1")}), "b": as_json({"eth0": ("sw", "p2")})}
    assert '"interface": {' in files["a"]
    found = lldp_json.read(files, "rack", "rack")
    assert found == Topology.from_edges("rack", 3, [(0, 2), (1, 2)], range(2))
    assert found.notes[0] == "taken as switches, since they have no file: sw"


@st.composite
def racks(draw: st.DrawFn) -> tuple[dict[str, Ports], list[tuple[int, int]]]:
    """Draw cables between hosts, parallel ones too, as each host sees them."""
    hosts = draw(st.integers(2, 6))
    ends = st.tuples(st.integers(0, hosts - 1), st.integers(0, hosts - 1))
    drawn = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=10))
    seen: dict[str, Ports] = {f"h{host}": {} for host in range(hosts)}
    for at, (u, v) in enumerate(drawn):
        seen[f"h{u}"][f"eth{at}"] = (f"h{v}", f"p{at}")
        seen[f"h{v}"][f"p{at}"] = (f"h{u}", f"eth{at}")
    return seen, drawn


@given(racks(), st.sampled_from([as_json, as_json0]), st.sampled_from(["", ".lab.example"]))
def test_every_rack_is_read_back(rack: Any, written: Any, domain: str) -> None:
    """As many cables as there are, whether neighbours have their domain or not."""
    seen, cables = rack
    named = {
        host: {at: (name + domain, port) for at, (name, port) in ports.items()}
        for host, ports in seen.items()
    }
    files = {f"{host}.json": written(ports) for host, ports in named.items()}
    found = lldp_json.read(files, "rack", "rack")
    assert found == Topology.from_edges("rack", len(seen), cables, parallel=True)


def test_a_cable_that_one_end_does_not_see_counts() -> None:
    """It is there, and a note names the hosts."""
    files = {host: as_json(ports) for host, ports in TRIANGLE.items()}
    files["c"] = as_json({"eth1": ("b", "eth0"), "eth2": ("a", "eth2")})
    found = lldp_json.read(files, "rack", "rack")
    assert found == Topology.from_edges("rack", 3, EDGES)
    assert found.notes[0] == "seen from one end only, some cables of a and c"


def test_a_nic_and_cdp_do_not_hide_the_host() -> None:
    """A port with several neighbours has the one with a name, by LLDP if there is one."""
    host, nic = entry("b", "eth0", None, ("Router",)), entry(None, "eth0", None, ("Station",))
    cdp = entry("b.lab", "eth0", None, ("Router",)) | {"via": "CDPv2"}
    both = json.dumps({"lldp": {"interface": [{"eth0": nic}, {"eth0": host}, {"eth0": cdp}]}})
    found = lldp_json.read({"a": both, "b": as_json({"eth0": ("a", "eth0")})}, "rack", "rack")
    assert found == Topology.from_edges("rack", 2, [(0, 1)])


PAIR = {"a": as_json({"eth0": ("b", "eth0")}), "b": as_json({"eth0": ("a", "eth0")})}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": PAIR["a"]}, "rack: the neighbours of one host; expected those of two or more"),
        (PAIR | {"a": as_json({"eth0": ("a", "eth0")})}, "a: eth0 leads to a itself; .*neighbors`"),
        (
            PAIR | {"c": as_json({"eth0": ("d", "x")}, None, ("Station",))},
            "c: eth0: d says that it is a host, and has no file; add .* as d.json",
        ),
        (
            PAIR | {"a": json.dumps({"lldp": {"interface": [
                {"eth0": entry("b", "x", None, ())}, {"eth0": entry("c", "x", None, ())},
            ]}})},
            "a: eth0 has the neighbours b, c; expected one, at the other end of a cable",
        ),
        (
            PAIR | {"c": as_json({"eth0": ("a", "x")}, HUNDRED)},
            "the rates of 1 of 2 cables are stated; expected those of all, or of none",
        ),
        (PAIR | {"a.json": PAIR["a"]}, "'a.json'; expected one file of each host"),
        (PAIR | {"a": '{"lldp": 5}'}, "a: no object `lldp`; expected what `lldpcli -f json"),
        (PAIR | {"a": '{"lldp": {"interface": [5]}}'}, "a: an interface is 5; expected an object"),
        (PAIR | {"a": '{"lldp": {"interface": {"eth0": {"chassis": 1}}}}'}, "the chassis is 1"),
        (PAIR | {"a": '{"lldp": {"interface": {"eth0": {"chassis": {"\\u0007": {}}}}}}'},
         "expected a printable name"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused(files: dict[str, str], message: str) -> None:
    """With the file, what was found, and what to do."""
    with pytest.raises(FormatError, match=message):
        lldp_json.read(files, "rack", "rack")


@given(st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    """No damage makes the reader fail in another way than by its own errors."""
    text = data.draw(st.sampled_from([as_json, as_json0]))(TRIANGLE["a"], HUNDRED)
    start = data.draw(st.integers(0, len(text)))
    patch = data.draw(st.text(alphabet='[]{}",:1a', max_size=5))
    broken = text[:start] + patch + text[start + data.draw(st.integers(0, 40)) :]
    with contextlib.suppress(AlltoallError):
        lldp_json.read({"a": broken, "b": PAIR["b"]}, "rack", "rack")


def test_verbs_and_the_library_take_a_folder(run: Run, tmp_path: Path) -> None:
    """By its path, with the rate of the links or without; hidden files are left alone."""
    files = {f"{host}.json": as_json(ports, HUNDRED) for host, ports in TRIANGLE.items()}
    folder = save(tmp_path / "rack", files | {".cache": "x"})
    assert run("solve", folder, "--json").json["throughput_GBps"] == pytest.approx(25.0)
    assert alltoall.solve(folder).time == alltoall.solve(str(folder)).time == 1.0
    assert alltoall.load(folder) == read_topology(folder)
    assert run("topology", folder, "--format", "lldp").code == 0
    one = run("solve", folder / "a.json")
    assert one.code == 3
    assert "put a file of each host into a folder, and give the folder" in one.err
    with pytest.raises(UsageError, match="only edge lists can be read as parallel; this is lldp"):
        read_topology(folder, parallel=True)


def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its first file that lldpcli has not printed, and at too many of them."""
    folder = save(tmp_path / "rack", {"a.json": as_json({}), "b.json": "{}", "c.json": "x"})
    with pytest.raises(FormatError, match=r"a directory, and 'b.json' in it is not what `lldpcli"):
        read_topology(folder)
    with pytest.raises(FormatError, match="a directory, not a regular file"):
        read_topology(folder, "json")
    monkeypatch.setattr(lldp_json, "MAX_HOSTS", 2)
    with pytest.raises(FormatError, match="3 files; expected at most 2"):
        read_topology(folder)
