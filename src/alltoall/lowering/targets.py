"""All targets in one table: the noun of each, and how its files are written, recognized and read.

The table is light: a writer or a reader is imported when called, so that a rank loads only what it
needs and the command line can name all targets at once.
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from alltoall.errors import FormatError, UsageError
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.registry import Registry, deferred

if TYPE_CHECKING:
    from alltoall.lowering.tables.routed_file import RoutedFile

MAX_LOWERED_BYTES = 256 << 20
"""Largest file of a target to read."""

SNIFFED = 1 << 16
"""Characters of a file that are searched for the sign of a target."""

Lowered: TypeAlias = Program | ExecutionPlan | Messages
"""The contents of a file of a target for schedules."""

Content: TypeAlias = str | Mapping[str, bytes]
"""The output of a target: the text of a file, or the files of a folder by name."""

Noun: TypeAlias = type[Schedule] | type[Routes]


@dataclass(frozen=True)
class Target:
    """The writer and the reader of a kind of file for a schedule or routes."""

    takes: Noun
    """The noun that it lowers: `Schedule` or `Routes`."""
    emit: Callable[[Any, Options], Any]
    """The writer: it returns `Content`, a text unless it writes a folder."""
    read: "Callable[[str, str], Lowered | RoutedFile] | None"
    """The reader: it takes a text and its path for messages, and returns a `RoutedFile` for routes.

    None for a target that is only written: its noun is checked in place of its file.
    """
    suffix: str
    summary: str
    sign: str
    """A distinctive text near the beginning of such files; empty for a folder."""
    tables: tuple[str, ...] = ()
    """The fields of `Options` that a caller's tables of nodes may fill: rank, address, places."""

    def admits(self, field: str) -> bool:
        """Return whether a table may fill a field; all program targets take ranks."""
        return field in self.tables or (field == "rank" and self.takes is Schedule)


def _target(name: str, target: Any) -> Target:
    """Check a registered target: its files can be named, written, recognized and read."""
    if not isinstance(target, Target) or target.takes not in (Schedule, Routes):
        expected = "expected a Target that takes a Schedule or Routes"
        raise UsageError(f"target {name!r} is {reprlib.repr(target)}; {expected}")
    if not callable(target.emit) or not (target.read is None or callable(target.read)):
        expected = (
            "emit and read are to be functions; read may be None where files are only written"
        )
        raise UsageError(f"target {name!r}: {expected}")
    if not target.suffix.startswith(".") or not (target.sign or target.read is None):
        raise UsageError(
            f"target {name!r}: suffix {target.suffix!r} and sign {target.sign!r}; expected a "
            "suffix that begins with a dot, and a text that only its files have near the beginning"
        )
    return target


def _here(where: str) -> Callable[..., Any]:
    """Return a function of this room that is imported when called."""
    return deferred(f"{__package__}.{where}")


TARGETS: Registry[Target] = Registry(
    "target",
    "alltoall.targets",
    {
        "routes": Target(
            Routes,
            _here("tables.table:emit_routes_table"),
            _here("tables.table:read_routes_table"),
            ".routes-table.json",
            "the table of a routed fabric: egress ports and layers",
            '"alltoall.routes-table/1"',
        ),
        "ompi": Target(
            Routes,
            _here("tables.ompi:emit_ompi"),
            _here("tables.ompi:read_ompi"),
            ".ompi.xml",
            "path-steered XML for an MPI runtime",
            "<alltoall",
            ("rank", "address"),
        ),
        "opensm": Target(
            Routes,
            _here("tables.opensm:emit_opensm"),
            _here("tables.opensm:read_opensm"),
            ".opensm.lfts",
            "forwarding tables for OpenSM on InfiniBand",
            "Unicast lids [",
        ),
        "simgrid": Target(
            Routes,
            _here("tables.simgrid:emit_simgrid"),
            None,
            ".simgrid.xml",
            "SimGrid platform with a route of every pair",
            'routing="Full"',
        ),
        "srv6": Target(
            Routes,
            _here("tables.srv6:emit_srv6"),
            _here("tables.srv6:read_srv6"),
            ".srv6.batch",
            "Linux segment routing commands",
            "# alltoall srv6/",
            ("places",),
        ),
        "linux": Target(
            Routes,
            _here("tables.linux:emit_linux"),
            None,
            ".linux",
            "scripts that make Linux hosts forward along routes, a folder",
            "",
            ("places",),
        ),
        "messages": Target(
            Schedule,
            _here("programs.messages:emit_messages"),
            deferred("alltoall.ir.files.messages:messages_from_text"),
            ".messages",
            "messages of ranks for MPI, torch and other runtimes that send",
            "alltoall.messages/1\n",
        ),
        "msccl": Target(
            Schedule,
            _here("programs.msccl_emit:emit_msccl"),
            _here("programs.msccl_read:read_msccl"),
            ".msccl.xml",
            "MSCCL XML for NCCL and RCCL on GPUs",
            "<algo",
        ),
        "mscclpp": Target(
            Schedule,
            _here("programs.mscclpp:emit_mscclpp"),
            _here("programs.mscclpp:read_mscclpp"),
            ".mscclpp.json",
            "MSCCL++ execution plan for GPUs",
            '"gpus"',
        ),
        "oneccl": Target(
            Schedule,
            _here("programs.oneccl:emit_oneccl"),
            _here("programs.oneccl:read_oneccl"),
            ".oneccl.xml",
            "oneCCL-style XML for CPUs",
            "<schedule",
        ),
        "goal": Target(
            Schedule,
            _here("programs.simulators:emit_goal"),
            None,
            ".goal",
            "GOAL text for the simulators LogGOPSim and ATLAHS",
            "num_ranks ",
        ),
        "chakra": Target(
            Schedule,
            _here("programs.simulators:emit_chakra"),
            None,
            ".chakra",
            "a folder of Chakra traces, a custom collective of the simulator ASTRA-sim",
            "",
        ),
    },
    _target,
)
"""All targets by name; others are added by `alltoall.register_target`."""


def targets_for(noun: Noun) -> dict[str, Target]:
    """Return the targets that take a noun."""
    return {name: target for name, target in TARGETS.items() if target.takes is noun}


def kind_of(text: str) -> str | None:
    """Recognize the target of a file by its text."""
    start, is_json = text[:SNIFFED], text.lstrip()[:1] == "{"
    for kind, target in TARGETS.items():
        mine = target.suffix.endswith("json") == is_json
        if mine and target.sign and target.sign in start:
            return kind
    return None


def parse_lowered(text: str, where: str) -> "tuple[str, Lowered | RoutedFile]":
    """Parse the file of a target; return the target's name and the contents."""
    kind = kind_of(text)
    if kind is None:
        known = (target.summary for target in TARGETS.values() if target.read is not None)
        raise FormatError(f"{where}: not the file of a target; expected one of: {', '.join(known)}")
    target = TARGETS[kind]
    if target.read is None:
        raise FormatError(
            f"{where}: a file of the target {kind}, which alltoall writes and does not read; use "
            f"the saved {target.takes.__name__.lower()} that it was lowered from"
        )
    return kind, target.read(text, where)
