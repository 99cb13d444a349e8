"""Neighbours as `lldpcli -f json show neighbors` prints them: a file of each host in a folder.

A file is named after its host; a neighbour without a file is a switch. Both ends report a cable,
which counts once. The key `interface` has an array of objects, or an object if there is one
interface; interface and neighbour names are keys. `-f json0` has arrays everywhere, and names are
values.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import Json, short
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.names import is_name
from alltoall.ir.quantities import bytes_per_second, rate_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, listed

_MEDIUM = re.compile(r"([0-9]{1,5})(Gig|G)?base", re.IGNORECASE)
"""The rate in the name of an Ethernet medium: 10GigBaseCX4, 100GbaseCR4, 1000BaseTFD."""

_EXPECTED = "expected what `lldpcli -f json show neighbors` prints"


@dataclass(frozen=True)
class Neighbour:
    """The other end of a port's cable: its reported name, and its rate, if reported."""

    port: str
    name: str
    is_named: bool
    by_lldp: bool
    is_station: bool
    rate: float | None


def read_neighbours(text: str, where: str) -> list[Neighbour]:
    """Return the neighbour at each port of a host."""
    value = parse_json(text, where)
    root = _only(value.get("lldp")) if isinstance(value, dict) else None
    if not isinstance(root, dict):
        raise FormatError(f"{where}: no object `lldp`; {_EXPECTED}")
    found: dict[str, list[Neighbour]] = defaultdict(list)
    for port, interface in _interfaces(root.get("interface", []), where):
        here = f"{where}: {port}"
        chassis, name = _chassis(_only(interface.get("chassis")), here)
        called = name or _text(_only(chassis.get("id")), "the id of a neighbour", here)
        if not is_name(called):
            raise FormatError(f"{here}: a neighbour {short(called)}; expected a printable name")
        enabled = [
            each.get("type")
            for each in _as_list(chassis.get("capability", []))
            if isinstance(each, dict) and each.get("enabled") is True
        ]
        by_lldp, rate = interface.get("via", "LLDP") == "LLDP", _rate(_only(interface.get("port")))
        found[port].append(
            Neighbour(port, called, name is not None, by_lldp, enabled == ["Station"], rate)
        )
    return [_choose(neighbours, where) for neighbours in found.values()]


def _interfaces(value: object, where: str) -> Iterator[tuple[str, Json]]:
    for each in _as_list(value):
        if not isinstance(each, dict):
            raise FormatError(f"{where}: an interface is {short(each)}; expected an object")
        if "chassis" in each:
            yield _text(each.get("name"), "the name of an interface", where), each
            continue
        for name, interface in each.items():
            if not isinstance(interface, dict):
                raise FormatError(f"{where}: {name!r} is {short(interface)}; expected an object")
            yield name, interface


def _chassis(value: object, here: str) -> tuple[Json, str | None]:
    """Return the chassis of a neighbour, and its name if it has one."""
    if not isinstance(value, dict) or not value:
        raise FormatError(f"{here}: the chassis is {short(value)}; expected that of a neighbour")
    if "id" in value:
        return value, _text(value["name"], "a name", here) if "name" in value else None
    name, chassis = next(iter(value.items()))
    return (chassis if isinstance(chassis, dict) else {}), name


def _choose(neighbours: list[Neighbour], where: str) -> Neighbour:
    """Return the one neighbour at a port: by LLDP rather than CDP, a host rather than its NIC."""
    for better in ("by_lldp", "is_named"):
        neighbours = [each for each in neighbours if getattr(each, better)] or neighbours
    names = sorted({each.name for each in neighbours})
    if len(names) > 1:
        raise FormatError(
            f"{where}: {neighbours[0].port} has the neighbours {', '.join(names[:3])}; expected "
            "one, at the other end of a cable: what is between them does not speak LLDP"
        )
    return neighbours[0]


def _rate(port: object) -> float | None:
    """Return the rate of a port's medium, from `show neighbors details`."""
    negotiation = _only(port.get("auto-negotiation")) if isinstance(port, dict) else None
    current = _only(negotiation.get("current")) if isinstance(negotiation, dict) else None
    text = current.get("value") if isinstance(current, dict) else current
    match = _MEDIUM.match(text) if isinstance(text, str) else None
    if match is None or int(match[1]) == 0:
        return None
    return bytes_per_second(f"{match[1]}{'G' if match[2] else 'M'}bps")


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _only(value: object) -> object:
    """Return the one value of an array, as `-f json0` has it, or the value itself."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _text(value: object, kind: str, here: str) -> str:
    found = _only(value)
    found = found.get("value") if isinstance(found, dict) else found
    if not isinstance(found, str):
        raise FormatError(f"{here}: {kind} is {short(found)}; expected a text")
    return found


SUFFIXES = (".json", ".txt", ".lldp")
"""Suffixes of files, after the names of hosts."""

MAX_HOSTS = 16_384

Rate = float | None
Ports = dict[tuple[str, str], list[Rate]]
"""The rates of the ports of one node that lead to another, by both names."""


def read(text: str | Mapping[str, str], where: str, name: str) -> Topology:
    """Read the files of hosts, by file name, or the text of one host called `name`."""
    files = {name: text} if isinstance(text, str) else text
    hosts: dict[str, str] = {}
    for file in files:
        suffix = next((each for each in SUFFIXES if file.endswith(each)), "")
        host = file.removesuffix(suffix)
        if not is_name(host) or host in hosts:
            raise FormatError(f"{where}: {file!r}; expected one file of each host, with its name")
        hosts[host] = file
    # The name of a host may have a domain or, where that is unambiguous, none.
    plain = Counter(map(_without_domain, hosts))
    called = {_without_domain(host): host for host in hosts if plain[_without_domain(host)] == 1}
    called |= {host: host for host in hosts}
    ports: Ports = defaultdict(list)
    for host, file in hosts.items():
        for neighbour in read_neighbours(files[file], f"{where}: {file}"):
            other = _node(neighbour, called, f"{where}: {file}: {neighbour.port}")
            if other == host:
                place = f"{where}: {file}: {neighbour.port}"
                raise FormatError(f"{place} leads to {host} itself; {_EXPECTED}")
            ports[host, other].append(neighbour.rate)
    return _network(name, list(hosts), ports, where)


def _without_domain(name: str) -> str:
    first = name.partition(".")[0]
    return first if first and not first.isdecimal() else name


def _node(neighbour: Neighbour, called: Mapping[str, str], place: str) -> str:
    """Return the name of a neighbour: that of its file, if it has one."""
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
    cables: list[tuple[int, int, Rate]] = []
    uneven: list[str] = []
    for one, other in sorted({(min(pair), max(pair)) for pair in ports}):
        forth, back = ports.get((one, other), []), ports.get((other, one), [])
        # The end that reports more cables, and more of their rates, knows better.
        best = max(forth, back, key=lambda rates: (len(rates), len(rates) - rates.count(None)))
        rates = sorted(best, key=lambda rate: rate or 0.0)
        cables += [(number[one], number[other], rate) for rate in rates]
        if len(forth) != len(back) and max(number[one], number[other]) < len(hosts):
            uneven.append(f"{one} and {other}")
    unit = _slowest([rate for *_, rate in cables], where)
    edges = [(u, v, 1.0 if rate is None else rate / (unit or 1.0)) for u, v, rate in cables]
    notes = [f"seen from one end only, some cables of {listed(uneven)}"] if uneven else []
    if switches:
        notes.append(f"taken as switches, since they have no file: {listed(switches)}")
    one = f"capacity 1 is {rate_in_words(unit)}" if unit else "every cable has capacity 1"
    built = Topology.from_edges(name, len(names), edges, range(len(hosts)), [*notes, one], names)
    return replace(built, bytes_per_second=unit)


def _slowest(rates: list[Rate], where: str) -> Rate:
    """Return the slowest rate, or None if none is known; raise if only some are known."""
    known = [rate for rate in rates if rate is not None]
    if 0 < len(known) < len(rates):
        raise FormatError(
            f"{where}: the rates of {len(known)} of {counted(len(rates), 'cable')} are stated; "
            "expected those of all, or of none: take `show neighbors` without `details`, or write "
            "an edge list"
        )
    return min(known, default=None)
