"""From a schedule to programs for real runtimes: passes over programs, one emitter per target."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2aflow.errors import FormatError
from a2aflow.ir.execution_plan import ExecutionPlan
from a2aflow.ir.files.messages import MESSAGES_FORMAT, messages_from_text
from a2aflow.ir.files.text import read_text
from a2aflow.ir.messages import Messages
from a2aflow.ir.program import Program
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering.programs.compile import program_of
from a2aflow.lowering.programs.messages import emit_messages
from a2aflow.lowering.programs.msccl.emit import FIFO_SLOTS, emit_msccl
from a2aflow.lowering.programs.msccl.limits import RUNTIMES
from a2aflow.lowering.programs.msccl.read import read_msccl
from a2aflow.lowering.programs.mscclpp.emit import emit_mscclpp
from a2aflow.lowering.programs.mscclpp.read import read_mscclpp
from a2aflow.lowering.programs.oneccl.emit import emit_oneccl
from a2aflow.lowering.programs.oneccl.read import read_oneccl
from a2aflow.lowering.programs.options import Options
from a2aflow.lowering.registering import GROUP, require_target
from a2aflow.registry import Registry

__all__ = [
    "PROTOCOLS",
    "RUNTIMES",
    "TARGETS",
    "Options",
    "Target",
    "kind_of",
    "parse_program",
    "program_of",
    "read_program",
]

MAX_FILE_BYTES = 256 << 20
PROTOCOLS = tuple(FIFO_SLOTS)
Lowered = Program | ExecutionPlan | Messages


@dataclass(frozen=True)
class Target:
    """How a schedule becomes a file for a runtime, and how such a file is read."""

    emit: Callable[[Schedule, Options], str]
    read: Callable[[str, str], Lowered]
    suffix: str
    summary: str
    sign: str
    """What the text of such a file has, and of the other formats has not, near its beginning."""


def _target(name: str, target: Any) -> Target | None:
    """Return what somebody registers as a target, if it is one for schedules."""
    if not isinstance(target, Target):
        return None
    require_target(name, target)
    return target


TARGETS: Registry[Target] = Registry(
    "target",
    GROUP,
    {
        "messages": Target(
            emit_messages,
            messages_from_text,
            ".messages",
            "messages of ranks for MPI, torch and other runtimes that send",
            f"{MESSAGES_FORMAT}\n",
        ),
        "msccl": Target(
            emit_msccl, read_msccl, ".msccl.xml", "MSCCL XML for NCCL and RCCL on GPUs", "<algo"
        ),
        "mscclpp": Target(
            emit_mscclpp, read_mscclpp, ".mscclpp.json", "MSCCL++ execution plan for GPUs", '"gpus"'
        ),
        "oneccl": Target(
            emit_oneccl, read_oneccl, ".oneccl.xml", "oneCCL-style XML for CPUs", "<schedule"
        ),
    },
    _target,
)
"""All targets for schedules by name; others are added by `a2aflow.register_target`."""

SNIFFED = 1 << 16


def read_program(path: Path) -> tuple[str, Lowered]:
    """Read a lowered file of any target; return the target's name and what the file says."""
    return parse_program(read_text(path, MAX_FILE_BYTES), str(path))


def parse_program(text: str, where: str) -> tuple[str, Lowered]:
    """Parse the text of a lowered file of any target."""
    kind = kind_of(text)
    if kind is None:
        names = ", ".join(target.summary for target in TARGETS.values())
        raise FormatError(f"{where}: not a lowered program; expected one of: {names}")
    return kind, TARGETS[kind].read(text, where)


def kind_of(text: str) -> str | None:
    """Return the name of the target that a text looks like a file of, if any."""
    for kind, target in TARGETS.items():
        looks_like_json = text.lstrip()[:1] == "{"
        if (target.suffix.endswith("json") == looks_like_json) and target.sign in text[:SNIFFED]:
            return kind
    return None
