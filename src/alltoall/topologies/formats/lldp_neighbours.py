"""The neighbours of one host, as `lldpcli -f json show neighbors` prints them.

With several interfaces the key `interface` has an array of objects, with one an object; names of
interfaces and of neighbours are keys. `-f json0` has arrays everywhere, and names are values.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from alltoall.errors import FormatError
from alltoall.ir.files.fields import Json, short
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.names import is_name
from alltoall.ir.quantities import bytes_per_second

_MEDIUM = re.compile(r"([0-9]{1,5})(Gig|G)?base", re.IGNORECASE)
"""The rate in the name of an Ethernet medium: 10GigBaseCX4, 100GbaseCR4, 1000BaseTFD."""


@dataclass(frozen=True)
class Neighbour:
    """The other end of the cable in a port, as it calls itself, and its rate if it says so."""

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
        raise FormatError(
            f"{where}: no object `lldp`; expected what `lldpcli -f json show neighbors` prints"
        )
    found: dict[str, list[Neighbour]] = {}
    for port, interface in _interfaces(root.get("interface", []), where):
        each = _neighbour(port, interface, where)
        found.setdefault(port, []).append(each)
    return [_at_port(neighbours, where) for neighbours in found.values()]


def _interfaces(value: object, where: str) -> Iterator[tuple[str, Json]]:
    """Give the interfaces with their names, in whatever form."""
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise FormatError(f"{where}: an interface is {short(each)}; expected an object")
        if "chassis" in each:
            yield _text(each.get("name"), "the name of an interface", where), each
            continue
        for name, interface in each.items():
            if not isinstance(interface, dict):
                raise FormatError(f"{where}: {name!r} is {short(interface)}; expected an object")
            yield name, interface


def _neighbour(port: str, interface: Json, where: str) -> Neighbour:
    here = f"{where}: {port}"
    chassis, name = _chassis(_only(interface.get("chassis")), here)
    called = name or _text(_only(chassis.get("id")), "the id of a neighbour", here)
    if not is_name(called):
        raise FormatError(f"{here}: a neighbour {short(called)}; expected a printable name")
    capabilities = chassis.get("capability", [])
    enabled = [
        each.get("type")
        for each in (capabilities if isinstance(capabilities, list) else [capabilities])
        if isinstance(each, dict) and each.get("enabled") is True
    ]
    return Neighbour(
        port=port,
        name=called,
        is_named=name is not None,
        by_lldp=interface.get("via", "LLDP") == "LLDP",
        is_station=enabled == ["Station"],
        rate=_rate(_only(interface.get("port"))),
    )


def _chassis(value: object, here: str) -> tuple[Json, str | None]:
    """Return what is said of a neighbour, and its name if it has one."""
    if not isinstance(value, dict) or not value:
        raise FormatError(f"{here}: the chassis is {short(value)}; expected that of a neighbour")
    if "id" in value:
        return value, _text(value["name"], "a name", here) if "name" in value else None
    name, chassis = next(iter(value.items()))
    return (chassis if isinstance(chassis, dict) else {}), name


def _at_port(neighbours: list[Neighbour], where: str) -> Neighbour:
    """Return the one neighbour at a port: by LLDP rather than CDP, a host rather than its NIC."""
    for better in ("by_lldp", "is_named"):
        chosen = [each for each in neighbours if getattr(each, better)]
        neighbours = chosen or neighbours
    names = sorted({each.name for each in neighbours})
    if len(names) > 1:
        raise FormatError(
            f"{where}: {neighbours[0].port} has the neighbours {', '.join(names[:3])}; expected "
            "one, at the other end of a cable: what is between them does not speak LLDP"
        )
    return neighbours[0]


def _rate(port: object) -> float | None:
    """Return the rate of the medium of a port, which `show neighbors details` has."""
    negotiation = _only(port.get("auto-negotiation")) if isinstance(port, dict) else None
    current = _only(negotiation.get("current")) if isinstance(negotiation, dict) else None
    text = current.get("value") if isinstance(current, dict) else current
    match = _MEDIUM.match(text) if isinstance(text, str) else None
    if match is None or int(match[1]) == 0:
        return None
    return bytes_per_second(f"{match[1]}{'G' if match[2] else 'M'}bps")


def _only(value: object) -> object:
    """Return the one value of an array, as `-f json0` has it, or the value itself."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _text(value: object, what: str, here: str) -> str:
    found = _only(value)
    found = found.get("value") if isinstance(found, dict) else found
    if not isinstance(found, str):
        raise FormatError(f"{here}: {what} is {short(found)}; expected a text")
    return found
