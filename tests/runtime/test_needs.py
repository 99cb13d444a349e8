"""Shards beyond memory are refused before anything starts."""

from pathlib import Path

import pytest

from alltoall.errors import LimitError
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime import launch, needs
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule
from saved import save

GIB = 1 << 30


@pytest.mark.parametrize("on", ["reference", "mpi", "torch"])
def test_shards_beyond_memory(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte to each other rank: the message has the need and the supply, and exit code 3."""
    monkeypatch.setattr(launch, "grouped", None)
    monkeypatch.setattr(needs, "available_bytes", lambda: 3 * GIB)
    with pytest.raises(LimitError) as caught:
        run_schedule(save(tmp_path), on, RunSettings(sizes=(1, 1 << 40)))
    assert caught.value.exit_code == 3
    assert "shards of 1,099,511,627,776 bytes" in str(caught.value)
    assert "in 8 ranks" in str(caught.value)
    assert "3.0 GiB is free" in str(caught.value)


@pytest.mark.parametrize(("free", "fits"), [(0, True), (-1, False)])
def test_memory_that_just_fits(free: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together the ranks may take all that there is, and no byte more."""
    messages = messages_of(hop_schedule(build("ring:5"), 2))
    total = sum(needs.needed_bytes(messages, 1000))
    monkeypatch.setattr(needs, "available_bytes", lambda: total + free)
    if fits:
        needs.require_memory([messages], [1000, 10])
    else:
        with pytest.raises(LimitError, match="shards of 1,000 bytes"):
            needs.require_memory([messages], [10, 1000])


def test_the_need_has_buffers_and_scratch() -> None:
    """Four buffers of all shards, the pattern, and twice the scratch in slots of a whole chunk."""
    messages = messages_of(hop_schedule(build("ring:5"), 2))
    scratch = [part.scratch for part in messages.ranks]
    assert max(scratch) > 0
    expected = [(64 << 20) + (4 * 5 + 12) * 7 + 2 * slots * 4 for slots in scratch]
    assert needs.needed_bytes(messages, 7) == expected


@pytest.mark.parametrize(
    ("memory", "limit", "available"),
    [
        ("MemTotal: 9 kB\nMemAvailable: 5 kB\nHugetlb: 0 kB\n", None, 5 << 10),
        ("MemAvailable: 5 kB\n", "max\n", 5 << 10),
        ("MemAvailable: 5 kB\n", "3000\n", 2000),
        ("MemAvailable: 1 kB\n", "3000\n", 1024),
        (None, "3000\n", 2000),
        ("MemTotal: 9 kB\n", None, None),
        (None, None, None),
    ],
)
def test_what_is_available(
    memory: str | None,
    limit: str | None,
    available: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The less of what the machine has and what the container may have; unknown is no limit."""
    for name, text in (("MEMORY", memory), ("LIMIT", limit), ("USED", "1000\n")):
        monkeypatch.setattr(needs, name, tmp_path / name)
        if text is not None:
            (tmp_path / name).write_text(text)
    assert needs.available_bytes() == available
    if available is None:
        needs.require_memory([messages_of(hop_schedule(build("ring:3")))], [1 << 60])
