"""A backend of torch.distributed whose all-to-alls use a schedule, for unmodified programs.

    import alltoall.runtime.torch_backend
    dist.init_process_group("alltoall")     # ALLTOALL_SCHEDULES=file[:file]
    group = wrap(group, schedules)         # or around an existing group

A group has inner backends (gloo for CPU tensors, NCCL for CUDA ones) for everything but
`all_to_all_single` and `all_to_all`. These use the group's schedule if one has its number of ranks,
over a second set of the same backends, so that messages do not mix with the program's.

Rank 0 of a group reads and checks the schedules, and sends the fitting one to the others: all ranks
have the same one, or none.
"""

import os
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from os import PathLike
from typing import Any, TypeAlias

from alltoall.ir.chunks import PerShard
from alltoall.ir.files.messages import messages_from_text, messages_text
from alltoall.ir.files.text import MAX_FILE_BYTES
from alltoall.ir.messages import Messages
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import counted
from alltoall.runtime.parts import Given
from alltoall.runtime.schedule_set import ScheduleSet
from alltoall.runtime.torch import Mover, dist, torch
from alltoall.runtime.torch_calls import (
    Call,
    Queue,
    Splits,
    own_alltoall,
    served,
    size_of,
    told_sizes,
)

Tensor: TypeAlias = Any
Group: TypeAlias = Any
Store: TypeAlias = Any

c10d = dist.distributed_c10d

NAME = "alltoall"
REPORT, QUIET = "ALLTOALL_REPORT", "ALLTOALL_QUIET"
"""Variables of the environment: print a line when a group ends in any case, or never.

Without them it is printed if any all-to-all of the group used no schedule."""

UNFIT = "tensors do not fit together"
SMALL = "shards are smaller than the least size given, or between pairs without chunks"

AGREED = "schedule"
"""Key in a group's store under which rank 0 shares the schedule."""

PASSED_ON = (
    *("abort", "allgather", "allgather_coalesced", "allreduce", "allreduce_coalesced", "barrier"),
    *("broadcast", "gather", "monitored_barrier", "recv", "recv_anysource", "reduce"),
    *("reduce_scatter", "scatter", "send", "_allgather_base", "_reduce_scatter_base"),
    *("allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"),
    *("all_gather_single", "all_gather_single_coalesced"),
    *("reduce_scatter_single", "reduce_scatter_single_coalesced"),
)
"""Methods forwarded to the inner group, in all versions of torch.

Inherited methods would run with Python's lock held and wait for a lock of gloo's, whose holder may
wait for Python's lock to free a tensor: a frequent deadlock.
"""


class ScheduledGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose all-to-alls use a schedule; its inner group does the rest.

    `schedule` is its name, empty if there is none. `taken` counts the all-to-alls that used it.
    """

    def __init__(self, inner: Group, store: Store, offered: ScheduleSet, name: str = "") -> None:
        super().__init__(inner.rank(), inner.size())
        self.inner, self.offered, self.schedule, self._name = inner, offered, "", name
        self.taken = 0
        self._unused: Counter[str] = Counter()
        for device in inner._device_types:
            _register(self, device, inner._get_backend(device))
        self._queue = Queue()
        self._mover: Mover | None = None
        messages = _agreed(store, inner, offered, bool(name) or not dist.is_initialized())
        if messages is not None:
            channel = _channel(inner, store)
            self._mover, self.schedule = Mover(messages.ranks[self.rank()], channel), messages.name

    @property
    def passed(self) -> int:
        """All-to-alls that the inner backend carried out."""
        return self._unused.total()

    @property
    def group_name(self) -> str:
        """The group's name in torch; a wrapping group has its own.

        Torch stores the names of the backends, which are those of the inner group.
        """
        return self._name or str(super().group_name)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Splits,
        input_split_sizes: Splits,
        opts: Any = None,
    ) -> Any:
        """Send the rows of `input` to the ranks by its splits; fill `output` likewise."""
        splits, opts = (output_split_sizes, input_split_sizes), opts or dist.AllToAllOptions()
        mover, why = None, UNFIT
        # What is wrong with a call is for PyTorch to say, in its own words.
        with suppress(ValueError):
            call = Call([output], [input], told_sizes(output, input, splits, self.size()))
            mover, why = self._serving(call)
        if mover is None:
            self._unused[why] += 1
            return own_alltoall(self.inner)(output, input, *splits, opts)
        return self._submit(call, mover, opts)

    alltoall_base = all_to_all_single
    """As torch before 2.13 calls it."""

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        """Send one tensor to each rank, and fill one from each."""
        opts = opts or dist.AllToAllOptions()
        sizes = [size_of(each) for each in inputs], [size_of(each) for each in outputs]
        call = Call(outputs, inputs, sizes)
        kinds = {(each.dtype, each.device, each.layout) for each in (*outputs, *inputs)}
        alike = len(outputs) == len(inputs) == self.size() and len(kinds) == 1
        mover, why = self._serving(call) if alike else (None, UNFIT)
        if mover is None:
            self._unused[why] += 1
            return self.inner.alltoall(outputs, inputs, opts)
        return self._submit(call, mover, opts)

    def shutdown(self) -> None:
        """Finish pending calls, and shut down the group's own backends."""
        self._queue.close()
        if self._mover is not None:
            self._mover.group.shutdown()
        asked = os.environ.get(REPORT) or (self.passed and not os.environ.get(QUIET))
        if asked and self.rank() == 0:
            sys.stderr.write(f"alltoall: {self.report()}\n")
        if not self._name:
            self.inner.shutdown()

    def report(self) -> str:
        """Return how many all-to-alls of the group used the schedule, and why others did not."""
        total = counted(self.taken + self.passed, "all-to-all")
        used = f"the schedule of {self.schedule}" if self.schedule else "a schedule"
        begin = f"{self.taken} of {total} of group {self.group_name} used {used}"
        many = len(self._unused) > 1
        reasons = [f"{n} where {why}" if many else why for why, n in self._unused.items()]
        return f"{begin}: {'; '.join(reasons)}" if reasons else begin

    def _serving(self, call: Call) -> tuple[Mover | None, str]:
        """Return the mover for a call, or the reason for none; equal at all ranks."""
        mover, told = self._mover, call.told
        if mover is None:
            return None, f"group has {counted(self.size(), 'rank')}, {_sizes(self.offered)}"
        if call.device.type not in _kinds(mover.group):
            return None, f"tensors are on {call.device.type}"
        least = self.offered.min_bytes
        if isinstance(told, PerShard) and not served(mover.plan.chunks, told, least):
            return None, SMALL
        return mover, ""

    def _submit(self, call: Call, mover: Mover, opts: Any) -> Any:
        """Carry out a call; an asynchronous one on a CPU needs a thread."""

        def job() -> None:
            if call.carry_out(mover, self.offered.min_bytes):
                self.taken += 1
            else:
                self._unused[SMALL] += 1

        later = getattr(opts, "asyncOp", True) and call.device.type == "cpu"
        return self._queue.submit(job, call.outputs, later)


def _sizes(offered: ScheduleSet) -> str:
    """Return the group sizes of the schedules, as rank 0 has read them."""
    sizes = offered.sizes()
    if not sizes:
        return "no schedule could be read"
    has = "schedule has" if len(sizes) == 1 else "schedules have"
    return f"{has} {', '.join(map(str, sizes))}"


def _passed_on(name: str) -> Callable[..., Any]:
    def call(self: ScheduledGroup, *args: Any, **options: Any) -> Any:
        return getattr(self.inner, name)(*args, **options)

    return call


for _name in PASSED_ON:
    if hasattr(dist.ProcessGroup, _name):
        setattr(ScheduledGroup, _name, _passed_on(_name))


def wrap(
    group: Group = None, schedules: Given | Sequence[Given] | None = None, *, min_bytes: int = 0
) -> ScheduledGroup:
    """Return a group with the ranks of an existing one, whose all-to-alls use a schedule.

    The call is collective; rank 0's arguments count. The given group is unchanged and must outlive
    the new one, which any function of torch.distributed accepts.

    Args:
        group: a process group; the default one if left out.
        schedules: a schedule, its messages, the path of either, a SPEC, or several of these; the
        first with the group's number of ranks is used (default: those in the environment).
        min_bytes: leave all-to-alls with fewer bytes per pair, on average, to the inner backend.

    """
    inner = group or dist.group.WORLD
    if schedules is None:
        offered = ScheduleSet.from_environment()
    else:
        one = isinstance(schedules, Schedule | Messages | str | PathLike)
        given: Any = [schedules] if one else schedules
        offered = ScheduleSet(list(given), min_bytes)
    store = c10d._get_process_group_store(inner)
    # The number of the wrap among those of this group, by which all its ranks call it.
    number = store.add(f"alltoall/wraps/{inner.rank()}", 1)
    store = dist.PrefixStore(f"alltoall/{number}/", store)
    found = ScheduledGroup(inner, store, offered, f"{inner.group_name}/alltoall/{number}")
    _introduce(found, store)
    return found


def _introduce(group: ScheduledGroup, store: Store) -> None:
    """Register a group with torch.distributed, as `new_group` does."""
    world, tag = c10d._world, f"ptd:{group.group_name}"
    world.pg_map[group] = (NAME, store)
    world.pg_names[group] = group.group_name
    world.pg_group_ranks[group] = dict(world.pg_group_ranks[group.inner])
    world.pg_backend_config[group] = world.pg_backend_config[group.inner]
    world.pg_to_tag[group] = tag
    for each in ("", tag):
        world.tags_to_pg.setdefault(each, []).append(group)
    c10d._register_process_group(group.group_name, group)


def _create(told: Any, options: Any) -> ScheduledGroup:
    """Make a group of the backend, as torch asks for one: `pg_options` may be a `ScheduleSet`."""
    inner = dist.ProcessGroup(told.store, told.group_rank, told.group_size)
    for kind, name in INNER.items():
        if AVAILABLE[name]():
            made = MAKERS[name](dist.PrefixStore(f"{kind}/", told.store), inner, told.timeout)
            made._set_sequence_number_for_group()
            _register(inner, torch.device(kind), made)
    world = dist.group.WORLD
    if isinstance(options, ScheduleSet):
        offered = options
    else:
        offered = (
            world.offered if isinstance(world, ScheduledGroup) else ScheduleSet.from_environment()
        )
    return ScheduledGroup(inner, dist.PrefixStore("alltoall/", told.store), offered)


def _gloo(store: Store, group: Group, timeout: timedelta) -> Any:
    return dist.ProcessGroupGloo(store, group.rank(), group.size(), timeout=timeout)


def _nccl(store: Store, group: Group, timeout: timedelta) -> Any:
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return dist.ProcessGroupNCCL(store, group.rank(), group.size(), options)


MAKERS: dict[str, Callable[[Store, Group, timedelta], Any]] = {"gloo": _gloo, "nccl": _nccl}
"""Constructors of the backends that schedules can use, by name."""

INNER = {"cpu": "gloo", "cuda": "nccl"}
"""The backend that serves each kind of device."""

AVAILABLE: dict[str, Callable[[], bool]] = {
    "gloo": dist.is_gloo_available,
    "nccl": lambda: bool(dist.is_nccl_available() and torch.cuda.is_available()),
}
"""Whether torch has each backend on this machine."""


def _register(group: Group, device: Any, backend: Any) -> None:
    """Register a backend for a kind of device; the last one also serves calls without a device."""
    kind = dist.Backend.backend_type_map[backend.name()]
    group._register_backend(device, kind, backend)
    group._set_default_backend(kind)


def _kinds(group: Group) -> set[str]:
    return {device.type for device in group._device_types}


def _names(group: Group) -> str:
    return ", ".join(sorted({group._get_backend(each).name() for each in group._device_types}))


def _channel(inner: Group, store: Store) -> Group:
    """Return a group of new backends like the known ones of another group."""
    channel = dist.ProcessGroup(store, inner.rank(), inner.size())
    for device in inner._device_types:
        backend = inner._get_backend(device)
        if backend.name() in MAKERS:
            place = dist.PrefixStore(f"channel/{device.type}/", store)
            made = MAKERS[backend.name()](place, inner, backend.options._timeout)
            _register(channel, device, made)
    _meet(store, inner.size())
    return channel


def _meet(store: Store, ranks: int) -> None:
    """Wait for all ranks, so that none sends while others are connecting.

    Without it, 8 ranks on a busy machine sometimes hung.
    """
    if store.add("connected", 1) == ranks:
        store.set("ready", b":")
    store.get("ready")


def _agreed(store: Store, group: Group, offered: ScheduleSet, expected: bool) -> Messages | None:
    """Return the messages that rank 0 has for a group; it warns once about bad files."""
    if group.rank() != 0:
        said = store.get(AGREED)
        text = zlib.decompressobj().decompress(said[1:], MAX_FILE_BYTES)
        return messages_from_text(text.decode(), "rank 0") if text else None
    found = offered.find(group.size())
    # At least one byte: a store may take an empty value for none.
    text = b"" if found is None else zlib.compress(messages_text(found).encode(), 1)
    store.set(AGREED, b":" + text)
    while offered.problems:
        _warn(offered.problems.pop(0), group)
    if found is None and offered.sizes() and expected:
        sizes = ", ".join(map(str, offered.sizes()))
        _warn(f"schedules for groups of {sizes} ranks, and a group of {group.size()}", group)
    return found


def _warn(problem: str, group: Group) -> None:
    text = (
        f"alltoall: {problem}; all-to-alls go by {_names(group)} itself where no schedule is left"
    )
    warnings.warn(text, RuntimeWarning, stacklevel=2)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=list(INNER))
