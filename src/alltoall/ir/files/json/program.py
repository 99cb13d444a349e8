"""Programs and execution plans as JSON, to keep them: no runtime reads this format.

In `code`, every record of `ir.program` and `ir.execution_plan` is an array of its fields in their
order, every tuple an array, and every enum member its value.
"""

from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from alltoall.errors import FormatError
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import ExecutionPlan, RankPlan
from alltoall.ir.files.fields import MAX_INT, Json, naming, short, take_int, take_text
from alltoall.ir.files.json.values import artefact, format_of
from alltoall.ir.program import MAX_RANKS, Program, RankProgram

PROGRAM_FORMAT = "alltoall.program/1"
PLAN_FORMAT = "alltoall.execution-plan/1"


def program_to_json(lowered: Program | ExecutionPlan) -> Json:
    """Return the JSON form of a program or an execution plan."""
    chunks, is_program = lowered.chunks, isinstance(lowered, Program)
    even = {"chunks_per_shard": chunks.per_shard} if chunks.per_shard is not None else {}
    return {
        "format": PROGRAM_FORMAT if is_program else PLAN_FORMAT,
        "name": lowered.name,
        "ranks": chunks.ranks,
        **(even or {"chunks": chunks.rows()}),
        "code": _plain(lowered.ranks),
        **({"fifo_slots": lowered.fifo_slots} if isinstance(lowered, Program) else {}),
    }


def _plain(value: Any) -> Any:
    """Return a record, and its inner records, as arrays."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return [_plain(getattr(value, key)) for key in _fields(value.__class__)]
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def program_from_json(value: object, where: str) -> Program | ExecutionPlan:
    """Build a program or a plan from its JSON form; the interpreter says what it does."""
    is_plan = format_of(value, where) == PLAN_FORMAT
    obj = artefact(value, PLAN_FORMAT if is_plan else PROGRAM_FORMAT, where)
    name, ranks = take_text(obj, "name", where), take_int(obj, "ranks", where, MAX_RANKS)
    kind: Any = tuple[RankPlan, ...] if is_plan else tuple[RankProgram, ...]
    code = _read(kind, obj.get("code"), f"{where}: code")
    with naming(where):
        if "chunks" in obj:
            rows = _read(tuple[tuple[int, ...], ...], obj["chunks"], f"{where}: chunks")
            if any(len(row) != 3 for row in rows):
                raise FormatError(
                    f"{where}: chunks has other rows than [source, destination, count]"
                )
            chunks = Chunks.from_rows(ranks, rows)
        else:
            chunks = Chunks(ranks, take_int(obj, "chunks_per_shard", where))
        if is_plan:
            return ExecutionPlan(name, chunks, code)
        return Program(name, chunks, code, take_int(obj, "fifo_slots", where))


@cache
def _fields(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def _read(kind: Any, value: object, here: str) -> Any:
    """Return a value as one of the types that programs consist of."""
    if get_origin(kind) is UnionType:
        return None if value is None else _read(get_args(kind)[0], value, here)
    if get_origin(kind) is tuple:
        entries = enumerate(_entries(value, here))
        return tuple(_read(get_args(kind)[0], each, f"{here}[{at}]") for at, each in entries)
    if kind in (int, bool) or issubclass(kind, Enum):
        if issubclass(kind, Enum):
            known = {each.value: each for each in kind}
            if type(value) in (int, str) and value in known:
                return known[value]
            expected = f"one of {', '.join(map(str, known))}"
        else:
            if type(value) is kind and 0 <= value <= MAX_INT:  # type: ignore[operator]
                return value
            expected = f"an integer 0..{MAX_INT}" if kind is int else "true or false"
        raise FormatError(f"{here} is {short(value)}; expected {expected}")
    fields, row = _fields(kind), _entries(value, here)
    if len(row) != len(fields):
        raise FormatError(f"{here} has {len(row)} entries; expected {', '.join(fields)}")
    named = zip(fields.items(), row, strict=True)
    return kind(*(_read(inner, each, f"{here}.{key}") for (key, inner), each in named))


def _entries(value: object, here: str) -> list[object]:
    if not isinstance(value, list):
        raise FormatError(f"{here} is {short(value)}; expected an array")
    return value
