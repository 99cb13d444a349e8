"""What is measured and found, by endpoints that do as they are told."""

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import numpy as np
import pytest

from alltoall.ir.chunks import PerShard
from alltoall.ir.demand import Demand
from alltoall.runtime import bench
from alltoall.runtime.bench import Bytes, measure, report_from_json


@dataclass
class Scripted:
    """All ranks in one process; every call takes a known time, and bytes can be made wrong."""

    ranks: int = 3
    demand: Demand = field(default_factory=lambda: Demand(3))
    here: tuple[int, ...] = (0, 1, 2)
    name: str = "scripted"
    native_name: str | None = "its own"
    wrong: dict[int, tuple[int, int]] = field(default_factory=dict)
    now: float = 0.0
    calls: list[str] = field(default_factory=list)

    def clock(self) -> float:
        """Tell the time."""
        return self.now

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Transpose in 2, 4, 6, ... seconds; spoil rank and byte where this call is to."""
        self._move("exchange", send, recv)
        count = self.calls.count("exchange")
        self.now += 2.0 * count
        if count in self.wrong:
            rank, at = self.wrong[count]
            recv[rank][at] ^= 0xFF

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Transpose in one second."""
        self._move("native", send, recv)
        self.now += 1.0

    def _move(self, call: str, send: list[Bytes], recv: list[Bytes]) -> None:
        self.calls.append(call)
        shards = np.stack(send).reshape(self.ranks, self.ranks, -1).swapaxes(0, 1)
        for taken, given in zip(recv, shards, strict=True):
            taken[:] = given.ravel()

    def barrier(self) -> None:
        """Take long, which must not be timed."""
        self.calls.append("barrier")
        self.now += 100.0

    def gather(self, value: Any) -> list[Any]:
        """Return what two processes would, the other one slower by half."""
        if value and isinstance(value[0], float):
            return [value, [1.5 * each for each in value]]
        return [value, []]

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Return an endpoint whose clock is the one that is read."""
    found = Scripted()
    monkeypatch.setattr("time.perf_counter", found.clock)
    return found


def test_times_are_those_of_the_slowest_after_the_warmup(scripted: Scripted) -> None:
    """Calls take turns after barriers, between two checks; what comes first is not counted."""
    report = measure(scripted, [10], iterations=3, warmup=2)
    timed = ["barrier", "exchange", "barrier", "native"] * 5
    assert scripted.calls == ["exchange", *timed, "exchange"]
    (row,) = report.rows
    # Calls 2 to 6 are timed and take 4 to 12 seconds; the last three count, times a half more.
    assert (row.ours.least, row.ours.mean, row.ours.most) == (12.0, 15.0, 18.0)
    assert (row.bytes, row.size) == (10, 30)
    assert (row.ours.algbw, row.ours.busbw, row.ours.throughput) == (2.0, 20 / 15, 20 / 15)
    assert row.native is not None
    assert (row.native.mean, row.native.algbw, row.native.busbw) == (1.5, 20.0, 20 / 1.5)
    assert row.ratio == 0.1
    assert report.violations == ()
    assert (report.runtime, report.native, report.ranks) == ("scripted", "its own", 3)
    assert report.links_emulated is False


def test_without_an_all_to_all_of_its_own(scripted: Scripted) -> None:
    """Nothing is called in its place."""
    scripted.native_name = None
    report = measure(scripted, [10], iterations=3, warmup=0)
    assert "native" not in scripted.calls
    assert (report.native, report.rows[0].native, report.rows[0].ratio) == (None, None, None)


@pytest.mark.parametrize("native", ["its own", None])
def test_a_report_survives_its_file(scripted: Scripted, native: str | None) -> None:
    """What a rank writes is what the launcher reads."""
    scripted.native_name = native
    report = measure(scripted, [1, 2], iterations=1, warmup=0)
    written = report.to_json()
    written["rows"], written["violations"] = list(written["rows"]), list(written["violations"])
    assert report_from_json(written) == report


def test_reports_cannot_be_changed(scripted: Scripted) -> None:
    """What was measured stays as it was."""
    report = measure(scripted, [1], iterations=1, warmup=0)
    for noun, name in ((report, "ranks"), (report.rows[0], "bytes"), (report.rows[0].ours, "mean")):
        with pytest.raises(FrozenInstanceError):
            setattr(noun, name, 1)


@pytest.mark.parametrize("call", [1, 4])
def test_a_wrong_byte_is_found_before_and_after(scripted: Scripted, call: int) -> None:
    """In the first call and in the one after all the timed ones; later sizes are left out."""
    scripted.wrong = {call: (1, 17)}
    report = measure(scripted, [7, 8], iterations=2, warmup=0)
    assert [row.bytes for row in report.rows] == [7]
    (told,) = report.violations
    found = int(bench.received_by(1, PerShard(3, 7))[17])
    assert told == (
        "shards of 7 bytes: rank 1 has 1 wrong bytes in the shard from rank 2, the first at 3: "
        f"found {found ^ 0xFF}, expected {found}"
    )


def test_bytes_that_never_came_are_found(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An all-to-all that does nothing leaves every byte wrong, and not all of them are told."""
    monkeypatch.setattr(Scripted, "_move", lambda self, call, *_: self.calls.append(call))
    scripted.ranks, scripted.demand, scripted.here = 12, Demand(12), tuple(range(12))
    report = measure(scripted, [4], iterations=1, warmup=0)
    # Ten of each rank, in the check before and the one after.
    assert len(report.violations) == 2 * 12 * bench.MAX_TOLD == 240
    assert all("4 wrong bytes" in each and "the first at 0" in each for each in report.violations)


@pytest.mark.parametrize(("ranks", "size"), [(2, 1), (5, 3), (16, 300)])
def test_what_is_sent_is_what_must_be_received(ranks: int, size: int) -> None:
    """Shard d of rank s is shard s of rank d."""
    sent = np.stack([bench.sent_by(rank, PerShard(ranks, size)) for rank in range(ranks)])
    received = np.stack([bench.received_by(rank, PerShard(ranks, size)) for rank in range(ranks)])
    shape = (ranks, ranks, size)
    assert np.array_equal(sent.reshape(shape).swapaxes(0, 1), received.reshape(shape))


def test_no_shard_looks_like_another() -> None:
    """Neither another pair's nor a shifted one, so that what is mixed up is found out."""
    sent = [bench.sent_by(rank, PerShard(8, 64)).reshape(8, 64) for rank in range(8)]
    shards = [tuple(row) for rows in sent for row in rows]
    assert len(set(shards)) == 64
    pattern = bench._by_position(1024)
    assert len(np.unique(pattern)) == 256
    for shift in range(1, 1000):
        assert np.mean(pattern[shift:] == pattern[:-shift]) < 0.9
