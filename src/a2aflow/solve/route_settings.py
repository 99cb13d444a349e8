"""What a caller may ask of any routing method."""

from dataclasses import dataclass, field, replace

from a2aflow.errors import UsageError
from a2aflow.solve.settings import SolveSettings

PATH_SETS = ("disjoint", "shortest", "bounded", "k-shortest", "columns")
"""Where pmcf takes its paths from; `columns` generates them as they are needed."""


@dataclass(frozen=True)
class RouteSettings:
    """Settings shared by all routing methods; each uses those that concern it.

    `paths` names the candidate paths of pmcf and the ILPs; `slack` is how many hops a bounded path
    may be longer than a shortest one; `k` is the number of k-shortest paths; `max_routes` limits
    the routes of a pair; `loss` is what limiting them may cost; `epsilon` is the FPTAS' accuracy;
    `max_layers` is what deadlock-free routes may take.
    """

    paths: str = "disjoint"
    slack: int = 1
    k: int = 8
    max_routes: int | None = None
    loss: float = 0.01
    epsilon: float = 0.05
    seed: int = 0
    max_layers: int | None = None
    solve: SolveSettings = field(default_factory=SolveSettings)

    def __post_init__(self) -> None:
        if self.paths not in PATH_SETS:
            known = ", ".join(PATH_SETS)
            raise UsageError(f"unknown paths {self.paths!r}; expected one of {known}")
        if self.slack < 0 or self.k < 1:
            raise UsageError(f"slack {self.slack}, k {self.k}; expected slack >= 0 and k >= 1")
        if self.max_routes is not None and self.max_routes < 1:
            raise UsageError(f"{self.max_routes} routes per pair; expected at least 1")
        if self.max_layers is not None and self.max_layers < 1:
            raise UsageError(f"{self.max_layers} virtual layers; expected at least 1")
        if not 0 <= self.loss < 1:
            raise UsageError(f"loss {self.loss:g}; expected a share from 0 to below 1")
        if not 0 < self.epsilon < 1:
            raise UsageError(f"epsilon {self.epsilon:g}; expected a number above 0 and below 1")

    def begin(self) -> "RouteSettings":
        """Return the settings with the clock of their time limit running."""
        return replace(self, solve=self.solve.begin())
