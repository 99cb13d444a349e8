"""Runs that begin at once wait for each other, and not forever."""

import threading
from pathlib import Path

import pytest

from alltoall.errors import VerificationError
from alltoall.runtime.worker import pass_gates


def test_nobody_passes_before_all_are_there(tmp_path: Path) -> None:
    """The first waits for the last, which then finds all gates open."""
    own, other = (str(tmp_path / name) for name in ("own", "other"))
    first = threading.Thread(target=pass_gates, args=([own, other], 60), daemon=True)
    first.start()
    first.join(0.1)
    assert first.is_alive()
    pass_gates([other, own], 60)
    first.join(60)
    assert not first.is_alive()


def test_one_that_never_comes_is_told_of(tmp_path: Path) -> None:
    """After the time of the run; without gates there is nothing to wait for."""
    gates = [str(tmp_path / name) for name in ("own", "second", "third")]
    with pytest.raises(VerificationError, match=r"2 of 3 were not ready within 0\.05 seconds"):
        pass_gates(gates, 0.05)
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    pass_gates([], 0)
