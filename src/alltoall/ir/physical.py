"""An answer in seconds and bytes: what verbs print of it besides shards."""

from typing import Any

from alltoall.ir.answer import Answer
from alltoall.ir.fabric import Fabric
from alltoall.ir.schedule import Schedule

GIGA = 1e9


def physical(
    answer: Answer, fabric: Fabric, shard_bytes: int | None = None, step_latency: float = 0.0
) -> dict[str, Any]:
    """Return what an answer means on a fabric, by the names that the JSON of the verbs has.

    What a link is, what a terminal sends and could at most; with the size of a shard, also the
    seconds. `step_latency` is the cost of a step of a schedule, in shard times.
    """
    demand, rates = answer.problem.demand, fabric.link_rates / GIGA
    found: dict[str, Any] = {
        "link_GBps": [float(rates.min()), float(rates.max())],
        "throughput_GBps": fabric.throughput(demand, answer.time) / GIGA,
    }
    if answer.bound > 0:
        found["throughput_bound_GBps"] = fabric.throughput(demand, answer.bound) / GIGA
    if shard_bytes is None:
        return found
    steps = answer.steps if isinstance(answer, Schedule) else 0
    time = answer.time + steps * step_latency
    found |= {
        "bytes": shard_bytes,
        "transfer_seconds": fabric.seconds(time, shard_bytes),
        "transfer_GBps": fabric.throughput(demand, time) / GIGA,
        "bound_seconds": fabric.seconds(answer.bound, shard_bytes),
    }
    return found
