"""The checker accepts what is right and finds each way in which a flow can be wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alltoall.check import flow as verify
from alltoall.check.flow import check_flow, check_topology, recompute_bound, shortest_distances
from alltoall.errors import VerificationError
from alltoall.flows import SolveSettings, solve
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.spec import build


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


def test_no_tolerance_still_allows_for_rounding_and_for_nothing_else(flow: Flow) -> None:
    """With a tolerance of zero a balance may be off by what adding up loses, and by no more."""
    for error, found in ((1e-9, True), (1e-15, False)):
        wrong = replace(flow, amount=changed(flow.amount, 5, flow.amount[5] * (1 + error)))
        # A length that nothing can have keeps the check from passing for another reason.
        wrong = replace(wrong, certificate=Certificate(-flow.certificate.lengths, flow.bound))
        with pytest.raises(VerificationError) as caught:
            check_flow(wrong, 0.0)
        assert ("not conserved" in str(caught.value)) == found


def test_one_entry_for_every_link_is_not_too_many(flow: Flow) -> None:
    """A group may name every link once, those that it does not use with nothing on them."""
    unused = np.setdiff1d(np.arange(flow.problem.topology.links), flow.link[: flow.start[1]])
    full = replace(
        flow,
        start=np.append(0, flow.start[1:] + len(unused)),
        link=np.concatenate((unused, flow.link)),
        amount=np.concatenate((np.zeros(len(unused)), flow.amount)),
    )
    assert full.start[1] == flow.problem.topology.links
    assert check_flow(full) == check_flow(flow)


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


def test_a_circulation_cannot_hide_a_missing_flow() -> None:
    """Two huge circulations whose rounding would cover the gap between them are refused."""
    ends = [(0, 1), (1, 0), (0, 2), (2, 3), (3, 2), (2, 4), (4, 0)]
    widths = [1e13, 1e13, 1.0, 1e13, 1e13, 1e3, 1.0]
    links = [(u, v, width) for (u, v), width in zip(ends, widths, strict=True)]
    matrix = np.zeros((5, 5))
    matrix[0, 4] = 1.0
    problem = Problem(Topology.from_links("hidden", 5, links), Demand(5, matrix))
    false = Flow(
        problem=problem,
        rate=1e3,
        source=np.array([0]),
        destination=None,
        start=np.array([0, 5]),
        link=np.array([0, 1, 3, 4, 5]),
        amount=np.array([1e13, 1e13, 1e13, 1e13, 1e3]),
        certificate=Certificate(np.ones(7), 1e-14),
        method="forged",
    )
    with pytest.raises(VerificationError, match="exceed all that their group sends"):
        check_flow(false)


def test_a_large_flow_does_not_hide_a_small_demand() -> None:
    """A destination that asks for a ten-billionth of another is still served or missed."""
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[0, 2] = 1e-10, 1.0
    problem = Problem(Topology.from_links("ring", 3, [(0, 1), (1, 2), (2, 0)]), Demand(3, matrix))
    check_flow(solve(problem, "grouped"))
    missed = Flow(
        problem=problem,
        rate=1.0,
        source=np.array([0]),
        destination=None,
        start=np.array([0, 2]),
        link=np.array([0, 1]),
        amount=np.array([1.0, 1.0]),
        certificate=Certificate(np.ones(3), 1e-3),
        method="forged",
    )
    with pytest.raises(VerificationError, match="demand not met"):
        check_flow(missed)


def test_lengths_that_overflow_prove_only_what_their_ratios_do(flow: Flow) -> None:
    """Lengths of 1e308 are lengths of 1, and a bound of 1e9 is refused."""
    huge = Certificate(np.full(flow.problem.topology.links, 1e308), 1e9)
    with pytest.raises(VerificationError, match="claims the bound"):
        check_flow(replace(flow, certificate=huge))


def test_the_length_that_is_none_is_named(flow: Flow) -> None:
    """Not a length of nothing before it, which is fine."""
    lengths = changed(changed(flow.certificate.lengths, 0, 0.0), 3, -1.0)
    topology = flow.problem.topology
    assert recompute_bound(flow.problem, lengths)[1][0].startswith(
        f"certificate: {topology.link_name(3)} has length -1"
    )


@pytest.mark.parametrize("lengths", [0.0, -1.0, np.nan])
def test_lengths_that_are_none_prove_nothing(flow: Flow, lengths: float) -> None:
    """The bound is that of no proof, whoever asks for it."""
    problem = flow.problem
    bound, trouble = recompute_bound(problem, np.full(problem.topology.links, lengths))
    assert bound == 0.0
    assert len(trouble) == 1


@pytest.mark.parametrize("method", ["decomposed", "grouped"])
def test_uneven_demands_are_held_each_against_its_own(method: str) -> None:
    """What a group may carry and must deliver follows its demand, be it large or small."""
    matrix = np.ones((4, 4)) - np.eye(4)
    matrix[0, 1], matrix[2, 3] = 3.0, 0.25
    found = solve(
        Problem(build("ring:4"), Demand(4, matrix)), method, SolveSettings(symmetry=False)
    )
    check_flow(found)
    largest = int(np.argmax(found.amount))
    more = changed(found.amount, largest, found.amount[largest] * 1.001)
    with pytest.raises(VerificationError, match="demand not met"):
        check_flow(replace(found, amount=more))


def through_a_switch(
    amount: float, per_commodity: bool, rate: float = 1.0, capacity: float = 1.0
) -> Flow:
    """Return a flow of two terminals by a switch; one link carries another amount than it gets."""
    ends = [(0, 2), (2, 1), (1, 2), (2, 0)]
    links = [(u, v, rate * capacity) for u, v in ends]
    return Flow(
        problem=Problem.all_to_all(Topology.from_links("switch", 3, links, [0, 1])),
        rate=rate,
        source=np.array([0, 1]),
        destination=np.array([1, 0]) if per_commodity else None,
        start=np.array([0, 2, 4]),
        link=np.arange(4),
        amount=rate * np.array([1.0, amount, 1.0, 1.0]),
        certificate=Certificate(np.ones(4), 1e-3),
        method="by hand",
    )


@pytest.mark.parametrize("rate", [1.0, 1e-3])
@pytest.mark.parametrize("per_commodity", [False, True])
def test_errors_up_to_the_tolerance_are_none(per_commodity: bool, rate: float) -> None:
    """Against the demand, at switches too, and against the capacity; beyond it they are."""
    check_flow(through_a_switch(1.0, per_commodity, rate), tolerance=1e-15)
    for amount in (1 + 5e-10, 1 - 5e-10):
        check_flow(through_a_switch(amount, per_commodity, rate))
    for error in (1.5e-9, 3e-9):
        with pytest.raises(VerificationError, match="not conserved"):
            check_flow(through_a_switch(1 + error, per_commodity, rate, capacity=2.0))
    with pytest.raises(VerificationError, match="1 links carry more than their capacity"):
        check_flow(through_a_switch(1 + 3e-9, per_commodity, rate), tolerance=2e-9)


@pytest.mark.parametrize("destination", [None, np.array([1])])
def test_a_flow_does_not_jump_between_switches(destination: Any) -> None:
    """What enters one and leaves another, at nodes that ask for nothing, is not conserved."""
    links = [(0, 2), (2, 3), (3, 1), (1, 0)]
    problem = Problem(
        Topology.from_links("switches", 4, links, [0, 1]),
        Demand(2, np.array([[0.0, 0.5], [0.0, 0.0]])),
    )
    jumping = Flow(
        problem=problem,
        rate=1.0,
        source=np.array([0]),
        destination=destination,
        start=np.array([0, 2]),
        link=np.array([0, 2]),
        amount=np.array([0.5, 0.5]),
        certificate=Certificate(np.ones(4), 1e-3),
        method="forged",
    )
    with pytest.raises(VerificationError, match=r"node [23] nets -?0\.5 of .* expected 0"):
        check_flow(jumping)
    whole = replace(jumping, start=np.array([0, 3]), link=np.arange(3), amount=np.full(3, 0.5))
    assert check_flow(whole).time == 1.0


@pytest.mark.parametrize("destination", [None, np.array([1, 0])])
def test_what_is_exact_needs_no_tolerance(destination: Any) -> None:
    """A full link, all of a group on one link, a bound and a time that are what is proven."""
    problem = Problem.all_to_all(Topology.from_links("pair", 2, [(0, 1), (1, 0)]))
    exact = Flow(
        problem=problem,
        rate=1.0,
        source=np.array([0, 1]),
        destination=destination,
        start=np.array([0, 1, 2]),
        link=np.array([0, 1]),
        amount=np.ones(2),
        certificate=Certificate(np.ones(2), 1.0),
        method="by hand",
    )
    report = check_flow(exact, tolerance=0.0)
    assert (report.time, report.bound, report.gap, report.max_load) == (1.0, 1.0, 0.0, 1.0)


def test_blocks_stay_small() -> None:
    """As many rows as fit, at least one; all of them, in order."""
    for width, sizes in ((0, [5]), (1, [5]), (2, [3, 2]), (3, [2, 2, 1]), (7, [1] * 5)):
        found = list(verify._blocks(np.arange(5), width, 6))
        assert [len(each) for each in found] == sizes
        assert np.concatenate(found).tolist() == [0, 1, 2, 3, 4]
