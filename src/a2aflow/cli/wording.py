"""What `lower` and `verify` found, in words for people; the JSON has the names of the fields."""

import re
from collections.abc import Mapping
from typing import Any

from a2aflow.cli.show import line_of

WORDING = {
    "format": ("target", "{}"),
    "time": ("time", "{:.9g}"),
    "bound": ("bound", "{:.9g}, certified"),
    "max_load": ("fullest link", "{:.9g} of its capacity"),
    "groups": ("flows", "{:,}"),
    "routes": ("routes", "{:,}"),
    "max_routes_per_pair": ("per pair", "{} routes at most"),
    "chunks_per_shard": ("chunks", "{} per shard"),
    "max_chunks_per_shard": ("largest shard", "{:,} chunks"),
    "padding": ("padding", "{:.2%} more data, as all chunks are as large as the largest"),
    "sends": ("sends", "{:,}"),
    "max_sends_per_link": ("busiest pair", "{:,} sends"),
    "scratch_chunks": ("scratch", "{:,} chunks at most on a rank"),
    "thread_blocks": ("thread blocks", "{} at most on a rank"),
    "runtimes": ("accepted by", "{}"),
    "refused_by": ("refused by", "{}"),
    "queue_pairs": ("queue pairs", "{:,}"),
    "bytes": ("size", "{:,} bytes"),
    "seconds": ("took", "{:.2f} s"),
}
"""The label of a field, and how its value is written; others are labelled by their name."""


def lines_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines for people, in the order of the fields."""
    return dict(_line(key, value) for key, value in found.items())


def _line(key: str, value: Any) -> tuple[str, str]:
    if key == "correct":
        return "bytes", "each arrives where it must" if value else "wrong"
    if key == "gap":
        return "gap", f"{max(0.0, value):.2e}"
    if key == "layers":
        return "layers", "not assigned" if value is None else str(value)
    label, form = WORDING.get(key, (key.replace("_", " "), "{}"))
    simple = isinstance(value, int | float) and not isinstance(value, bool)
    text = form.format(value if simple else line_of(value))
    return label, re.sub(r"^1 (\w+)s\b", r"1 \1", text) if simple else text
