"""Every violation that a checker can find has a forged artefact in which it is all that is wrong.

The messages are read from the source of the checkers: a new check without a forgery fails here.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alltoall.check import flow as verify
from alltoall.check import jobs as verify_jobs
from alltoall.check import routes as verify_routes
from alltoall.check import schedule as verify_schedule
from alltoall.check.flow import check_flow, check_topology
from alltoall.check.jobs import check_job_rates
from alltoall.check.program import messages as verify_messages
from alltoall.check.program.messages import check_messages
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import VerificationError
from alltoall.flows import SolveSettings, solve
from alltoall.flows.jobs import fair_job_rates
from alltoall.flows.methods import solve_master
from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.jobs import Job, JobRates
from alltoall.ir.messages import RANGE, Messages, RankMessages
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering.programs.messages import messages_of
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings
from alltoall.topologies.operators import set_capacities
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

CUBE = build("hypercube:3")
LINK = {
    ends: link for link, ends in enumerate(zip(CUBE.tail.tolist(), CUBE.head.tolist(), strict=True))
}
PROBLEM = Problem.all_to_all(CUBE)
FLOW = solve(PROBLEM, "grouped", SolveSettings(symmetry=False))
PAIRS = solve(PROBLEM, "decomposed", SolveSettings(symmetry=False))
MESH = solve_master(Problem.all_to_all(build("mesh:3x3")), SolveSettings())
ROUTES = route_single(PROBLEM, RouteSettings())
SCHEDULE = hop_schedule(build("ring:5"), 2)
TWO_WAY = [(0, 1), (1, 0), (1, 2), (2, 1)]

MESSAGES = messages_of(hop_schedule(build("ring:5")))

HUB = hop_schedule(Topology.from_edges("hub", 4, [(0, 3), (1, 3), (2, 3)], terminals=[0, 1, 2]))


JOBS = fair_job_rates(
    set_capacities(build("mesh:4"), {(0, 1): 2.0, (1, 0): 2.0}),
    [Job("pair", Demand.of_groups(4, [(0, 1)])), Job("all", Demand(4))],
    SolveSettings(),
)
"""Two levels: the middle of a line blocks all, and leaves more to the pair at its end."""

Made = Flow | Routes | Schedule | Topology | Messages | JobRates


def check_told(messages: Messages) -> None:
    """Raise what the judge of messages tells."""
    outcome = check_messages(messages)
    if not outcome.correct:
        raise VerificationError(messages.name, outcome.problems())


CHECKS: dict[type, Callable[[Any], object]] = {
    Flow: check_flow,
    Messages: check_told,
    Routes: check_routes,
    Schedule: check_schedule,
    Topology: check_topology,
    JobRates: check_job_rates,
}


def changed(values: Any, index: int, value: float) -> Any:
    """Return a copy with one entry replaced."""
    copy = np.array(values)
    copy[index] = value
    return copy


def with_capacity(value: float) -> Topology:
    """Return a topology with a capacity that its construction would refuse."""
    topology = Topology.from_links("ring", 3, TWO_WAY)
    object.__setattr__(topology, "capacity", changed(topology.capacity, 2, value))
    return topology


def with_lengths(noun: Any, lengths: Any, bound: float = 0.0) -> Any:
    """Return an artefact with another certificate, which claims nothing if not said otherwise."""
    return replace(noun, certificate=Certificate(np.asarray(lengths, dtype=float), bound))


def weakly(noun: Any) -> Any:
    """Return an artefact with a certificate that proves little: one link is long."""
    lengths = np.ones(len(noun.certificate.lengths))
    lengths[0] = 30.0
    return with_lengths(noun, lengths, 1e-9)


def overclaimed(noun: Any) -> Any:
    """Return an artefact that claims more than its lengths prove."""
    return with_lengths(noun, noun.certificate.lengths, noun.bound * 1.001)


def with_path(source: int, destination: int, path: list[tuple[int, int]]) -> Routes:
    """Return the routes of the cube with one of them over other links."""
    which = int(np.flatnonzero((ROUTES.source == source) & (ROUTES.destination == destination))[0])
    begin, end = int(ROUTES.start[which]), int(ROUTES.start[which + 1])
    links = [LINK[ends] for ends in path]
    start = np.array(ROUTES.start)
    start[which + 1 :] += len(links) - (end - begin)
    link = np.concatenate((ROUTES.link[:begin], links, ROUTES.link[end:]))
    return replace(ROUTES, start=start, link=link)


def with_group_longer_than_all_links() -> Flow:
    """Return a flow whose first group has an entry of nothing for each link besides its own."""
    links = CUBE.links
    return replace(
        FLOW,
        start=np.append(0, FLOW.start[1:] + links),
        link=np.concatenate((np.arange(links), FLOW.link)),
        amount=np.concatenate((np.zeros(links), FLOW.amount)),
    )


def circulating() -> Flow:
    """Return a flow at a tenth of its rate, which also goes round between two nodes, a lot."""
    flow: Flow = weakly(replace(FLOW, rate=FLOW.rate / 10, amount=FLOW.amount / 10))
    more = 7.01 * flow.rate
    return replace(
        flow,
        start=np.append(0, flow.start[1:] + 2),
        link=np.concatenate(([LINK[6, 7], LINK[7, 6]], flow.link)),
        amount=np.concatenate(([more, more], flow.amount)),
    )


def sends_with(step: dict[int, int]) -> Schedule:
    """Return the schedule with some sends in other steps."""
    steps = np.array(SCHEDULE.step)
    for send, at in step.items():
        steps[send] = at
    order = np.argsort(steps, kind="stable")
    keys = ("source", "destination", "chunk", "link")
    moved: dict[str, Any] = {key: getattr(SCHEDULE, key)[order] for key in keys}
    return replace(SCHEDULE, step=steps[order], **moved)


def without_send() -> Schedule:
    """Return the schedule without the only send of a chunk, from 4 to its neighbour 3."""
    (send,) = np.flatnonzero(
        (SCHEDULE.source == 4) & (SCHEDULE.destination == 3) & (SCHEDULE.chunk == 1)
    )
    keys = ("step", "source", "destination", "chunk", "link")
    fewer: dict[str, Any] = {key: np.delete(getattr(SCHEDULE, key), send) for key in keys}
    return replace(SCHEDULE, **fewer)


def with_sends(*rows: tuple[int, int, int, int, int]) -> Schedule:
    """Return the schedule with more sends: step, source, destination, chunk, link."""
    keys = ("step", "source", "destination", "chunk", "link")
    columns = [getattr(SCHEDULE, key) for key in keys]
    table = np.concatenate((np.stack(columns, axis=1), np.array(rows)))
    table = table[np.argsort(table[:, 0], kind="stable")]
    steps = int(table[:, 0].max()) + 1
    return replace(SCHEDULE, steps=steps, **dict(zip(keys, table.T, strict=True)))


def ring_link(tail: int, head: int) -> int:
    """Return a link of the ring of the schedule."""
    topology = SCHEDULE.problem.topology
    return int(np.flatnonzero((topology.tail == tail) & (topology.head == head))[0])


def forward_layers(one: int, two: int) -> Routes:
    """Return the routes of a ring in two layers, of one direction each."""
    routes = route_single(Problem.all_to_all(build("ring:6")), RouteSettings())
    topology, first = routes.problem.topology, routes.link[routes.start[:-1]]
    forward = (topology.head[first] - topology.tail[first]) % 6 == 1
    return replace(routes, layer=np.where(forward, one, two))


def turned(matrix: Any = None, terminals: list[int] | None = None) -> Flow:
    """Return a flow on a ring of four that claims to be the same after a turn by one."""
    ends = [(node, (node + 1) % 4) for node in range(4)]
    ring = Topology.from_links("ring", 4, ends + [(v, u) for u, v in ends], terminals)
    demand = Demand(len(ring.terminals), matrix)
    flow = solve(Problem(ring, demand), "grouped", SolveSettings(symmetry=False))
    return replace(flow, generators=np.array([[1, 2, 3, 0]]))


def with_ranks(messages: Messages, changes: dict[int, dict[str, Any]]) -> Messages:
    """Return messages with some fields of some ranks changed."""
    parts = (replace(part, **changes.get(part.rank, {})) for part in messages.ranks)
    return replace(messages, ranks=tuple(parts))


def without_message(rank: int, sends: bool) -> Messages:
    """Return messages of which one end, the first of its kind in the last step, is missing."""
    part = MESSAGES.ranks[rank]
    gone = int(np.flatnonzero((part.sends == sends) & (part.step == part.step[-1]))[0])
    first, last = int(part.first[gone]), int(part.first[gone + 1])
    begin, end = int(part.waits_first[gone]), int(part.waits_first[gone + 1])
    later = np.arange(part.messages) > gone
    fewer: dict[str, Any] = {
        "first": np.delete(part.first, gone + 1) - (last - first) * later,
        "waits": np.delete(part.waits, slice(begin, end)),
        "waits_first": np.delete(part.waits_first, gone + 1) - (end - begin) * later,
    }
    ranges = {key: np.delete(getattr(part, key), slice(first, last)) for key in RANGE}
    ends = {key: np.delete(getattr(part, key), gone) for key in ("step", "peer", "sends")}
    return with_ranks(MESSAGES, {rank: fewer | ranges | ends})


def without_first_wait(part: RankMessages) -> dict[str, Any]:
    """Return the waits of a rank without the first one for its message 0."""
    gone = int(np.flatnonzero(part.waits == 0)[0])
    fewer = part.waits_first - (part.waits_first > gone)
    return {"waits": np.delete(part.waits, gone), "waits_first": fewer}


def of_pair(part: RankMessages, source: int, to: int, peer: int) -> int:
    """Return the range in which a rank and a peer exchange the chunk of a pair."""
    at = np.repeat(part.peer, np.diff(part.first))
    (found,) = np.flatnonzero((part.source == source) & (part.destination == to) & (at == peer))
    return int(found)


def with_slots(messages: Messages, key: str, slots: dict[tuple[int, ...], int]) -> Messages:
    """Return messages with other slots, by source, destination, a rank that is told, and its peer.

    There is one slot more than before.
    """
    parts = list(messages.ranks)
    for (source, to, rank, peer), slot in slots.items():
        which = of_pair(parts[rank], source, to, peer)
        column = changed(getattr(parts[rank], key), which, slot)
        parts[rank] = replace(parts[rank], scratch=parts[rank].scratch + 1, **{key: column})
    return replace(messages, ranks=tuple(parts))


def over_each_other() -> Messages:
    """Return messages by which two chunks of one message come to lie in one place."""
    messages = messages_of(hop_schedule(build("ring:7")))
    part = messages.ranks[1]
    slot = int(part.to_slot[of_pair(part, 0, 2, 0)])
    there = with_slots(messages, "to_slot", {(0, 3, 1, 0): slot, (0, 3, 0, 1): slot})
    return with_slots(there, "from_slot", {(0, 3, 1, 2): slot, (0, 3, 2, 1): slot})


SKEWED = np.ones((4, 4)) - np.eye(4)
SKEWED[0, 1] = 3.0

PASSING = "1 useless sends of chunks that are at their destination already; the first: step 2"
"""Never alone: what leaves its destination comes back, or ends elsewhere."""

FORGERIES: dict[str, Callable[[], Sequence[Made]]] = {
    r"levels \[0\]; expected jobs on each of 2": lambda: [replace(JOBS, level=np.array([0, 0]))],
    "a rate that is not a positive number": lambda: [
        replace(JOBS, rate=JOBS.rate * [wrong, 1.0]) for wrong in (0.0, -1.0, np.inf, np.nan)
    ],
    "a length that is not a number of 0 or more": lambda: [
        replace(JOBS, lengths=JOBS.lengths * wrong) for wrong in (-1.0, np.nan)
    ],
    "the flow carries .* from node 0 to node 1, where the rates of all jobs need": lambda: [
        replace(JOBS, rate=JOBS.rate * [1.01, 1.0])
    ],
    "level 1 claims that no more than .* can be had, but its lengths prove": lambda: [
        replace(JOBS, bound=JOBS.bound * [1.0, 0.9])
    ],
    "level 0: its lengths ask nothing of job all, which they should block": lambda: [
        replace(JOBS, lengths=JOBS.lengths * [[0.0], [1.0]])
    ],
    "a capacity is not positive and finite": lambda: [
        with_capacity(0.0),
        with_capacity(-1.0),
        with_capacity(np.inf),
        with_capacity(np.nan),
    ],
    "terminal 2 cannot be reached from terminal 0": lambda: [
        Topology.from_links("sink", 3, [(0, 1), (1, 0), (2, 1)])
    ],
    "terminal 2 cannot reach terminal 0": lambda: [
        Topology.from_links("sink", 3, [(0, 1), (1, 0), (1, 2)])
    ],
    r"certificate: link 3 \(\d -> \d\) has length (-1|nan|inf), not a number >= 0": lambda: [
        with_lengths(
            noun, changed(noun.certificate.lengths, 3, value), 1e-9 * isinstance(noun, Flow)
        )
        for noun in (FLOW, PAIRS, MESH, ROUTES, SCHEDULE)
        for value in (-1.0, np.nan, np.inf)
    ],
    "certificate: all lengths are zero, which proves nothing": lambda: [
        with_lengths(noun, 0 * noun.certificate.lengths) for noun in (FLOW, ROUTES, SCHEDULE)
    ],
    "certificate: its lengths give 0, which proves nothing": lambda: [
        with_lengths(noun, changed(0 * noun.certificate.lengths, 5, 1.0)) for noun in (FLOW, ROUTES)
    ],
    "certificate: the lengths differ between links that are symmetric": lambda: [
        with_lengths(
            MESH,
            changed(
                MESH.certificate.lengths,
                int(np.argmax(MESH.certificate.lengths)),
                1.001 * MESH.certificate.lengths.max(),
            ),
            1e-9,
        )
    ],
    "the rate is (0|-1|inf|nan); expected a positive number": lambda: [
        replace(FLOW, rate=value) for value in (0.0, -1.0, np.inf, np.nan)
    ],
    r"1 amounts are not numbers >= 0; the first is (-0.1|nan|inf) on link \d+": lambda: [
        replace(noun, amount=changed(noun.amount, 5, value))
        for noun in (FLOW, PAIRS, MESH)
        for value in (-0.1, np.nan, np.inf)
    ],
    r"a flow from node 0 has \d+ entries for 24 links; one each suffices": lambda: [
        with_group_longer_than_all_links()
    ],
    r"8 groups \(7 distinct, 8 with a demand\) where the demand has 8; .* per source": lambda: [
        replace(FLOW, source=changed(FLOW.source, 0, FLOW.source[-1]))
    ],
    r"56 groups \(56 distinct, 55 with a demand\) where the demand has 56; .* per pair": lambda: [
        replace(PAIRS, destination=changed(PAIRS.destination, 0, PAIRS.source[0]))
    ],
    r"\d+ links carry more than their capacity; the worst is link \d+ .* over 1": lambda: [
        weakly(replace(noun, rate=noun.rate * 1.001, amount=noun.amount * 1.001))
        for noun in (FLOW, PAIRS)
    ],
    "flow is not conserved or demand not met: node . nets .* from node ., expected": lambda: [
        replace(noun, amount=changed(noun.amount, 5, noun.amount[5] * 0.999))
        for noun in (FLOW, PAIRS, MESH)
    ],
    r"2 amounts exceed all that their group sends; the first is 0.\d+ on link \d+": lambda: [
        circulating()
    ],
    r"(certificate: )?claims the bound \S+ (but )?its lengths prove \S+": lambda: [
        overclaimed(noun) for noun in (FLOW, PAIRS, MESH, ROUTES)
    ],
    "generator 0 is not a permutation of the nodes": lambda: [
        replace(MESH, generators=np.array([[0, 1, 2, 3, 4, 5, 6, 7, 7]]))
    ],
    "generator 0 moves a terminal to a node that is none": lambda: [turned(None, [0, 2])],
    "generator 0 does not map links to links of the same capacity": lambda: [
        replace(MESH, generators=(np.arange(9)[None, :] + 1) % 9)
    ],
    "generator 0 does not keep the demand": lambda: [turned(SKEWED)],
    r"route \d+ from node 0 to node 3 has 8 links; a path in 8 nodes has at most 7": lambda: [
        with_path(0, 3, [(0, 1), (1, 0)] * 3 + [(0, 1), (1, 3)])
    ],
    r"1 routes: the first, route \d+ from node 0 to node 3, does not start at its source": lambda: [
        with_path(0, 3, [(5, 1), (1, 3)])
    ],
    "1 routes: the first, .* from node 0 to node 3, does not end at its destination": lambda: [
        with_path(0, 3, [(0, 1), (1, 5)])
    ],
    "1 routes: the first, .* from node 0 to node 3, is not connected": lambda: [
        with_path(0, 3, [(0, 1), (2, 3)])
    ],
    "1 routes: the first, .* from node 0 to node 3, visits a node twice": lambda: [
        with_path(0, 3, [(0, 1), (1, 0), (0, 2), (2, 3)])
    ],
    r"1 weights are not positive; the first is (0|-1|nan|inf), route 3 from node": lambda: [
        replace(ROUTES, weight=changed(ROUTES.weight, 3, value))
        for value in (0.0, -1.0, np.nan, np.inf)
    ],
    "the routes from node . to node . carry (0.5|1.5|0|2) of the demand [01]": lambda: [
        replace(ROUTES, weight=changed(ROUTES.weight, 3, 0.5), denominator=2),
        replace(ROUTES, weight=changed(ROUTES.weight, 3, 1.5), denominator=2),
    ],
    "a weight is not a multiple of 1/3": lambda: [
        replace(
            weakly(ROUTES),
            problem=Problem(CUBE, Demand(8, (np.ones((8, 8)) - np.eye(8)) / 2)),
            weight=ROUTES.weight / 2,
            denominator=3,
        )
    ],
    r"routes that change layer can deadlock: .* a cycle near link \d+ \(.*\) in layer 4": lambda: [
        replace(ring, layer=None, hop_layer=changed(np.full(len(ring.link), 4), longest, 6))
        for ring in [forward_layers(0, 1)]
        for longest in [ring.start[np.argmax(ring.hops)]]
    ],
    r"layer 3 can deadlock: its channel dependencies have a cycle near .* more layer\)": lambda: [
        forward_layers(3, 8)
    ],
    "2 sends of chunks that are not there; the first: step 0 sends chunk 0 from node 0": lambda: [
        sends_with(
            {
                int(send): 0
                for send in np.flatnonzero((SCHEDULE.step == 1) & (SCHEDULE.source == 0))[:2]
            }
        )
    ],
    r"1 of 40 chunks never arrive; the first: chunk 1 from node 4 to node 3": lambda: [
        without_send()
    ],
    "1 useless sends of chunks to a node that has them already; the first: step 0 sends": lambda: [
        with_sends((0, 0, 1, 1, ring_link(0, 1)))
    ],
    PASSING: lambda: [with_sends((2, 0, 1, 1, ring_link(1, 2)))],
    "1 useless sends of chunks to a node that does not send them on; the first: step 2": lambda: [
        with_sends((2, 0, 2, 1, ring_link(0, 4))),
    ],
    "chunk 1 from node 0 to node 1 is sent 5 times; a path has at most 4 links": lambda: [
        with_sends(*((0, 0, 1, 1, ring_link(0, 1)),) * 4)
    ],
    r"\d+ sends cannot deliver 1000 chunks of all shards; each has to be sent at least": lambda: [
        replace(SCHEDULE, chunks=Chunks(5, 50))
    ],
    r"claims the bound \S+ its lengths prove": lambda: [
        overclaimed(replace(SCHEDULE, certificate=Certificate(np.ones(10), 3.0)))
    ],
    "step 1: rank 0 does not send a message that rank 1 receives": lambda: [
        without_message(0, sends=True)
    ],
    "step 1: rank 1 sends a message that rank 0 does not receive": lambda: [
        without_message(0, sends=False)
    ],
    "step 0: rank 0 and rank 1 do not tell the same of what goes from the one": lambda: [
        with_slots(MESSAGES, "to_slot", {(0, 2, 0, 1): 1})
    ],
    r"rank 1, message \d+: scratch \d is touched without a wait for message 0, which": lambda: [
        with_ranks(MESSAGES, {1: without_first_wait(MESSAGES.ranks[1])})
    ],
    r"rank 1, message 0: scratch 0 is written twice": lambda: [over_each_other()],
    "step 1: 1 chunks are not where they are read, the first at rank 1": lambda: [
        with_slots(MESSAGES, "from_slot", {(0, 2, 1, 2): 2, (0, 2, 2, 1): 2})
    ],
}
"""By message, what is forged so that a checker has this to say and nothing else."""

UNREACHABLE = "the time .* is below the proven bound"
"""No artefact that passes all other checks can have it: weak duality is what a bound means. It is
there for a fault in the checkers themselves, so it is forged by one."""

SOURCES = (
    *(verify, verify_routes, verify_schedule, verify_messages),
    verify_jobs,
)


def violations(noun: Made) -> tuple[str, ...]:
    """Return what the checker finds wrong."""
    with pytest.raises(VerificationError) as caught:
        CHECKS[type(noun)](noun)
    return caught.value.violations


@pytest.mark.parametrize("words", FORGERIES)
def test_a_forgery_is_found_and_nothing_else(words: str) -> None:
    """One violation, in these words."""
    for forged in FORGERIES[words]():
        found, *others = violations(forged)
        assert re.match(words, found), found
        assert len(others) == (words == PASSING), others


@pytest.mark.parametrize(
    ("noun", "module"),
    [
        (FLOW, verify),
        (PAIRS, verify),
        (MESH, verify),
        (ROUTES, verify_routes),
        (SCHEDULE, verify_schedule),
    ],
)
def test_a_time_below_the_bound_is_a_violation(
    noun: Made, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ever lengths prove more than is possible, that is said rather than a negative gap."""
    CHECKS[type(noun)](noun)
    monkeypatch.setattr(module, "recompute_bound", lambda *_: (1e3, []))
    (found,) = violations(noun)
    assert re.match(UNREACHABLE, found)


def templates(module: Any) -> Iterator[str]:
    """Yield every message of a checker, with a wild card for what is filled in."""
    tree = ast.parse(Path(module.__file__).read_text())
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in node.values
        for part in ast.walk(value)
    }
    said: list[ast.expr] = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Yield) and node.value is not None
    ]
    said += [node for node in ast.walk(tree) if isinstance(node, ast.List)]
    said += [
        key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if key
    ]
    said += [
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append"
        for argument in node.args
    ]
    for value in said:
        for node in ast.walk(value):
            if id(node) in inner:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else None for part in node.values
                )
                yield "".join(".*" if part is None else re.escape(str(part)) for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.escape(node.value)


def test_every_message_of_the_checkers_is_forged() -> None:
    """A check that is added without a forgery is missing here."""
    found = [said for make in FORGERIES.values() for each in make() for said in violations(each)]
    found.append("the time 1 is below the proven bound 2")
    messages = {each for module in SOURCES for each in templates(module)}
    assert len(messages) >= 30
    missing = [each for each in messages if not any(re.search(each, said) for said in found)]
    assert not missing
