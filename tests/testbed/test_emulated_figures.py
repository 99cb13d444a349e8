"""Figures whose points are runs on emulated links: each kind of point can be measured."""

import pytest
from fabrics import needs_testbed

from alltoall.figures import FIGURES
from alltoall.figures.figure import Asked
from alltoall.figures.routed_schedules import LIBRARY

pytestmark = needs_testbed


@pytest.mark.parametrize(
    ("figure", "way"), [("link-schedules", "ours"), ("routed-schedules", LIBRARY)]
)
def test_a_point_is_measured(figure: str, way: str) -> None:
    """Beside the library's own all-to-all, in GB/s."""
    point = {"fabric": "K4,4", "way": way, "kind": "measured"}
    rows = FIGURES[figure].measure(point, Asked("sample", testbed=True))
    assert rows
    assert all(row["measured"] > 0 for row in rows)
