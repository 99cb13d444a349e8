"""`FoundSchedule`: a schedule with facts of its search; `Choice`: its cost beside others."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from alltoall.ir.flow import Status
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import beyond_rounding
from alltoall.routes.renew import Renewed
from alltoall.routes.robust import Judged


@dataclass(frozen=True)
class Choice:
    """The cost of a schedule: time, steps, and the operations of its busiest rank.

    `relays` counts the ranks without a demand of their own that it uses. `total` is the time plus
    the costs of steps and operations, in the unit of the time.
    """

    relays: int
    steps: int
    chunks_per_shard: int
    operations: int
    time: float
    total: float
    chosen: bool = False

    def beats(self, other: "Choice") -> bool:
        """Return whether this choice dominates another one."""
        mine, others = ((each.operations, each.steps, each.time) for each in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))


def worth_telling(choices: Iterable[Choice], chosen: Choice) -> tuple[Choice, ...]:
    """Return the Pareto front from fewest operations to least time, with the chosen one marked."""
    found: dict[tuple[int, int, float], Choice] = {}
    for each in (replace(chosen, chosen=True), *choices):
        found.setdefault((each.operations, each.steps, round(each.time, 12)), each)
    every = sorted(found.values(), key=lambda each: (each.operations, each.steps, each.time))
    return tuple(each for each in every if each.chosen or not any(o.beats(each) for o in every))


@dataclass(frozen=True, eq=False)
class FoundSchedule:
    """A schedule, with the losses of other numbers of chunks.

    `curve` has the loss of every number of chunks that was tried to the end, `floor` a lower bound
    on it, because durations are integers. `status` compares the schedule with the certified bound
    of any all-to-all; `fractional_bound` is the bound on fractional schedules of as many steps.
    `tradeoff` has the alternatives if operations have a cost, `robust` the losses of a template
    under unseen demands, `renewed` the loss of the last schedule after a failure, and `notes` the
    missed goals.
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

    @classmethod
    def single(cls, schedule: Schedule, bound: float, **more: Any) -> "FoundSchedule":
        """Return a schedule without results for other numbers of chunks."""
        curve: dict[float, float] = {schedule.chunks_per_shard: schedule.loss}
        return cls(schedule, curve, {}, Status.GAP_NOT_REACHED, bound, **more)

    def learnt(self) -> dict[str, Any]:
        """Return facts of the search, as plain values."""
        found: dict[str, Any] = {"notes": self.notes, "status": self.status.value}
        found["fractional_bound"] = self.fractional_bound
        found["loss_by_chunks"] = {
            f"{each:g}": beyond_rounding(loss) for each, loss in self.curve.items()
        }
        found["least_loss_by_chunks"] = {f"{each:g}": loss for each, loss in self.floor.items()}
        if self.tradeoff:
            found["tradeoff"] = [asdict(each) for each in self.tradeoff]
        if self.robust is not None:
            found["robust"] = self.robust.summary()
        if self.renewed is not None:
            found["last"] = self.renewed.summary()
        return found
