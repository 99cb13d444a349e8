"""Arrays as text in a page: base64 of the smallest little-endian numbers that hold them."""

import base64

import numpy as np

from alltoall.ir.arrays import Floats, Ints

WHOLE = {"u8": "<u1", "u16": "<u2", "u32": "<u4"}
"""Kinds of whole numbers, smallest first; the page has an array type for each."""

Packed = dict[str, str]
"""An array in a page: its kind, and its bytes as text."""


def packed_ints(values: Ints) -> Packed:
    """Pack non-negative whole numbers into the smallest kind."""
    most = int(values.max(initial=0))
    kind = next(name for name, form in WHOLE.items() if most <= np.iinfo(form).max)
    return _packed(kind, values.astype(WHOLE[kind]).tobytes())


def packed_floats(values: Floats) -> Packed:
    """Pack numbers in single precision: seven digits."""
    return _packed("f32", values.astype("<f4").tobytes())


def _packed(kind: str, data: bytes) -> Packed:
    return {"kind": kind, "base64": base64.b64encode(data).decode()}
