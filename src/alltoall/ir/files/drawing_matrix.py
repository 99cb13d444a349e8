"""A topology as a matrix: a cell for each pair of nodes, or of ranges where they are many."""

import struct
import zlib
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats
from alltoall.ir.files.drawing_style import SOFT, ramp, text
from alltoall.ir.topology import Topology

SIDE, MARGIN = 640.0, 56.0
"""Side of the matrix, and the room around it."""

MOST_CELLS = 400
"""Cells in a row; above that each stands for several nodes."""

SHADES = 64
"""Shades that are told apart."""

PLAIN = (0x20, 0x63, 0x9B)
"""The colour of the cells that have most links, where no load is known."""


def matrix_image(topology: Topology, share: Floats | None) -> tuple[str, tuple[float, float]]:
    """Return the matrix and the size it takes: rows send, columns receive."""
    cells = min(topology.nodes, MOST_CELLS)
    row, column = (end * cells // topology.nodes for end in (topology.tail, topology.head))
    value = np.zeros((cells, cells))
    if share is None:
        np.add.at(value, (row, column), topology.capacity)
    else:
        np.maximum.at(value, (row, column), share)
    linked = np.zeros((cells, cells), dtype=np.bool_)
    linked[row, column] = True
    level = np.ceil(value / max(float(value.max()), 1e-300) * (SHADES - 1)).astype(np.int64)
    colours = _palette(share is not None)[level]
    colours[~linked] = 255
    data = b64encode(_png(colours)).decode()
    each = -(-topology.nodes // cells)
    label = "each cell is a node" if each == 1 else f"each cell is {each} nodes or fewer"
    parts = (
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="white" '
        'stroke="#b8c4d0"/>',
        f'<image x="{MARGIN}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>',
        text(MARGIN + SIDE / 2, MARGIN - 34, f"to node ({label})", 13, "middle", SOFT),
        text(MARGIN, MARGIN - 14, "0", 12, "middle", SOFT),
        text(MARGIN + SIDE, MARGIN - 14, str(topology.nodes - 1), 12, "middle", SOFT),
        text(MARGIN - 10, MARGIN + 6, "0", 12, "end", SOFT),
        text(MARGIN - 10, MARGIN + SIDE - 6, str(topology.nodes - 1), 12, "end", SOFT),
        f'<g transform="translate({MARGIN - 34:.0f} {MARGIN + SIDE / 2:.0f}) rotate(-90)">'
        f"{text(0, 0, 'from node', 13, 'middle', SOFT)}</g>",
    )
    return "\n".join(parts), (SIDE + 2 * MARGIN, SIDE + 1.4 * MARGIN)


def _palette(loaded: bool) -> NDArray[np.uint8]:
    """Return the colours of all shades."""
    at = np.arange(SHADES) / (SHADES - 1)
    if loaded:
        return np.array([_bytes(ramp(each)) for each in at.tolist()], dtype=np.uint8)
    shades: NDArray[np.uint8] = np.rint(190 + at[:, None] ** 0.5 * (np.array(PLAIN) - 190)).astype(
        np.uint8
    )
    return shades


def _bytes(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


def _png(colours: NDArray[np.uint8]) -> bytes:
    """Return rows of red, green and blue as a PNG file."""
    height, width, _ = colours.shape
    rows = np.zeros(
        (height, 3 * width + 1), dtype=np.uint8
    )  # Each row begins with its filter: none.
    rows[:, 1:] = colours.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
