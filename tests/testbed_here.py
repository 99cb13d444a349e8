"""Whether this machine can have a fabric of namespaces, and one that is gone after a test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from a2aflow.errors import MissingComponentError
from a2aflow.ir.topology import Topology
from a2aflow.testbed.namespaces import Bed, down, require_testbed, up

RATE = 20e6 / 8
"""Twenty megabits per second: what eight ranks on two busy cores can still fill."""


def _why_not() -> str:
    try:
        require_testbed()
    except MissingComponentError as error:
        return f"no testbed: {error}"
    return ""


WHY_NOT = _why_not()
needs_testbed = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@contextmanager
def fabric(topology: Topology, name: str, rate: float = RATE) -> Iterator[Bed]:
    """Give a fabric; whatever happens, it is removed."""
    try:
        yield up(topology, rate, name)
    finally:
        down(name)
