"""Replace pattern prefixes and devices by real ones.

The commands are made and checked with the addresses `fc01:H:T::p` and `fc02:D:S::k` and the devices
`p0`, `p1`, ... Where the nodes of a fabric have prefixes and devices of their own, a line `# at`
opens the section of each node with them, and they replace every address and device: the prefix P of
node H makes `P:1:T::p`, that of D makes `P:2:S::k`. Readers go the way back.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import AddressValueError, IPv6Address

from alltoall.errors import FormatError

GROUPS = 3
"""A prefix has 48 bits, three groups of an address."""

AT = "# at "
_PATTERN = re.compile(r"\bfc0([12]):([0-9a-f]{1,4}):([0-9a-f]{1,4})::([0-9a-f]{1,4})\b")
_REAL = re.compile(r"([0-9a-f]{1,4}(?::[0-9a-f]{1,4}){2}):([12]):([0-9a-f]{1,4})::([0-9a-f]{1,4})")
_PORT = re.compile(r"(?<= dev )[a-z]{1,9}([0-9]{1,5})\b")
_DEVICE = re.compile(r"(?<= dev )\S+")
_DEVICE_NAME = re.compile(r"(?!lo$)[A-Za-z][A-Za-z0-9_.-]{0,14}")


@dataclass(frozen=True)
class Srv6Places:
    """The prefix of every node, and its devices by port; no devices if they follow the pattern."""

    prefix: tuple[str, ...]
    devices: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[str]], ports: Sequence[int], name: Callable[[int], str] = str
    ) -> "Srv6Places":
        """Build from the prefix and the devices of each node, its ports, and its name."""
        prefixes = tuple(_prefix(row[0]) for row in rows)
        devices = tuple(tuple(row[1:]) for row in rows)
        require_distinct("prefix", prefixes)
        if any(devices):
            for node, (own, count) in enumerate(zip(devices, ports, strict=True)):
                check_devices(name(node), own, count)
        return cls(prefixes, devices)

    def line(self, node: int) -> str:
        """Return the line that opens the section of a node."""
        return AT + " ".join((self.prefix[node], *self.devices[node]))

    def real(self, node: int, line: str) -> str:
        """Return a line of the section of a node with real addresses and devices."""
        line = _PATTERN.sub(self._real_address, line)
        own = self.devices[node]
        return _PORT.sub(lambda found: own[int(found[1])], line) if own else line

    def plain(self, node: int, line: str, device: str) -> str | None:
        """Undo `real`; return None for other lines."""
        ports = {name: f"{device}{port}" for port, name in enumerate(self.devices[node])}
        found = _REAL.sub(self._plain_address, line)
        found = _DEVICE.sub(lambda name: ports.get(name[0], name[0]), found)
        try:
            return found if self.real(node, found) == line else None
        except IndexError:  # an unknown port or node
            return None

    def _real_address(self, found: re.Match[str]) -> str:
        kind, near, far, number = found.groups()
        return f"{self.prefix[int(near, 16)]}:{kind}:{far}::{number}"

    def _plain_address(self, found: re.Match[str]) -> str:
        prefix, kind, far, number = found.groups()
        node = self._nodes.get(prefix)
        return found[0] if node is None else f"fc0{kind}:{node:x}:{far}::{number}"

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return {prefix: node for node, prefix in enumerate(self.prefix)}


def plain_lines(
    lines: Sequence[str], device: str, nodes: int, where: str
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line, with the pattern's addresses and devices."""
    places, node = _read(lines, nodes, where), 0
    for number, line in enumerate(lines, 3):
        node = _node_of(line, node)
        if line.startswith(AT):
            continue
        found: str | None = line
        if places is not None and not line.startswith("# node "):
            found = places.plain(node, line, device) if node < nodes else None
        if found is None:
            raise FormatError(
                f"{where}: line {number}: {line[:80]!r} has an address or a device that no line "
                f"{AT.strip()!r} names"
            )
        yield number, found


def _read(lines: Sequence[str], nodes: int, where: str) -> Srv6Places | None:
    rows: dict[int, list[str]] = {}
    node = 0
    for line in lines:
        node = _node_of(line, node)
        if line.startswith(AT):
            rows.setdefault(node, []).extend(line.removeprefix(AT).split(" "))
    if not rows:
        return None
    if sorted(rows) != list(range(nodes)):
        raise FormatError(f"{where}: {len(rows)} lines {AT.strip()!r} for {nodes} nodes")
    ordered = [rows[each] for each in range(nodes)]
    try:
        return Srv6Places.of(ordered, [len(row) - 1 for row in ordered])
    except FormatError as error:
        raise FormatError(f"{where}: {error}") from None


def _node_of(line: str, node: int) -> int:
    found = re.match(r"# node ([0-9]{1,5})(?: |$)", line)
    return int(found[1]) if found else node


def _prefix(text: str) -> str:
    """Return the three groups of a prefix such as 2001:db8:7 or 2001:db8:7::/48."""
    groups = text.removesuffix("/48").removesuffix("::")
    try:
        whole = int(IPv6Address(f"{groups}::"))
    except AddressValueError:
        whole = -1
    if groups.count(":") != GROUPS - 1 or whole < 0:
        raise FormatError(f"prefix {text[:60]!r}; expected 48 bits such as 2001:db8:7::/48")
    return ":".join(f"{whole >> shift & 0xFFFF:x}" for shift in (112, 96, 80))


def require_distinct(kind: str, values: Sequence[str]) -> None:
    """Refuse a value that two nodes have."""
    for value in (each for each, times in Counter(values).items() if times > 1):
        raise FormatError(f"{kind} {value} is there twice; expected one of its own per node")


def check_devices(node: str, devices: Sequence[str], ports: int) -> None:
    """Refuse invalid device names, and a number of devices other than the node's ports."""
    for wrong in (each for each in devices if not _DEVICE_NAME.fullmatch(each)):
        raise FormatError(f"device {wrong[:60]!r} of node {node}; expected a name such as eth0")
    if len(devices) != ports or len(set(devices)) < ports:
        raise FormatError(
            f"{len(set(devices))} devices at node {node}; expected one for each of its {ports} "
            "ports, in their order, at every node or at none"
        )
