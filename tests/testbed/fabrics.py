"""Fabrics for tests: each of its own name, removed whatever happens."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from a2aflow.errors import MissingComponentError
from a2aflow.ir.topology import Topology
from a2aflow.testbed import namespaces
from a2aflow.testbed.namespaces import Bed

RATE = 1.25e6
"""Bytes per second of a link of capacity 1: what two busy cores carry for eight hosts."""

_numbers = itertools.count()


def require_fabric() -> None:
    """Skip the test where there can be no fabric."""
    try:
        namespaces.require_testbed()
    except MissingComponentError as error:
        pytest.skip(f"no fabric of network namespaces here: {error}")


@contextmanager
def fabric(topology: Topology) -> Iterator[Bed]:
    """Give a fabric, and remove it in the end."""
    require_fabric()
    name = f"t{os.getpid()}x{next(_numbers)}"
    try:
        yield namespaces.up(topology, RATE, name, owner=os.getpid())
    finally:
        namespaces.down(name)
