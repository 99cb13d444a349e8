"""The checker accepts what is right and finds each way in which a flow can be wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from a2aflow.errors import VerificationError
from a2aflow.ir.flow import Certificate, Flow
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.ir.verify import check_flow, check_topology, shortest_distances
from a2aflow.solve import solve
from a2aflow.topologies.spec import build


@pytest.fixture(scope="module", params=["decomposed", "grouped"])
def flow(request: pytest.FixtureRequest) -> Flow:
    """Return a correct flow, per commodity and per source."""
    return solve(Problem.all_to_all(build("hypercube:3")), request.param)


def changed(values: np.ndarray, index: int, value: float) -> np.ndarray:
    """Return a copy with one entry replaced."""
    copy = np.array(values)
    copy[index] = value
    return copy


FAULTS: dict[str, tuple[Callable[[Flow], Flow], str]] = {
    "one amount too small": (
        lambda f: replace(f, amount=changed(f.amount, 5, f.amount[5] * 0.999)),
        "not conserved",
    ),
    "one amount negative": (
        lambda f: replace(f, amount=changed(f.amount, 5, -0.1)),
        "not numbers >= 0",
    ),
    "one amount is not a number": (
        lambda f: replace(f, amount=changed(f.amount, 5, np.nan)),
        "not numbers >= 0",
    ),
    "one flow on another link": (
        lambda f: replace(f, link=changed(f.link, 5, (f.link[5] + 1) % f.problem.topology.links)),
        "not conserved",
    ),
    "a rate that the flow does not deliver": (
        lambda f: replace(f, rate=f.rate * 1.01),
        "not conserved or demand not met",
    ),
    "more than the capacity": (
        lambda f: replace(f, rate=f.rate * 1.5, amount=f.amount * 1.5),
        "more than their capacity",
    ),
    "a source twice": (
        lambda f: replace(f, source=changed(f.source, 0, f.source[-1])),
        "exactly one per",
    ),
    "a bound that the lengths do not prove": (
        lambda f: replace(f, certificate=Certificate(f.certificate.lengths, f.bound * 1.01)),
        "its lengths prove",
    ),
    "a negative length": (
        lambda f: replace(
            f, certificate=Certificate(changed(f.certificate.lengths, 3, -1.0), f.bound)
        ),
        "has length -1",
    ),
    "no lengths": (
        lambda f: replace(f, certificate=Certificate(np.zeros(f.problem.topology.links), f.bound)),
        "proves nothing",
    ),
}


def test_a_correct_flow_passes(flow: Flow) -> None:
    """The report repeats the time and the bound from the numbers alone."""
    report = check_flow(flow)
    assert report.time == pytest.approx(4.0)
    assert report.bound == pytest.approx(4.0)
    assert report.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(flow: Flow, fault: str) -> None:
    """Each kind of tampering is named."""
    tamper, words = FAULTS[fault]
    with pytest.raises(VerificationError, match=words):
        check_flow(tamper(flow))


def test_all_violations_are_reported_at_once(flow: Flow) -> None:
    """A flow that is wrong in two ways is told both."""
    bad = replace(flow, rate=flow.rate * 2, certificate=Certificate(flow.certificate.lengths, 99.0))
    with pytest.raises(VerificationError) as caught:
        check_flow(bad)
    assert len(caught.value.violations) >= 2


def test_a_topology_must_be_strongly_connected() -> None:
    """Both directions are checked."""
    check_topology(build("genkautz:n=9,d=2"))
    with pytest.raises(VerificationError, match="cannot reach terminal 0"):
        check_topology(Topology.from_links("sink", 3, [(0, 1), (1, 0), (1, 2)]))


def test_distances_on_a_weighted_graph() -> None:
    """Bellman-Ford finds the cheap detour and passes zero lengths."""
    tail, head = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 3, 0])
    lengths = np.array([1.0, 0.0, 1.0, 0.5, 2.0])
    found = shortest_distances(4, tail, head, lengths, np.array([0, 3]))
    assert found.tolist() == [[0.0, 1.0, 0.0, 0.5], [2.0, 3.0, 2.0, 0.0]]
