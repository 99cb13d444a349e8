"""`FoundSchedule`: a schedule and what its search learnt; `Choice`: its cost beside others."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from alltoall.ir.flow import Status
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import beyond_rounding
from alltoall.routes.renew import Renewed
from alltoall.routes.skews import Judged


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


@dataclass(frozen=True, eq=False)
class FoundSchedule:
    """A schedule, and what was learnt about numbers of chunks on the way to it.

    `curve` has the loss of every number of chunks that was tried to the end, `floor` the loss that
    no schedule with so many chunks can be below, because durations are whole. `status` is that of
    the schedule against the certified bound of any all-to-all; `fractional_bound` is what is proven
    about the fractional schedules of as many steps. `tradeoff` is what else there was to choose
    from where operations cost something, `robust` the losses of a template under demands that it
    was not made with, `renewed` what the last schedule loses after a failure, and `notes` say
    which goal was missed.
    """

    schedule: Schedule
    curve: dict[float, float]
    floor: dict[float, float]
    status: Status
    fractional_bound: float
    tradeoff: tuple[Choice, ...] = ()
    robust: Judged | None = None
    renewed: Renewed | None = None
    notes: tuple[str, ...] = ()

    def learnt(self) -> dict[str, Any]:
        """Return what the search learnt, as plain values."""
        found: dict[str, Any] = {"notes": self.notes, "status": self.status.value}
        found["fractional_bound"] = self.fractional_bound
        found["loss_by_chunks"] = {
            f"{each:g}": beyond_rounding(loss) for each, loss in self.curve.items()
        }
        found["least_loss_by_chunks"] = {f"{each:g}": loss for each, loss in self.floor.items()}
        if self.tradeoff:
            found["tradeoff"] = [each.summary() for each in self.tradeoff]
        if self.robust is not None:
            found["robust"] = self.robust.summary()
        if self.renewed is not None:
            found["last"] = self.renewed.losses()
        return found
