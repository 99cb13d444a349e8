"""Steering by hash: the ports that are found make the fabric pick the wanted route."""

import zlib

import numpy as np
import pytest

from alltoall.errors import InputError, UsageError
from alltoall.lowering.tables.hashes import (
    FIRST_PORT,
    HASHES,
    LAST_PORT,
    addresses,
    crc32,
    dotted,
    find_ports,
    parse_dotted,
    pick_routes,
)


def test_crc32_is_that_of_zlib() -> None:
    """The default hash is what the document says: zlib's CRC-32 of 14 big-endian bytes."""
    fields = (50000, 0x0A000001, 0x0A0000FE, 0x123456)
    packed = b"".join(v.to_bytes(n, "big") for v, n in zip(fields, (2, 4, 4, 4), strict=True))
    found = crc32(*(np.array([value]) for value in fields))
    assert found.tolist() == [zlib.crc32(packed)]


@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("routes", [1, 2, 3, 5, 8, 16])
def test_every_route_can_be_picked(name: str, routes: int) -> None:
    """For every number of routes and every wanted one there is a port."""
    rng = np.random.default_rng(routes)
    source, destination = rng.integers(0, 2**32, (2, 500))
    queue_pair, wanted = rng.integers(16, 2**24, 500), rng.integers(0, routes, 500)
    total = np.full(500, routes)
    port = find_ports(name, source, destination, queue_pair, wanted, total)
    assert port.min() >= FIRST_PORT
    assert port.max() <= LAST_PORT
    flows = (port, source, destination, queue_pair)
    assert np.array_equal(pick_routes(name, *flows, total), wanted)


def test_a_hash_that_ignores_the_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fabric that cannot be steered is an error that names the flow."""
    monkeypatch.setitem(HASHES, "fixed", lambda port, *_: np.zeros_like(port))
    one = np.array([1])
    with pytest.raises(InputError, match=r"hash fixed pick route 1 of 2 from 0\.0\.0\.1"):
        find_ports("fixed", one, one, one, one, 2 * one)


def test_addresses_follow_their_pattern() -> None:
    """x, y and z are the bytes of the rank plus one."""
    assert dotted(int(addresses("10.x.y.z", 300)[299])) == "10.0.1.44"
    assert dotted(int(addresses("192.168.7.z", 4)[0])) == "192.168.7.1"
    for pattern, ranks in (("10.0.0.z", 300), ("10.x.y", 4), ("10.300.y.z", 4), ("a.b.c.d", 4)):
        with pytest.raises(UsageError, match="addresses"):
            addresses(pattern, ranks)


def test_dotted_addresses_are_read_strictly() -> None:
    """What is no address is none."""
    assert parse_dotted("10.0.1.44") == 0x0A00012C
    for wrong in ("10.0.1", "10.0.1.256", "10.0.01.1", "10.0.1.1 ", ""):
        assert parse_dotted(wrong) is None
