"""A seeded router of a mixture of experts, of a given skew.

Experts are numbered across ranks, `per_rank` each. The popularity of expert e is exp(skew n_e) with
n_e normal, so lognormal, or even for a skew of 0. Every token goes to `top_k` different experts,
drawn in turn by popularity, and their results are added with random weights. All follows from the
seed and the rank, so any process can reproduce any rank.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats, Ints

Rows = NDArray[np.float32]

MAX_SKEW = 10.0
"""The largest skew, at which one expert has nearly all tokens."""

MAX_PARAMETER = 1 << 24
"""Largest number of tokens, hidden size and experts."""

TOKENS, CHOICES, POPULARITY, EXPERTS = range(4)
"""Random streams, one per purpose."""


@dataclass(frozen=True)
class Router:
    """Parameters of a mixture of experts."""

    ranks: int
    tokens: int
    hidden: int
    experts_per_rank: int
    top_k: int
    skew: float
    seed: int

    def __post_init__(self) -> None:
        for name in ("tokens", "hidden", "experts_per_rank"):
            if not 1 <= getattr(self, name) <= MAX_PARAMETER:
                raise UsageError(
                    f"{name.replace('_', ' ')} {getattr(self, name)}; expected 1 to "
                    f"{MAX_PARAMETER:,}"
                )
        if not 1 <= self.top_k <= self.experts:
            raise UsageError(
                f"{self.top_k} experts for each token; expected 1 to {self.experts}, which is how "
                "many there are"
            )
        if not 0 <= self.skew <= MAX_SKEW:
            raise UsageError(f"skew {self.skew:g}; expected 0 to {MAX_SKEW:g}")

    def plain(self) -> dict[str, Any]:
        """Return the parameters as plain values."""
        return asdict(self)

    @property
    def experts(self) -> int:
        """The number of experts."""
        return self.ranks * self.experts_per_rank

    @property
    def row_bytes(self) -> int:
        """Bytes of a token."""
        return self.hidden * np.dtype(np.float32).itemsize

    @cached_property
    def popularity(self) -> Floats:
        """The share of each expert in a first choice."""
        weight = np.exp(self.skew * self._random(POPULARITY).standard_normal(self.experts))
        return np.asarray(weight / weight.sum())

    def choices(self, rank: int) -> tuple[Ints, Rows]:
        """Return the experts of each token of a rank, and the share of each in its result."""
        random = self._random(CHOICES, rank)
        # The largest of log p + Gumbel's noise are draws by p without putting back.
        noisy = np.log(self.popularity) + random.gumbel(size=(self.tokens, self.experts))
        expert = np.argsort(-noisy, axis=1, kind="stable")[:, : self.top_k]
        share = random.random((self.tokens, self.top_k), dtype=np.float32) + np.float32(0.5)
        return expert.astype(np.int64), share / share.sum(axis=1, keepdims=True)

    def embeddings(self, rank: int) -> Rows:
        """Return the tokens of a rank."""
        random = self._random(TOKENS, rank)
        return random.standard_normal((self.tokens, self.hidden), dtype=np.float32)

    def sent(self, rank: int) -> Ints:
        """Return the rows that a rank sends to each expert."""
        return np.bincount(self.choices(rank)[0].ravel(), minlength=self.experts).astype(np.int64)

    def weights(self, expert: int) -> tuple[Rows, Rows, int]:
        """Return the map of an expert, W x = a x + b shifted(x): two vectors and the shift."""
        random = self._random(EXPERTS, expert)
        a, b = random.standard_normal((2, self.hidden), dtype=np.float32)
        return a, b, int(random.integers(self.hidden))

    def _random(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *stream))


def applied(weights: tuple[Rows, Rows, int], rows: Rows) -> Rows:
    """Apply an expert to rows: a row gives the same bits at any position."""
    a, b, shift = weights
    return np.asarray(a * rows + b * np.roll(rows, shift, axis=1))


def sent_table(router: Router) -> Ints:
    """Return the rows that every rank sends to every expert."""
    return np.array([router.sent(rank) for rank in range(router.ranks)])


def skew_statistics(router: Router, table: Ints) -> dict[str, float]:
    """Return the imbalance of experts, receiving ranks and pairs."""
    by_rank = rows_between(router, table)
    others = by_rank[~np.eye(router.ranks, dtype=np.bool_)]
    experts = table.sum(axis=0)
    return {
        "top_expert_share": float(experts.max() / experts.sum()),
        "expert_max_over_mean": float(experts.max() / experts.mean()),
        "rank_max_over_mean": float(by_rank.sum(axis=0).max() / by_rank.sum(axis=0).mean()),
        "pair_max_over_mean": float(others.max() / others.mean()) if others.any() else 0.0,
        "local_share": float(np.trace(by_rank) / by_rank.sum()),
    }


def rows_between(router: Router, table: Ints) -> Ints:
    """Return the rows between all pairs of ranks."""
    parts = table.reshape(router.ranks, router.ranks, router.experts_per_rank)
    return np.asarray(parts.sum(axis=2))
