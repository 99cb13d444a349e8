"""Steering by hash: the UDP source port that makes a fabric pick the wanted route.

A fabric with R routes to a destination takes route `hash(source port, source IP, destination IP,
queue pair) mod R` for a flow. `HASHES` has two hashes of fabrics, and is open to more: functions of
four integer arrays of one shape, whose result is non-negative.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import AddressValueError, IPv4Address

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, InputError, UsageError
from alltoall.ir.arrays import Ints

FIRST_PORT, LAST_PORT = 49152, 65535
"""The dynamic ports, from which RoCE v2 takes its source ports."""

Hash = Callable[[Ints, Ints, Ints, Ints], Ints]


def crc32(port: Ints, source: Ints, destination: Ints, queue_pair: Ints) -> Ints:
    """Return the CRC-32 of IEEE 802.3 (zlib's) of 14 bytes: the four fields, big-endian.

    The source port takes 2 bytes, the addresses and the queue pair number 4 bytes each.
    """
    crc = np.full(np.shape(port), 0xFFFFFFFF, dtype=np.uint32)
    for field, size in ((port, 2), (source, 4), (destination, 4), (queue_pair, 4)):
        for shift in range(8 * size - 8, -1, -8):
            byte = (field >> shift).astype(np.uint32)
            crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return (crc ^ 0xFFFFFFFF).astype(np.int64)


def xor_fold(port: Ints, source: Ints, destination: Ints, queue_pair: Ints) -> Ints:
    """Return the exclusive or of the source port and the 16-bit halves of the other fields."""
    mixed = source ^ destination ^ queue_pair
    return np.asarray(port ^ (mixed >> 16) ^ (mixed & 0xFFFF), dtype=np.int64)


HASHES: dict[str, Hash] = {"crc32": crc32, "xor-fold": xor_fold}

_CRC_TABLE: NDArray[np.uint32] = np.arange(256, dtype=np.uint32)
for _ in range(8):
    _CRC_TABLE = np.where(_CRC_TABLE & 1, _CRC_TABLE >> 1 ^ np.uint32(0xEDB88320), _CRC_TABLE >> 1)


def pick_routes(
    name: str, port: Ints, source: Ints, destination: Ints, queue_pair: Ints, routes: Ints
) -> Ints:
    """Return the route that the fabric picks for each flow, out of `routes` of its pair."""
    if name not in HASHES:
        raise UsageError(f"hash {name!r}; expected one of {', '.join(HASHES)}")
    return np.asarray(HASHES[name](port, source, destination, queue_pair) % routes, np.int64)


def find_ports(
    name: str, source: Ints, destination: Ints, queue_pair: Ints, wanted: Ints, routes: Ints
) -> Ints:
    """Return the lowest source port that makes each flow take its wanted route.

    All flows try a port at once, and those that succeed are done. With each port a hash that
    spreads well settles one flow in R, so the work is R hashes per flow.
    """
    port = np.zeros(len(wanted), dtype=np.int64)
    left = np.arange(len(wanted))
    for candidate in range(FIRST_PORT, LAST_PORT + 1):
        tried = np.full(len(left), candidate, dtype=np.int64)
        flow = (source[left], destination[left], queue_pair[left])
        hit = pick_routes(name, tried, *flow, routes[left]) == wanted[left]
        port[left[hit]] = candidate
        left = left[~hit]
        if not len(left):
            return port
    first = left[0]
    ends = f"from {dotted(int(source[first]))} to {dotted(int(destination[first]))}"
    raise InputError(
        f"no source port {FIRST_PORT}..{LAST_PORT} makes the hash {name} pick route "
        f"{wanted[first]} of {routes[first]} {ends}; lower with another hash "
        f"(--to ompi:hash=NAME), or route again with --max-routes {max(1, int(routes[first]) // 2)}"
    )


def addresses(pattern: str, ranks: int) -> Ints:
    """Return the IPv4 address of each rank; x, y and z stand for the bytes of the rank plus one."""
    fields = pattern.split(".")
    if len(fields) != 4 or not all(re.fullmatch(r"[xyz]|[0-9]{1,3}", each) for each in fields):
        raise UsageError(f"addresses {pattern!r}; expected four fields such as 10.x.y.z")
    number = np.arange(1, ranks + 1, dtype=np.int64)
    parts = {"x": number >> 16 & 255, "y": number >> 8 & 255, "z": number & 255}
    address = np.zeros(ranks, dtype=np.int64)
    for each in fields:
        part = parts[each] if each in parts else np.full(ranks, int(each), dtype=np.int64)
        if part.max() > 255:
            raise UsageError(f"addresses {pattern!r}: {each} is no byte; expected 0..255")
        address = address << 8 | part
    if len(np.unique(address)) != ranks:
        raise UsageError(f"addresses {pattern!r}: too few for {ranks} ranks; use 10.x.y.z")
    return address


def parse_addresses(texts: Sequence[str]) -> Ints:
    """Return a list of IPv4 addresses, which must be distinct."""
    found = [parse_dotted(text) for text in texts]
    if None in found:
        wrong = texts[found.index(None)][:60]
        raise FormatError(f"address {wrong!r}; expected an IPv4 one such as 10.0.0.1")
    for text in (text for text, times in Counter(texts).items() if times > 1):
        raise FormatError(f"address {text} is there twice; expected one of its own per terminal")
    return np.array(found, dtype=np.int64)


def dotted(address: int) -> str:
    """Return an IPv4 address as text."""
    return str(IPv4Address(address))


def parse_dotted(text: str) -> int | None:
    """Return an IPv4 address as a number, or None if the text is none."""
    try:
        return int(IPv4Address(text))
    except AddressValueError:
        return None
