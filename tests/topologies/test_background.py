"""What others use of the links is taken away from them, and nothing left is an error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.errors import FormatError, InputError, UsageError
from alltoall.topologies.background import background_rates, without_background

RING = alltoall.topology("ring:4")
FLOW = alltoall.solve(RING)
ROUTES = alltoall.route(RING)


def test_rates_of_links_however_they_are_given(tmp_path: Path) -> None:
    """Lines, a saved flow, saved routes, nouns or an array; a share scales a file."""
    lines = tmp_path / "load.csv"
    lines.write_text("tail,head,rate\n0,1,0.5  # a neighbour\n\n2,3,0.25\n0,1,0.1\n")
    rates = background_rates(lines, RING)
    used = {(int(RING.tail[at]), int(RING.head[at])): rates[at] for at in np.flatnonzero(rates)}
    assert used == pytest.approx({(0, 1): 0.6, (2, 3): 0.25})
    assert background_rates(f"{lines}@0.5", RING).tolist() == pytest.approx((rates / 2).tolist())
    FLOW.save(tmp_path / "flow.json")
    ROUTES.save(tmp_path / "routes.npz")
    for given, expected in (
        (tmp_path / "flow.json", FLOW.mean_load()),
        (FLOW, FLOW.mean_load()),
        (tmp_path / "routes.npz", ROUTES.load() / ROUTES.time),
        (ROUTES, ROUTES.load() / ROUTES.time),
    ):
        assert background_rates(given, RING).tolist() == pytest.approx(expected.tolist())
    left = without_background(RING, rates).capacity
    assert left.tolist() == pytest.approx((1 - rates).tolist())
    assert without_background(RING, None) is RING


def test_half_of_every_link_takes_twice_as_long(tmp_path: Path) -> None:
    """For all that is computed, and for what is simulated; the bound knows it too."""
    half = np.full(RING.links, 0.5)
    assert alltoall.solve(RING, background=half).time == pytest.approx(2 * FLOW.time)
    assert alltoall.route(RING, background=half).time == pytest.approx(2 * ROUTES.time)
    schedule = alltoall.schedule(RING)
    assert alltoall.schedule(RING, background=half).time == pytest.approx(2 * schedule.time)
    alltoall.lower(schedule, to="messages").save(tmp_path / "messages")
    cases: tuple[Any, ...] = ((schedule, None), (ROUTES, None), (tmp_path / "messages", RING))
    for subject, topology in cases:
        found = alltoall.simulate(
            subject, link_bandwidth=1e9, bytes=10**6, background=half, topology=topology
        )
        assert found.seconds == pytest.approx(4e-3)
        assert found.bound_seconds == pytest.approx(4e-3)


def test_parallel_links_share_a_rate(tmp_path: Path) -> None:
    """As their capacities are."""
    double = alltoall.Topology.from_links("two", 2, [(0, 1, 1), (0, 1, 3), (1, 0, 1)])
    path = tmp_path / "load"
    path.write_text("0 1 2\n")
    assert background_rates(path, double).tolist() == [0.5, 1.5, 0.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0,1\n", "line 1: .*; expected tail,head,rate"),
        ("0,9,1\n", "line 1: .*9"),
        ("0,2,1\n", "expected a link of ring:4"),
        ("0,1,-1\n", "a rate of 0 or more"),
        ("0,1,fast\n", "line 1: could not convert"),
        ("{}", "JSON of neither flow nor routes"),
    ],
)
def test_files_that_are_no_background(text: str, expected: str, tmp_path: Path) -> None:
    """The line is named."""
    path = tmp_path / "load"
    path.write_text(text)
    with pytest.raises(FormatError, match=expected):
        background_rates(path, RING)


def test_what_cannot_be_taken_away(tmp_path: Path) -> None:
    """All of a link, more links than there are, what is on another topology, or no load at all."""
    with pytest.raises(InputError, match=r"uses 1 of 1 on link 0 .*which leaves nothing \(8 such"):
        without_background(RING, np.ones(8))
    with pytest.raises(InputError, match=r"shape \(3,\); expected a rate"):
        background_rates(np.ones(3), RING)
    with pytest.raises(InputError, match="expected the 10 of ring:5"):
        background_rates(FLOW, alltoall.topology("ring:5"))
    alltoall.schedule(RING).save(tmp_path / "schedule.json")
    with pytest.raises(UsageError, match="a Schedule in the place of a background"):
        background_rates(tmp_path / "schedule.json", RING)
    with pytest.raises(UsageError, match="background @much"):
        background_rates(f"{tmp_path / 'load'}@much", RING)
