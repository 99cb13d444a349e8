"""From a schedule to programs for runtimes, and from routes to tables of fabrics."""

from alltoall.lowering.options import Options
from alltoall.lowering.targets import (
    MAX_LOWERED_BYTES,
    TARGETS,
    Content,
    Lowered,
    Target,
    kind_of,
    parse_lowered,
    targets_for,
)

__all__ = [
    "MAX_LOWERED_BYTES",
    "TARGETS",
    "Content",
    "Lowered",
    "Options",
    "Target",
    "kind_of",
    "parse_lowered",
    "targets_for",
]
