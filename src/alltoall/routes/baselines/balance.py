"""A quick choice of one candidate path per pair: greedy, then rip up and choose again.

The potential is the sum over links of exp(sharpness * load / (capacity * peak)). Each pair in turn
takes the candidate that raises it least. The sharpness rises from round to round: first all loads
count, in the end only those near the peak.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.lp.settings import never
from alltoall.settings import Late

SHARPNESS_BY_ROUND = np.geomspace(5.0, 200.0, 40)
"""One round each; on genkautz no single value comes as near to the optimum as the whole range."""

LARGEST_COST_EXPONENT = 600.0
"""Beyond this the exponential overflows, and the path is out of the question anyway."""


def balanced_choice(
    start: Ints,
    link: Ints,
    first: Ints,
    amount: Floats,
    capacity: Floats,
    seed: int,
    late: Late = never,
) -> Ints:
    """Return the chosen path of each pair.

    Pair i of demand `amount[i]` chooses from the paths `first[i]..first[i + 1] - 1`; path p has
    the links `link[start[p]:start[p + 1]]`. When it is `late`, the best so far is returned.
    """
    order = np.random.default_rng(seed).permutation(len(amount))
    chosen = np.full(len(amount), -1, dtype=np.int64)
    load = np.zeros(len(capacity))
    best, peak = chosen, np.inf
    # No load is known yet: expect all links to share the first candidates evenly.
    scale = float((np.diff(start)[first[:-1]] * amount).sum() / capacity.sum())
    for sharpness in SHARPNESS_BY_ROUND:
        rate = sharpness / (capacity * scale)
        _round(start, link, first, amount, rate, order, load, chosen)
        scale = float((load / capacity).max())
        if scale < peak:
            best, peak = chosen.copy(), scale
        if late():
            break
    return best


@njit(cache=True)
def _round(
    start: Ints,
    link: Ints,
    first: Ints,
    amount: Floats,
    rate: Floats,
    order: Ints,
    load: Floats,
    chosen: Ints,
) -> None:
    """Let every pair choose once, in the given order; `rate` is the exponent per load."""
    for pair in order:
        best, least = chosen[pair], np.inf
        if best >= 0:
            _shift(link[start[best] : start[best + 1]], load, -amount[pair])
            least = _cost(link[start[best] : start[best + 1]], load, amount[pair], rate)
        else:
            best = first[pair]
        for path in range(first[pair], first[pair + 1]):
            cost = _cost(link[start[path] : start[path + 1]], load, amount[pair], rate)
            # A tie, or a last digit, is no reason to change.
            if cost < least * (1 - 1e-12):
                best, least = path, cost
        _shift(link[start[best] : start[best + 1]], load, amount[pair])
        chosen[pair] = best


@njit(cache=True)
def _shift(path: Ints, load: Floats, amount: float) -> None:
    for arc in path:
        load[arc] += amount


@njit(cache=True)
def _cost(path: Ints, load: Floats, amount: float, rate: Floats) -> float:
    """Return by how much a path would raise the potential."""
    total = 0.0
    for arc in path:
        exponent = min(rate[arc] * (load[arc] + amount), LARGEST_COST_EXPONENT)
        total += np.exp(exponent) - np.exp(exponent - rate[arc] * amount)
    return total
