"""Programs and execution plans as JSON, to keep them: no runtime reads this format.

In `code`, every record of `ir.program` and `ir.execution_plan` is an array of its fields in their
order, every tuple an array, and every enum member its value.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from alltoall.errors import FormatError
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import ExecutionPlan, RankPlan
from alltoall.ir.files.fields import MAX_INT, Json, naming, short, take_int, take_text
from alltoall.ir.files.json.values import artefact
from alltoall.ir.program import MAX_RANKS, Program, RankProgram

PROGRAM_FORMAT = "alltoall.program/1"
PLAN_FORMAT = "alltoall.execution-plan/1"

Code = TypeVar("Code")


def program_to_json(program: Program) -> Json:
    """Return the JSON form of a program."""
    return _to_json(PROGRAM_FORMAT, program) | {"fifo_slots": program.fifo_slots}


def plan_to_json(plan: ExecutionPlan) -> Json:
    """Return the JSON form of an execution plan."""
    return _to_json(PLAN_FORMAT, plan)


def _to_json(name: str, lowered: Program | ExecutionPlan) -> Json:
    chunks = lowered.chunks
    even = {"chunks_per_shard": chunks.per_shard} if chunks.per_shard is not None else {}
    return {
        "format": name,
        "name": lowered.name,
        "ranks": chunks.ranks,
        **(even or {"chunks": chunks.rows()}),
        "code": _plain(lowered.ranks),
    }


def _plain(value: Any) -> Any:
    """Return a record, and its inner records, as arrays."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return [_plain(getattr(value, key)) for key in _fields(value.__class__)]
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def program_from_json(value: object, where: str) -> Program:
    """Build a program from its JSON form; the interpreter says what it does."""
    obj = artefact(value, PROGRAM_FORMAT, where)
    build = partial(Program, fifo_slots=take_int(obj, "fifo_slots", where))
    return _build(build, RankProgram, obj, where)


def plan_from_json(value: object, where: str) -> ExecutionPlan:
    """Build an execution plan from its JSON form; the interpreter says what it does."""
    return _build(ExecutionPlan, RankPlan, artefact(value, PLAN_FORMAT, where), where)


def _build(kind: Callable[..., Code], rank: type, obj: Json, where: str) -> Code:
    name, ranks = take_text(obj, "name", where), take_int(obj, "ranks", where, MAX_RANKS)
    code = _read(tuple[rank, ...], obj.get("code"), f"{where}: code")  # type: ignore[valid-type]
    with naming(where):
        return kind(name, _chunks(obj, ranks, where), code)


def _chunks(obj: Json, ranks: int, where: str) -> Chunks:
    if "chunks" not in obj:
        return Chunks(ranks, take_int(obj, "chunks_per_shard", where))
    rows = _read(tuple[tuple[int, ...], ...], obj["chunks"], f"{where}: chunks")
    if any(len(row) != 3 for row in rows):
        raise FormatError(f"{where}: chunks has other rows than [source, destination, count]")
    return Chunks.from_rows(ranks, rows)


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
