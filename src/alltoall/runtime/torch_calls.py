"""All-to-alls as programs call them: arguments, execution and completion."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import prod
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from alltoall.ir.chunks import Chunks, PerShard
from alltoall.runtime.torch import Mover, bytes_of, dist, shared_sizes, torch

Tensor: TypeAlias = Any
Splits: TypeAlias = Sequence[int]
Job: TypeAlias = Callable[[], None]

Told: TypeAlias = PerShard | tuple[list[int], list[int]]
"""Sizes known to a rank: those of all pairs, or of what it sends to and receives from each."""


def told_sizes(output: Tensor, input: Tensor, splits: tuple[Splits, Splits], ranks: int) -> Told:
    """Return the bytes of a call of `all_to_all_single`, with the splits of its output and input.

    Without splits all pairs are equal, and ranks need not exchange sizes. Arguments that PyTorch
    refuses raise a ValueError.
    """
    if {output.layout, input.layout} != {torch.strided} or _kind(output) != _kind(input):
        raise ValueError("tensors that are not alike")
    if not any(splits):
        if input.numel() != output.numel() or input.numel() % ranks:
            raise ValueError("tensors that are not one equal shard per rank")
        return PerShard(ranks, size_of(input) // ranks)
    return _row_bytes(input, splits[1], ranks), _row_bytes(output, splits[0], ranks)


def _kind(tensor: Tensor) -> tuple[Any, Any]:
    return tensor.dtype, tensor.device


def _row_bytes(tensor: Tensor, splits: Splits, ranks: int) -> list[int]:
    """Return the bytes of each part of a tensor; without splits parts are equal."""
    rows = tensor.shape[0] if tensor.ndim else -1
    parts = list(splits) or [rows // ranks] * ranks
    if len(parts) != ranks or sum(parts) != rows or min(parts) < 0:
        raise ValueError("splits that are not those of the tensor")
    width = prod(tensor.shape[1:]) * tensor.element_size()
    return [part * width for part in parts]


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor."""
    return int(tensor.numel() * tensor.element_size())


def served(chunks: Chunks, shard: PerShard, min_bytes: int) -> bool:
    """Whether a schedule has chunks for all pairs with bytes: `min_bytes` of them on average.

    All ranks answer the same: they know the same sizes.
    """
    if shard.total < min_bytes * shard.ranks * (shard.ranks - 1):
        return False
    if chunks.counts is None or not shard.most:
        return True
    sizes = shard.of(*np.indices((shard.ranks, shard.ranks)))
    return not np.any((sizes > 0) & (chunks.counts == 0) & ~np.eye(shard.ranks, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class Call:
    """One all-to-all: the tensors to fill and to send, in the order of ranks, and their sizes."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    told: Told

    @property
    def device(self) -> Any:
        """The device of the tensors."""
        return self.outputs[0].device

    def carry_out(self, mover: Mover, min_bytes: int) -> bool:
        """Carry out the call; return whether the schedule served it."""
        # Also for tensors of inference mode, which a thread outside of it may not write to.
        with torch.inference_mode():
            given, taken = self._given(), self._taken()
            shard = self.told
            if not isinstance(shard, PerShard):
                shard = shared_sizes(mover.group, shard, self.device)
            by_schedule = served(mover.plan.chunks, shard, min_bytes)
            if by_schedule:
                mover.move(taken, given, shard)
            else:
                _native(mover, taken, given, shard)
            self._give_back(taken)
        return by_schedule

    def _given(self) -> Tensor:
        parts = [bytes_of(_plain(each)) for each in self.inputs]
        given = parts[0] if len(parts) == 1 else torch.cat(parts)
        # Of a tensor that is sent and filled at once, the schedule reads what it must not fill yet.
        shared = {each.untyped_storage().data_ptr() for each in self.outputs}
        return given.clone() if given.untyped_storage().data_ptr() in shared else given

    def _in_place(self) -> bool:
        output = self.outputs[0]
        return len(self.outputs) == 1 and _plain(output) is output

    def _taken(self) -> Tensor:
        if self._in_place():
            return bytes_of(self.outputs[0])
        total = sum(size_of(each) for each in self.outputs)
        return torch.empty(total, dtype=torch.uint8, device=self.device)

    def _give_back(self, taken: Tensor) -> None:
        """Copy results to the outputs, unless they were written in place."""
        if self._in_place():
            return
        parts = taken.split([size_of(each) for each in self.outputs])
        for output, part in zip(self.outputs, parts, strict=True):
            output.detach().copy_(part.view(output.dtype).view(output.shape))


def _plain(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor: itself, if it is one."""
    return tensor.contiguous().resolve_conj().resolve_neg()


def _native(mover: Mover, taken: Tensor, given: Tensor, shard: PerShard) -> None:
    """Use the backend's own all-to-all, on the private channel, where all ranks have one order."""
    rank, every = mover.plan.rank, np.arange(shard.ranks)
    sent, received = shard.of(rank + 0 * every, every), shard.of(every, rank + 0 * every)
    splits = (received.tolist(), sent.tolist())
    own_alltoall(mover.group)(taken, given, *splits, dist.AllToAllOptions()).wait()


def own_alltoall(group: Any) -> Callable[..., Any]:
    """Return a group's own `all_to_all_single`, or `alltoall_base` before torch 2.13."""
    found: Callable[..., Any] = getattr(group, "all_to_all_single", None) or group.alltoall_base
    return found


class TorchWork(dist.Work):  # type: ignore[misc]
    """The handle that `async_op=True` returns."""

    def __init__(self, result: list[Tensor]) -> None:
        super().__init__()
        self._result = result
        self._error: Exception | None = None
        self._future = torch.futures.Future()
        self.ended = threading.Event()

    def carry_out(self, job: Job) -> None:
        """Run the job, and keep its error for `wait`."""
        try:
            job()
        except Exception as error:
            self._error = error
            self._future.set_exception(error)
        else:
            self._future.set_result(self._result)
        finally:
            self.ended.set()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the end, and raise the error, if any."""
        seconds = timeout.total_seconds()
        if not self.ended.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"the all-to-all has not ended after {seconds:g} seconds")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the call has ended."""
        return self.ended.is_set()

    def is_success(self) -> bool:
        """Whether the call has ended without an error."""
        return self.ended.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error, if any."""
        return self._error

    def result(self) -> list[Tensor]:
        """Return the output tensors."""
        return self._result

    def get_future(self) -> Any:
        """Return a future of the output tensors."""
        return self._future


class Queue:
    """All-to-alls in call order, which is equal at all ranks.

    Asynchronous ones run on a separate thread.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Job, TorchWork] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: TorchWork | None = None
        self._lock = threading.Lock()

    def submit(self, job: Job, result: list[Tensor], later: bool) -> TorchWork:
        """Run a job, now or later, after all earlier ones."""
        pending = TorchWork(result)
        with self._lock:
            if not later:
                if self._last is not None:
                    self._last.ended.wait()
                pending.carry_out(job)
                return pending
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="alltoall", daemon=True)
                self._thread.start()
            self._last = pending
            self._jobs.put((job, pending))
        return pending

    def close(self) -> None:
        """Finish all jobs, and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (found := self._jobs.get()) is not None:
            job, pending = found
            pending.carry_out(job)
