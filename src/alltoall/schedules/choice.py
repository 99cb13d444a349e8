"""`Choice`: what one schedule costs, beside others that were found for the same problem."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What a schedule takes: time, steps, and the operations of its busiest rank.

    `relays` are the ranks without a demand of their own that it uses. `total` is the time, and what
    steps and operations cost; all three in the unit of the time.
    """

    relays: int
    steps: int
    chunks_per_shard: int
    operations: int
    time: float
    total: float
    chosen: bool = False

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def beats(self, other: "Choice") -> bool:
        """Whether this one is nowhere worse, and somewhere better."""
        mine, others = ((each.operations, each.steps, each.time) for each in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))


def worth_telling(choices: Iterable[Choice], chosen: Choice) -> tuple[Choice, ...]:
    """Return what no other choice beats, from fewest operations to least time; one is marked."""
    found: dict[tuple[int, int, float], Choice] = {}
    for each in (replace(chosen, chosen=True), *choices):
        found.setdefault((each.operations, each.steps, round(each.time, 12)), each)
    kept = [
        each
        for each in found.values()
        if each.chosen or not any(other.beats(each) for other in found.values())
    ]
    return tuple(sorted(kept, key=lambda each: (each.operations, each.steps, each.time)))
