"""Repeated all-to-alls with the machine's counters, for emulated links.

A rank returns from an exchange once it has received everything, so all bytes are counted by then.
Counters are read between two barriers, which add a few packets. An iteration is repeated if other
machines on the host stole too much processor time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alltoall.runtime.bench import Endpoint, Exchanging, Trial

MOST_STEAL = 0.10
"""Largest share of a processor stolen during a valid iteration."""

MOST_REPEATS = 2
"""Most repeated iterations, as a multiple of the requested ones."""

DEVICES, TCP, PROCESSORS = (
    Path("/proc/self/net/dev"),
    Path("/proc/self/net/snmp"),
    Path("/proc/stat"),
)
"""Linux files of the counters: devices and TCP of a namespace, and processors."""


@dataclass(frozen=True)
class Reading:
    """Measurements for one size: slowest rank and steal per iteration, and counters.

    `sent` has the bytes sent by each device of every rank during `calls`.
    """

    bytes: int
    seconds: list[float]
    steal: list[float]
    calls: int
    sent: list[dict[str, int]]
    received: list[dict[str, int]]
    retransmits: int
    violations: list[str]


def meter(
    endpoint: Endpoint,
    way: str,
    sizes: list[int],
    iterations: int,
    warmup: int,
    ready: Callable[[], None],
) -> list[Reading]:
    """Check and time an exchange at every size; stop after the first with a wrong byte.

    The first rank calls `ready` before the timing, and the others wait for it.
    """
    exchange = {"ours": endpoint.exchange, "native": endpoint.native}[way]
    readings: list[Reading] = []
    for size in sizes:
        readings.append(_reading(Trial(endpoint, size), exchange, iterations, warmup, ready))
        if readings[-1].violations:
            break
    return readings


def _reading(
    trial: Trial, exchange: Exchanging, iterations: int, warmup: int, ready: Callable[[], None]
) -> Reading:
    endpoint = trial.endpoint
    violations = trial.wrong(exchange)
    for _ in range(warmup):
        exchange(trial.send, trial.recv, trial.shard)
    if endpoint.here[0] == 0:
        ready()
    endpoint.barrier()
    before = _counters()
    kept: list[tuple[float, float]] = []
    calls = 0
    while len(kept) < iterations:
        endpoint.barrier()
        stolen = steal_seconds()
        seconds = trial.timed(exchange)
        share = (steal_seconds() - stolen) / max(seconds, 1e-9)
        # The slowest has waited for all others: its clock spans the whole.
        slowest: tuple[float, float] = max(map(tuple, endpoint.gather((seconds, share))))
        calls += 1
        if slowest[1] <= MOST_STEAL or calls - len(kept) > MOST_REPEATS * iterations:
            kept.append(slowest)
    endpoint.barrier()
    after = _counters()
    told = endpoint.gather(_difference(before, after))
    return Reading(
        bytes=trial.size,
        seconds=[seconds for seconds, _ in kept],
        steal=[steal for _, steal in kept],
        calls=calls,
        sent=[each["sent"] for each in told],
        received=[each["received"] for each in told],
        retransmits=sum(each["retransmits"] for each in told),
        violations=violations,
    )


def _counters() -> dict[str, Any]:
    """Read the counters of the devices and the TCP of this namespace."""
    rows = [line.split(":") for line in DEVICES.read_text().splitlines()[2:]]
    columns = {name.strip(): [int(word) for word in rest.split()] for name, rest in rows}
    names, values = (line.split() for line in TCP.read_text().splitlines() if line[:4] == "Tcp:")
    return {
        "sent": {name: numbers[8] for name, numbers in columns.items()},
        "received": {name: numbers[0] for name, numbers in columns.items()},
        "retransmits": int(values[names.index("RetransSegs")]),
    }


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    grown = {
        key: {name: count - before[key].get(name, 0) for name, count in after[key].items()}
        for key in ("sent", "received")
    }
    return {**grown, "retransmits": after["retransmits"] - before["retransmits"]}


def steal_seconds() -> float:
    """Return the stolen processor time of this machine, in seconds."""
    words = PROCESSORS.read_text().split("\n", 1)[0].split()
    return int(words[8]) / 100.0
