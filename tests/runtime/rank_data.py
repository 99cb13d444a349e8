"""What each rank of a test sends and must receive, known to all ranks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = (np.uint8, np.float64, np.complex128)
ITEMS = (0, 1, 7, 1001)
"""Elements of a shard: none, fewer bytes than chunks, odd, and more than a short message."""


def sent(source: int, ranks: int, items: int, dtype: type, seed: int) -> NDArray[Any]:
    """Return what a rank sends: any bytes at all, also such as are no number."""
    size = ranks * items * np.dtype(dtype).itemsize
    values = np.random.default_rng((seed, source)).integers(0, 256, size, dtype=np.uint8)
    return values.view(dtype).reshape(ranks, items)


def received(rank: int, ranks: int, items: int, dtype: type, seed: int) -> NDArray[Any]:
    """Return what a rank must receive."""
    return np.stack([sent(source, ranks, items, dtype, seed)[rank] for source in range(ranks)])


def same_bytes(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Compare to the last bit."""
    return found.tobytes() == expected.tobytes()
