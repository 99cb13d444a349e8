"""Arrays as text in a page: base64 of the smallest numbers that hold them, little end first."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints

WHOLE = {"u8": "<u1", "u16": "<u2", "u32": "<u4"}
"""Kinds of whole numbers, the smallest first; the page has an array type for each."""

Packed = dict[str, str]
"""An array in a page: its kind, and its bytes as text."""


def packed_ints(values: Ints) -> Packed:
    """Return whole numbers from 0 on, as small as they can be."""
    most = int(values.max(initial=0))
    kind = next(name for name, each in WHOLE.items() if most <= np.iinfo(each).max)
    return _packed(kind, values.astype(WHOLE[kind]))


def packed_floats(values: Floats) -> Packed:
    """Return numbers with the seven digits that anybody reads."""
    return _packed("f32", values.astype("<f4"))


def _packed(kind: str, values: NDArray[Any]) -> Packed:
    return {"kind": kind, "base64": base64.b64encode(values.tobytes()).decode()}
