"""Neighbours as `lldpcli -f json show neighbors` prints them: a file of each host in a folder.

A file is named after its host. A neighbour that has no file is a switch. A cable is told by both
its ends, and counts once: two nodes have as many cables as the one has ports that lead to the
other.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from alltoall.errors import FormatError
from alltoall.ir.names import is_name
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted
from alltoall.topologies.formats.lldp_neighbours import Neighbour, read_neighbours

SUFFIXES = (".json", ".txt", ".lldp")
"""What follows the name of a host in that of its file."""

MAX_HOSTS = 16_384
MAX_LISTED = 5
"""Most names in a note."""

Rate = float | None
Ports = dict[tuple[str, str], list[Rate]]
"""The rate of each port of one node that leads to another, by both their names."""


def read(text: str | Mapping[str, str], where: str, name: str) -> Topology:
    """Read a file of each host, by the name of the file, or the one of a host called `name`."""
    files = {name: text} if isinstance(text, str) else text
    hosts = _host_names(files, where)
    called = _nicknames(list(hosts))
    ports: Ports = defaultdict(list)
    for host, file in hosts.items():
        for neighbour in read_neighbours(files[file], f"{where}: {file}"):
            other = _node(neighbour, called, f"{where}: {file}: {neighbour.port}")
            if other == host:
                raise FormatError(
                    f"{where}: {file}: {neighbour.port} leads to {host} itself; expected what "
                    "`lldpcli -f json show neighbors` prints"
                )
            ports[host, other].append(neighbour.rate)
    return _network(name, list(hosts), ports, where)


def _host_names(files: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the file of every host."""
    found: dict[str, str] = {}
    for file in files:
        suffix = next((each for each in SUFFIXES if file.endswith(each)), "")
        host = file.removesuffix(suffix)
        if not is_name(host) or host in found:
            raise FormatError(f"{where}: {file!r}; expected one file of each host, with its name")
        found[host] = file
    return found


def _nicknames(hosts: list[str]) -> dict[str, str]:
    """Return the host of each name, with or without a domain if that is clear."""
    found: dict[str, str] = {}
    short: dict[str, set[str]] = defaultdict(set)
    for host in hosts:
        short[_without_domain(host)].add(host)
    for name, owners in short.items():
        if len(owners) == 1:
            found[name] = next(iter(owners))
    return found | {host: host for host in hosts}


def _without_domain(name: str) -> str:
    first = name.partition(".")[0]
    return first if first and not first.isdecimal() else name


def _node(neighbour: Neighbour, called: Mapping[str, str], place: str) -> str:
    """Return what a neighbour is called: like its file, or as it calls itself if it has none."""
    name = neighbour.name
    host = called.get(name) or called.get(_without_domain(name))
    if host is None and neighbour.is_station:
        raise FormatError(
            f"{place}: {name} says that it is a host, and has no file; add what lldpcli prints "
            f"there as {name}.json, or name the file of that host so"
        )
    return host or name


def _network(name: str, hosts: list[str], ports: Ports, where: str) -> Topology:
    if len(hosts) < 2:
        raise FormatError(
            f"{where}: the neighbours of one host; expected those of two or more: put a file of "
            "each host into a folder, and give the folder"
        )
    switches = sorted({other for _, other in ports} - set(hosts))
    names = [*hosts, *switches]
    number = {each: node for node, each in enumerate(names)}
    rows: list[tuple[int, int, Rate]] = []
    uneven: list[str] = []
    for one, other in sorted({(min(pair), max(pair)) for pair in ports}):
        forth, back = ports.get((one, other), []), ports.get((other, one), [])
        rows += [(number[one], number[other], rate) for rate in _cables(forth, back)]
        if len(forth) != len(back) and max(number[one], number[other]) < len(hosts):
            uneven.append(f"{one} and {other}")
    unit = _unit([rate for *_, rate in rows], where)
    edges = [(u, v, 1.0 if rate is None else rate / unit) for u, v, rate in rows]
    stated = any(rate is not None for *_, rate in rows)
    notes = _notes(switches, uneven, unit if stated else None)
    found = Topology.from_edges(name, len(names), edges, range(len(hosts)), notes, names)
    return replace(found, bytes_per_second=unit if stated else None)


def _cables(forth: list[Rate], back: list[Rate]) -> list[Rate]:
    """Return the rates of the cables between two nodes, from the end that knows more."""
    best = max(forth, back, key=lambda rates: (len(rates), len(rates) - rates.count(None)))
    return sorted(best, key=lambda rate: rate or 0.0)


def _unit(rates: list[Rate], where: str) -> float:
    """Return the slowest rate, 1 if none is known; refuse to guess where some are."""
    known = [rate for rate in rates if rate is not None]
    if 0 < len(known) < len(rates):
        raise FormatError(
            f"{where}: the rates of {len(known)} of {counted(len(rates), 'cable')} are stated; "
            "expected those of all, or of none: take `show neighbors` without `details`, or write "
            "an edge list"
        )
    return min(known, default=1.0)


def _notes(switches: list[str], uneven: list[str], unit: Rate) -> list[str]:
    notes = [f"seen from one end only, some cables of {_listed(uneven)}"] if uneven else []
    if switches:
        notes.append(f"taken as switches, since they have no file: {_listed(switches)}")
    if unit is None:
        return [*notes, "every cable has capacity 1"]
    return [*notes, f"capacity 1 is {rate_in_words(unit)}"]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
