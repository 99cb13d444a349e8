"""Fabrics for tests: each of its own name, removed whatever happens."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from alltoall.errors import MissingComponentError
from alltoall.ir.topology import Topology
from alltoall.testbed import namespaces
from alltoall.testbed.namespaces import Bed

RATE = 1.25e6
"""Bytes per second of a link of capacity 1: what two busy cores carry for eight hosts."""

_numbers = itertools.count()


def _why_not() -> str:
    try:
        namespaces.require_testbed()
    except MissingComponentError as error:
        return f"no testbed: {error}"
    return ""


needs_testbed = pytest.mark.skipif(bool(_why_not()), reason=_why_not())
"""Skips a test where there can be no fabric."""


@contextmanager
def fabric(topology: Topology, name: str | None = None) -> Iterator[Bed]:
    """Give a fabric, and remove it in the end."""
    name = name or f"t{os.getpid()}x{next(_numbers)}"
    try:
        yield namespaces.up(topology, RATE, name, owner=os.getpid())
    finally:
        namespaces.down(name)
