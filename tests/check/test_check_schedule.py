"""The schedule checker finds each way in which a schedule can be wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alltoall.check import schedule as verify_schedule
from alltoall.check.schedule import check_schedule
from alltoall.errors import FormatError, InputError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import KEYS, hop_schedule, uneven_hops, with_moves

CUBE = hop_schedule(build("hypercube:3"), 2)
HOSTED = hop_schedule(with_host_bandwidth(build("ring:4"), 2.0), 1)


def without(schedule: Schedule, send: int) -> Schedule:
    """Return the schedule with one send left out."""
    keys = ("step", "source", "destination", "chunk", "link")
    fewer: dict[str, Any] = {key: np.delete(getattr(schedule, key), send) for key in keys}
    return replace(schedule, **fewer)


@pytest.mark.parametrize("schedule", [CUBE, HOSTED], ids=["cube", "hosted"])
def test_a_correct_schedule_passes(schedule: Schedule) -> None:
    """The time is the sum of the largest loads."""
    report = check_schedule(schedule)
    assert report.time == pytest.approx(schedule.time)
    assert report.time == pytest.approx(float(dense_times(schedule).sum()))
    assert report.gap == pytest.approx(report.time / report.bound - 1)
    assert (report.steps, report.sends) == (schedule.steps, schedule.sends)


@pytest.mark.parametrize("narrow", [0, 1])
def test_every_send_takes_time(narrow: int) -> None:
    """The first and the last too: of two links, each with one send, the narrow one sets it."""
    widths = np.where(np.arange(2) == narrow, 0.25, 1.0).tolist()
    links = [(0, 1, widths[0]), (1, 0, widths[1])]
    assert check_schedule(hop_schedule(Topology.from_links("pair", 2, links), 1)).time == 4.0


def dense_times(schedule: Schedule) -> Any:
    """Return the time of each step from a table of all steps and links, send by send."""
    topology = schedule.problem.topology
    table = np.zeros((schedule.steps, topology.links))
    counts = schedule.chunk_counts()
    demand = schedule.problem.demand.rows(np.arange(len(topology.terminals)))
    for step, link, *pair in zip(
        schedule.step, schedule.link, schedule.source, schedule.destination, strict=True
    ):
        table[step, link] += demand[tuple(pair)] / counts[tuple(pair)] / topology.capacity[link]
    return table.max(axis=1)


def uneven() -> Schedule:
    """Return a schedule of shards of different sizes, over links of different capacities."""
    ends = [(u, (u + 1) % 5) for u in range(5)]
    edges = [(*pair, 1.0 + 0.5 * index) for index, pair in enumerate(ends)]
    matrix = np.round(np.random.default_rng(5).uniform(0, 1, (5, 5)), 1)
    matrix[matrix < 0.3] = 0.0
    np.fill_diagonal(matrix, 0.0)
    problem = Problem(Topology.from_edges("uneven", 5, edges), Demand(5, matrix))
    return uneven_hops(problem, Chunks.of_demand(problem.demand, 4))


@pytest.mark.parametrize("block", [1, 2, 7, 4_000_000])
@pytest.mark.parametrize("schedule", [CUBE, HOSTED, uneven()], ids=["cube", "hosted", "uneven"])
def test_blocks_do_not_change_what_is_found(
    schedule: Schedule, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report, and the words for what is wrong, are those of the whole."""
    whole = check_schedule(schedule)
    assert whole.time == pytest.approx(float(dense_times(schedule).sum()))
    late = replace(schedule, step=np.full(schedule.sends, schedule.steps - 1))
    with pytest.raises(VerificationError) as at_once:
        check_schedule(late)
    monkeypatch.setattr(verify_schedule, "BLOCK", block)
    assert check_schedule(schedule).time == pytest.approx(whole.time)
    with pytest.raises(VerificationError) as in_blocks:
        check_schedule(late)
    assert in_blocks.value.violations == at_once.value.violations


def test_every_send_that_is_too_early_and_every_lost_chunk_is_counted() -> None:
    """By hand, over all sends of a schedule in which everything goes in the first step."""
    schedule = uneven()
    together = replace(schedule, step=np.zeros_like(schedule.step))
    start = schedule.problem.topology.tail[schedule.link]
    early = np.flatnonzero(start != schedule.problem.topology.terminals[schedule.source])
    with pytest.raises(VerificationError) as caught:
        check_schedule(together)
    first = early[0]
    assert caught.value.violations == (
        f"{len(early)} sends of chunks that are not there; the first: step 0 sends chunk "
        f"{schedule.chunk[first]} from node {schedule.source[first]} to node "
        f"{schedule.destination[first]} over "
        f"{schedule.problem.topology.link_name(int(schedule.link[first]))}",
    )
    pair = (schedule.source == schedule.source[early[-1]]) & (
        schedule.destination == schedule.destination[early[-1]]
    )
    ends = schedule.problem.topology.head[schedule.link] == schedule.destination
    gone = np.flatnonzero(pair & ends)
    keys = ("step", "source", "destination", "chunk", "link")
    fewer: dict[str, Any] = {key: np.delete(getattr(schedule, key), gone) for key in keys}
    with pytest.raises(VerificationError) as caught:
        check_schedule(replace(schedule, **fewer))
    assert caught.value.violations[-1:] == (
        f"{len(gone)} of {schedule.chunk_counts().sum()} chunks never arrive; the first: chunk 0 "
        f"from node {schedule.source[early[-1]]} to node {schedule.destination[early[-1]]}",
    )


@pytest.mark.parametrize("block", [1, 2, 4_000_000])
@pytest.mark.parametrize("slow", [0, 1])
def test_every_send_counts(slow: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it the first or the last one that takes the longest."""
    monkeypatch.setattr(verify_schedule, "BLOCK", block)
    links = [(0, 1, 1.0), (1, 0, 1.0)]
    links[slow] = (*links[slow][:2], 0.25)
    assert check_schedule(hop_schedule(Topology.from_links("pair", 2, links))).time == 4.0


def test_as_many_sends_as_chunks_are_enough() -> None:
    """Where every terminal reaches every other one directly, each chunk moves once."""
    assert check_schedule(hop_schedule(build("complete:4"), 1)).sends == 12
    direct = hop_schedule(build("complete:4"), 3)
    assert direct.sends == 36
    assert check_schedule(direct).time == pytest.approx(1.0)
    with pytest.raises(VerificationError, match="35 sends cannot deliver 36 chunks of all shards"):
        check_schedule(without(direct, 3))


@pytest.mark.parametrize("schedule", [CUBE, HOSTED], ids=["cube", "hosted"])
def test_any_missing_send_is_found(schedule: Schedule) -> None:
    """Without a send, its chunk never arrives, or is forwarded from where it is not."""
    for send in range(0, schedule.sends, 7):
        with pytest.raises(VerificationError, match=r"never arrive|not there"):
            check_schedule(without(schedule, send))


def test_a_send_in_the_step_of_arrival_is_found() -> None:
    """Store and forward: what arrives in a step leaves in a later one."""
    early = replace(CUBE, step=np.maximum(CUBE.step - 1, 0))
    with pytest.raises(VerificationError, match="not there; the first: step 0 sends chunk"):
        check_schedule(early)


HUB = hop_schedule(
    Topology.from_edges(
        "hub",
        5,
        [(leaf, 4) for leaf in range(4)] + [(0, 1)],
        terminals=[0, 1, 2, 3],
    )
)
HAS, ARRIVED, STRANDED = (
    "of chunks to a node that has them already",
    "of chunks that are at their destination already",
    "of chunks to a node that does not send them on",
)
USELESS = {
    "back to its sender by a switch": (HUB, [(1, 0, 1, 1, 4), (1, 0, 1, 4, 1)], HAS),
    "back to its source": (CUBE, [(3, 0, 1, 1, 0)], HAS),
    "there and back": (CUBE, [(3, 0, 1, 1, 3), (4, 0, 1, 3, 1)], HAS),
    "the same send twice": (CUBE, [(0, 0, 1, 0, 1)], HAS),
    "by two ways": (CUBE, [(0, 0, 1, 0, 2), (1, 0, 1, 2, 3), (2, 0, 1, 3, 1)], HAS),
    "twice into a switch": (HUB, [(0, 0, 1, 0, 4), (0, 0, 1, 4, 1)], HAS),
    "on from its destination": (CUBE, [(3, 0, 1, 1, 3)], ARRIVED),
    "nowhere": (CUBE, [(0, 0, 1, 0, 2)], STRANDED),
    "nowhere in a switch": (HUB, [(0, 0, 1, 0, 4)], STRANDED),
    "nowhere by a switch": (HUB, [(0, 0, 2, 4, 3)], STRANDED),
}
"""Each way to send a chunk that no delivery needs: the sends to add, and what is said of them."""


@pytest.mark.parametrize("kind", USELESS)
def test_useless_sends_are_found(kind: str) -> None:
    """They lose time, and runtimes may stumble over them."""
    schedule, moves, words = USELESS[kind]
    with pytest.raises(VerificationError, match=f"useless sends {words}; the first: step"):
        check_schedule(with_moves(schedule, moves))


def test_useless_sends_can_be_read() -> None:
    """A file that has some still loads, so that its check can say what is wrong."""
    wasteful = with_moves(*USELESS["there and back"][:2])
    again = answer_from_json(answer_to_json(wasteful), "file")
    assert again.sends == wasteful.sends


def test_a_switch_may_be_passed_in_several_steps() -> None:
    """From leaf to leaf and on to another: the hub stores nothing, and is passed twice."""
    direct = np.flatnonzero((HUB.source == 2) & (HUB.destination == 3))
    fewer = {key: np.delete(getattr(HUB, key), direct) for key in KEYS}
    detour = [(0, 2, 3, 2, 4), (0, 2, 3, 4, 0), (1, 2, 3, 0, 4), (1, 2, 3, 4, 3)]
    changes: dict[str, Any] = fewer
    assert check_schedule(with_moves(replace(HUB, **changes), detour)).steps == 2


def test_a_switch_that_stores_is_found() -> None:
    """What enters a NIC half must leave it in the same step."""
    moved = HOSTED.step + (HOSTED.problem.topology.head[HOSTED.link] < 4)
    order = np.argsort(moved, kind="stable")
    keys = ("source", "destination", "chunk", "link")
    late: dict[str, Any] = {key: getattr(HOSTED, key)[order] for key in keys}
    with pytest.raises(VerificationError, match="not there"):
        check_schedule(replace(HOSTED, steps=HOSTED.steps + 1, step=moved[order], **late))


def test_a_false_bound_is_found() -> None:
    """The bound is recomputed from the lengths."""
    false = replace(CUBE, certificate=Certificate(CUBE.certificate.lengths, 7.9))
    with pytest.raises(VerificationError, match=r"claims the bound 7\.9"):
        check_schedule(false)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("link", 99, "link 99"),
        ("chunk", 2, "chunk 2 of a shard with 2"),
        ("source", 8, "source 8"),
        ("step", 7, "step 7"),
    ],
)
def test_sends_out_of_range_are_refused(key: str, value: int, words: str) -> None:
    """Construction names the send."""
    values = np.array(getattr(CUBE, key))
    values[-1] = value
    changes: dict[str, Any] = {key: values}
    with pytest.raises(InputError, match=words):
        replace(CUBE, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": [3]}, r"steps\[0\] is 3"),
        ({"steps": [[[0, 1, 0]]]}, r"steps\[0\]\[0\]"),
        ({"steps": [[[0, 99, 0, 0]]]}, "terminals"),
        ({"chunks_per_shard": "2"}, "chunks_per_shard"),
        ({"chunks_per_shard": 0}, "0 chunks per shard"),
        ({"lengths": [1]}, "1 lengths for 24 links"),
        ({"steps": []}, "0 steps"),
    ],
)
def test_malformed_files_are_named(changes: dict[str, object], words: str) -> None:
    """The message names the key or the send."""
    with pytest.raises((FormatError, InputError), match=words):
        answer_from_json(answer_to_json(CUBE) | changes, "file")


def test_a_schedule_from_elsewhere_needs_little() -> None:
    """Topology, chunks and steps are enough; the distance bound stands in for a certificate."""
    keys = ("format", "topology", "chunks_per_shard", "steps")
    value = answer_to_json(CUBE)
    report = check_schedule(answer_from_json({key: value[key] for key in keys}, "file"))
    assert report.bound == pytest.approx(4.0)


def test_an_edited_time_is_found() -> None:
    """The summary at the head of the file cannot be edited alone."""
    with pytest.raises(VerificationError, match=r"time is 1\.0, but"):
        answer_from_json(answer_to_json(CUBE) | {"time": 1.0}, "file")
