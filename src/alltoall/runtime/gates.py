"""Runs that begin at once: each says that it is ready, and waits until the others have."""

import time
from collections.abc import Sequence
from pathlib import Path

from alltoall.errors import VerificationError

LOOK_SECONDS = 0.01
"""How often to look whether the others are ready: short beside an all-to-all over slow links."""


def pass_gates(gates: Sequence[str], seconds: float) -> None:
    """Make the first of these files, and return when all exist; raise after so many seconds."""
    if not gates:
        return
    Path(gates[0]).touch()
    deadline = time.monotonic() + seconds
    while missing := [gate for gate in gates if not Path(gate).exists()]:
        if time.monotonic() > deadline:
            raise VerificationError(
                "runs that were to begin at once",
                [
                    f"{len(missing)} of {len(gates)} were not ready within {seconds:g} seconds; "
                    "expected all: give them longer (--timeout)"
                ],
            )
        time.sleep(LOOK_SECONDS)
