"""Max-min fair flows and messages, list scheduling and detours, against plain references."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints, starts_of

SEEDS = st.integers(0, 2**32 - 1)

Flows = tuple[Ints, Ints, Floats, Floats]
"""Starts, resources, capacities and weights."""


def draw_flows(rng: np.random.Generator, count: int) -> Flows:
    """Draw flows over up to five resources, each of which a flow uses at most once."""
    resources = int(rng.integers(1, 6))
    used = [rng.permutation(resources)[: rng.integers(1, resources + 1)] for _ in range(count)]
    link = np.concatenate([*used, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    start = starts_of(np.array([len(each) for each in used], dtype=np.int64))
    return start, link, rng.uniform(0.5, 4.0, resources), rng.uniform(0.5, 2.0, count)


def plain_rates(flows: Flows, active: list[int]) -> Floats:
    """Return max-min fair rates: fill all resources evenly, freeze flows where one is full."""
    start, link, capacity, weight = flows
    rate, growing = np.zeros(len(weight)), set(active)
    while growing:
        load, heavy = np.zeros(len(capacity)), np.zeros(len(capacity))
        for flow in active:
            for resource in link[start[flow] : start[flow + 1]]:
                load[resource] += rate[flow]
                heavy[resource] += weight[flow] if flow in growing else 0.0
        used = heavy > 0
        grow = ((capacity - load)[used] / heavy[used]).min()
        for flow in growing:
            rate[flow] += grow * weight[flow]
        full = used & (capacity - load - grow * heavy <= 1e-9 * capacity)
        growing = {f for f in growing if not full[link[start[f] : start[f + 1]]].any()}
    return rate


def plain_ends(flows: Flows, part: Floats, rounds: Ints, begin: Floats, pause: float) -> Floats:
    """Return when flows end, with fresh rates after every event."""
    left, when, rounds = np.zeros(len(part)), begin.copy(), rounds.copy()
    active: list[int] = []
    waiting, now = set(range(len(part))), 0.0
    while active or waiting:
        rate = plain_rates(flows, active)
        ends = [(now + left[flow] / rate[flow], flow) for flow in active]
        moment = min([*(end for end, _ in ends), *(when[flow] for flow in waiting)])
        for flow in active:
            left[flow] -= rate[flow] * (moment - now)
        now = moment
        for end, flow in ends:
            if end <= now * (1 + 1e-9):
                active.remove(flow)
                rounds[flow] -= 1
                when[flow] = now + (pause if rounds[flow] else 0.0)
                if rounds[flow]:
                    waiting.add(flow)
        for flow in sorted(waiting):
            if when[flow] <= now * (1 + 1e-9):
                waiting.discard(flow)
                active.append(flow)
                left[flow] = part[flow]
    return when


@given(SEEDS, st.integers(0, 6), st.integers(1, 3))
def test_fluid_flows(seed: int, count: int, events: int) -> None:
    """Their ends, however few events a call goes on for; no flow at all ends at once."""
    rng = np.random.default_rng(seed)
    flows = draw_flows(rng, count)
    part, rounds = rng.uniform(0.5, 3.0, count), rng.integers(1, 4, count)
    begin, pause = rng.uniform(0.0, 2.0, count), float(rng.uniform(0.0, 1.0))
    fluid = core.FluidFlows(*flows, part, rounds, begin, pause, 0.0)
    while fluid.alive:
        fluid.advance(events)
    assert fluid.ends == pytest.approx(plain_ends(flows, part, rounds, begin, pause), rel=1e-6)


def test_events_within_a_window_are_one() -> None:
    """What the first of two flows leaves is taken up at the end of the window."""
    flows = (np.array([0, 1, 2]), np.zeros(2, dtype=np.int64), np.ones(1), np.ones(2))
    arrays = *flows, np.array([1.0, 1.5]), np.ones(2, dtype=np.int64), np.zeros(2)
    ends = {}
    for window in (0.0, 2.0):
        fluid = core.FluidFlows(*arrays, 0.0, window)
        fluid.advance(100)
        ends[window] = fluid.ends.tolist()
    assert ends == {0.0: [2.0, 2.5], 2.0: [2.0, 3.0]}


Sent = dict[str, Any]
"""Arguments of `FairMessages`."""


def draw_messages(rng: np.random.Generator, count: int) -> Sent:
    """Draw messages of up to two parts, each of which follows some that come before it."""
    parts = rng.integers(0, 3, count)
    start, link, capacity, weight = draw_flows(rng, int(parts.sum()))
    pairs = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.3]
    earlier = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    successor = np.where(rng.random(count) < 0.4, np.arange(count) + 1, -1)
    successor[successor >= count] = -1
    successor[parts == 0] = -1
    waits = 1 + np.bincount(earlier[:, 1], minlength=count)
    waits[successor[successor >= 0]] += 1
    return {
        "start": start, "resource": link, "capacity": capacity, "weight": weight,
        "size": rng.uniform(0.5, 3.0, len(weight)), "first": starts_of(parts), "waits": waits,
        "follower_start": starts_of(np.bincount(earlier[:, 0], minlength=count)),
        "follower": earlier[:, 1].copy(), "successor": successor,
        "sender": rng.integers(0, 3, count), "latency": rng.uniform(0.0, 1.0, count),
        "overhead": rng.uniform(0.1, 1.0, count), "sender_free": rng.uniform(0.0, 1.0, 3),
    }  # fmt: skip


def plain_last_arrival(sent: Sent) -> float:
    """Return when the last message has arrived, from event to event."""
    flows = sent["start"], sent["resource"], sent["capacity"], sent["weight"]
    count, first, left = len(sent["waits"]), sent["first"], sent["size"].copy()
    waits, free, now = sent["waits"].copy(), sent["sender_free"].copy(), 0.0
    parts = {m: set(range(first[m], first[m + 1])) for m in range(count)}
    due: list[tuple[float, str, int]] = []
    active: list[int] = []

    def release(message: int) -> None:
        waits[message] -= 1
        if waits[message] == 0:
            sender = sent["sender"][message]
            free[sender] = max(now, free[sender]) + sent["overhead"][message]
            due.append((free[sender], "a", message))

    for message in range(count):
        release(message)
    while active or due:
        rate = plain_rates(flows, active)
        now_then = min([now + left[p] / rate[p] for p in active] + [time for time, _, _ in due])
        left[active] -= rate[active] * (now_then - now)
        now = now_then
        for part in [p for p in active if left[p] <= 1e-9 * sent["size"][p]]:
            active.remove(part)
            message = int(np.searchsorted(first, part, "right") - 1)
            parts[message].discard(part)
            if not parts[message]:
                due.append((now + sent["latency"][message], "b", message))
                if sent["successor"][message] >= 0:
                    release(sent["successor"][message])
        while due and min(due)[0] <= now * (1 + 1e-9):
            _, kind, message = min(due)
            due.remove(min(due))
            if kind == "a":
                active += sorted(parts[message])
            if kind == "b" or not parts[message]:
                low, high = sent["follower_start"][message : message + 2]
                for follower in sent["follower"][low:high]:
                    release(follower)
    return now


@given(SEEDS, st.integers(0, 6), st.integers(1, 3))
def test_fair_messages(seed: int, count: int, events: int) -> None:
    """The last arrival, with messages of no parts, followers and successors."""
    sent = draw_messages(np.random.default_rng(seed), count)
    messages = core.FairMessages(**sent)
    while not messages.advance(events):
        pass
    assert messages.now == pytest.approx(plain_last_arrival(sent), rel=1e-6)


def draw_legs(rng: np.random.Generator, chunks: int) -> dict[str, Any]:
    """Draw chunks on paths of up to three legs of up to two links."""
    legs = rng.integers(1, 4, chunks)
    hops = rng.integers(1, 3, int(legs.sum()))
    links = [rng.permutation(4)[:hop] for hop in hops]
    return {
        "size": rng.integers(1, 4, chunks).astype(float), "first": starts_of(legs),
        "begin": starts_of(hops),
        "link": np.concatenate([*links, np.zeros(0, dtype=np.int64)]).astype(np.int64),
        "pace": 1 / rng.integers(1, 3, 4), "quota": float(rng.uniform(1.0, 6.0)),
        "shortest": float(rng.uniform(0.0, 2.0)),
    }  # fmt: skip


def plain_steps(given: dict[str, Any]) -> tuple[list[int], int, float]:
    """Return the step of each leg, the steps and the time, by the rules of schedules/orders.py."""
    size, first, begin, link, pace, quota, shortest = given.values()
    at, step, left = first[:-1].copy(), np.full(len(begin) - 1, -1), np.zeros(len(pace))

    def links(leg: int) -> Ints:
        return np.asarray(link[begin[leg] : begin[leg + 1]])

    for chunk in range(len(size)):
        for leg in range(first[chunk], first[chunk + 1]):
            left[links(leg)] += size[chunk] * pace[links(leg)]
    waiting = sorted(range(len(size)), key=lambda chunk: -size[chunk])
    time, now = 0.0, 0
    while waiting:
        load = np.zeros(len(pace))
        for chunk in waiting:
            load[links(at[chunk])] += size[chunk] * pace[links(at[chunk])]
        slack = left.max() - left + load
        urgency = {}
        for chunk in waiting:
            ahead = [
                slack[each] - 0.1 * quota * (leg - at[chunk] - 1)
                for leg in range(at[chunk] + 1, first[chunk + 1])
                for each in links(leg)
            ]
            urgency[chunk] = min([quota, *ahead]) - 1e-3 * quota * (first[chunk + 1] - at[chunk])
        order = sorted(waiting, key=lambda chunk: urgency[chunk])
        busiest = int(left.argmax())
        largest = max((size[c] * pace[links(at[c])]).max() for c in waiting)
        most = max(slack[load < left * (1 - 1e-9)].min(initial=quota), shortest, largest)
        sent = 0.0
        for chunk in order:
            more = size[chunk] * pace[busiest]
            if busiest in links(at[chunk]) and sent + more <= most * (1 + 1e-9):
                sent += more
        most, load[:] = max(sent, largest) if sent > 0 else most, 0.0
        for chunk in order:
            on = links(at[chunk])
            if (load[on] + size[chunk] * pace[on] <= most * (1 + 1e-9)).all():
                load[on] += size[chunk] * pace[on]
                step[at[chunk]] = now
                at[chunk] += 1
        left -= load
        time, now = time + load.max(), now + 1
        waiting = [chunk for chunk in waiting if at[chunk] < first[chunk + 1]]
    return step.tolist(), now, time


@given(SEEDS, st.integers(0, 7))
def test_list_scheduler(seed: int, chunks: int) -> None:
    """The step of every leg; a step after the last changes nothing."""
    given = draw_legs(np.random.default_rng(seed), chunks)
    scheduler = core.ListScheduler(**given)
    while not scheduler.done:
        scheduler.step()
    scheduler.step()
    steps, count, time = plain_steps(given)
    assert (scheduler.step_of_leg.tolist(), scheduler.steps) == (steps, count)
    assert scheduler.time == pytest.approx(time)


ONE, ZERO = np.ones(1), np.zeros(1, dtype=np.int64)
SHARED = {"start": np.array([0, 1]), "resource": ZERO, "capacity": ONE, "weight": ONE}
FLUID = {**SHARED, "part": ONE, "rounds": ZERO + 1, "begin": ONE, "pause": 0.0, "window": 0.0}
LEGS = {
    "size": ONE, "first": np.array([0, 1]), "begin": np.array([0, 1]), "link": ZERO,
    "pace": ONE, "quota": 1.0, "shortest": 0.0,
}  # fmt: skip
MESSAGES = {
    **SHARED, "size": ONE, "first": np.array([0, 1]), "waits": ZERO + 1,
    "follower_start": np.array([0, 0]), "follower": ZERO[:0], "successor": ZERO - 1,
    "sender": ZERO, "latency": ONE, "overhead": ONE, "sender_free": ONE,
}  # fmt: skip
FOLLOWED = {**MESSAGES, "follower_start": np.array([0, 1]), "follower": ZERO}

BAD: list[tuple[Any, dict[str, Any], str, Any]] = [
    (core.FluidFlows, FLUID, "start", np.array([0, 2])),
    (core.FluidFlows, FLUID, "start", np.array([0, 0])),
    (core.FluidFlows, FLUID, "resource", ZERO + 1),
    (core.FluidFlows, FLUID, "resource", ZERO - 1),
    (core.FluidFlows, FLUID, "capacity", ONE * 0),
    (core.FluidFlows, FLUID, "weight", ONE * np.nan),
    (core.FluidFlows, FLUID, "part", ONE * np.inf),
    (core.FluidFlows, FLUID, "rounds", ZERO),
    (core.FluidFlows, FLUID, "begin", np.ones(2)),
    (core.FluidFlows, FLUID, "pause", -1.0),
    (core.FluidFlows, FLUID, "window", np.nan),
    (core.FairMessages, MESSAGES, "size", np.ones(2)),
    (core.FairMessages, MESSAGES, "first", np.array([1, 0])),
    (core.FairMessages, MESSAGES, "waits", ZERO),
    (core.FairMessages, MESSAGES, "follower_start", np.array([0, 1])),
    (core.FairMessages, FOLLOWED, "follower", ZERO + 1),
    (core.FairMessages, MESSAGES, "successor", ZERO + 1),
    (core.FairMessages, MESSAGES, "sender", ZERO + 1),
    (core.FairMessages, MESSAGES, "latency", -ONE),
    (core.FairMessages, MESSAGES, "overhead", -ONE),
    (core.FairMessages, MESSAGES, "sender_free", -ONE),
    (core.ListScheduler, LEGS, "size", -ONE),
    (core.ListScheduler, LEGS, "first", np.array([0, 2])),
    (core.ListScheduler, LEGS, "first", ZERO),
    (core.ListScheduler, LEGS, "begin", np.array([0, 2])),
    (core.ListScheduler, LEGS, "link", ZERO + 1),
    (core.ListScheduler, LEGS, "pace", ONE * 0),
    (core.ListScheduler, LEGS, "quota", 0.0),
    (core.ListScheduler, LEGS, "shortest", np.nan),
]


@pytest.mark.parametrize(("function", "usual", "name", "value"), BAD)
def test_wrong_arrays_are_refused(
    function: Any, usual: dict[str, Any], name: str, value: object
) -> None:
    """With the name of the argument; the usual ones are taken, and words are no numbers."""
    function(**usual)
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        function(**{**usual, name: value})
    with pytest.raises(TypeError):
        function(**{**usual, name: "word"})
