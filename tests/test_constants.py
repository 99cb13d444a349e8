"""Constants are explained; those that tune a search are few, and each moves a benchmark."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import alltoall
from alltoall.flows import sizes

PACKAGE = Path(alltoall.__file__).parent

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

ROOMS = ("flows", "routes", "schedules", "placing", "paths")
"""The rooms that search."""

MOST_TUNING = 118
"""Numbers that may tune the searches of all rooms together."""

FIXED: dict[str, str] = {
    "refuses or ends what takes too much memory or time": """
        MOST_PROGRAM_BYTES MOST_GROUP_NODES  MOST_SHIFTS MOST_TRIES MOST_ENTRIES
        MOST_ROUTE_BYTES MOST_LISTED_LINKS MOST_FILES MOST_CELLS MOST_PATHS MOST_ROUTE_CHUNKS
        MOST_TABLE_LINKS MOST_SCHEDULE_CHUNKS MOST_CANDIDATE_LINKS MOST_FLOWS USEFUL_LAYERS
        MOST_TRIED_PER_SHARD MOST_COLUMN_ROUNDS MOST_RAISED SYMMETRIC_LINKS SYMMETRIC_DEMANDS
        TRANSLATED_LINKS
        StepParams.most_steps ListParams.most_chunks
        ListParams.most_in_rounds MOST_PAIRS MOST_VARIABLES ROUTING_SHARE""",
    "is measured or proven: bytes, seconds, layers": """
        VARIABLE_BYTES VARIABLE_SECONDS FLOW_BYTES HOP_BYTES ENTRY_BYTES FREE_SIDE DATELINE_LAYERS
        LEAST_ROWS""",
    "is an error of rounding, keeps numbers finite, or breaks ties": """
        SAME_EIGENVALUE SMALL_GAP LEAST_LENGTH NEARLY_WHOLE SOLVER_MISS
        NEGLIGIBLE_WEIGHT NO_LOSS MAX_COUNT FINEST_GRID LAST_STEEPNESS MOST_PRESSURE WAITING_COST
        LARGEST_DENOMINATOR MOST_UNITS ROUNDING""",
    "is the work of one call, between two looks at the clock": """
        BLOCK_ENTRIES BLOCK_CELLS TREES_PER_CALL READ_PER_CALL OFFERED_PER_CALL MOST_CYCLES
        PLACED_PER_CALL CHOICES_PER_CALL MOST_REROUTED""",
    "is part of a published method": "MOST_JOINED",
    "marks what has no value": "NOWHERE UNPLACED OTHER_SEED",
    "is the default or the meaning of an option": """
        DEFAULT_ROUTES DEFAULT_LAYERS DEFAULT_SECONDS PAIR_SIGMA DESTINATION_SIGMA JUDGED
        LEAST_LEFT
        PlacementParams.threads""",
    "is a time or number of tries for other processes": """
        CHECKPOINT_SECONDS MOST_RETRIES SCHEDULER_SECONDS WORKER_SECONDS POLL_SECONDS
        ITEMS_AHEAD""",
}
"""Numbers that tune nothing, by what they do instead."""


@dataclass(frozen=True)
class Constant:
    """A constant of a module or a field of its parameters, and the numbers in its value."""

    path: Path
    name: str
    numbers: int
    docstring: str

    def __str__(self) -> str:
        """Return where it stands."""
        return f"{self.path.relative_to(PACKAGE)}: {self.name}"


@cache
def constants(path: Path) -> tuple[Constant, ...]:
    """Return the constants of a module and the fields of its classes of parameters."""
    body = ast.parse(path.read_text()).body
    found: list[Constant] = []
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.ClassDef) and statement.name.endswith("Params"):
            found += fields(path, statement)
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        told = after.value if isinstance(after, ast.Expr) else None
        docstring = str(told.value) if isinstance(told, ast.Constant) else ""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        walked = [node for target in targets for node in ast.walk(target)]
        names = [node.id for node in walked if isinstance(node, ast.Name)]
        value = statement.value
        values = [value] * len(names)
        if len(names) > 1 and isinstance(value, ast.Tuple):
            values = value.elts
        for name, part in zip(names, values, strict=True):
            if name.isupper() and not name.startswith("_"):
                found.append(Constant(path, name, numbers(part), docstring))
    return tuple(found)


def fields(path: Path, parameters: ast.ClassDef) -> Iterator[Constant]:
    """Yield the fields of a class of parameters; each has its docstring and that of its class."""
    docstring = ast.get_docstring(parameters) or ""
    for field in parameters.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name = field.target.id
            told = docstring if re.search(rf"\b{name}\b", docstring) else ""
            count = numbers(field.value) if field.value else 0
            yield Constant(path, f"{parameters.name}.{name}", count, told)


def numbers(value: ast.expr) -> int:
    """Return how many numbers a value has; a sum or product of numbers is one."""
    match value:
        case ast.Constant():
            return int(isinstance(value.value, int | float) and not isinstance(value.value, bool))
        case ast.UnaryOp():
            return numbers(value.operand)
        case ast.BinOp():
            return min(1, numbers(value.left) + numbers(value.right))
        case ast.Tuple():
            return sum(map(numbers, value.elts))
        case ast.Call():
            return sum(map(numbers, [*value.args, *(each.value for each in value.keywords)]))
    return 0


def all_constants() -> list[Constant]:
    """Return the constants of all rooms that search."""
    paths = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    return [constant for path in paths for constant in constants(path)]


def tuning() -> list[Constant]:
    """Return the constants that tune a search."""
    fixed = " ".join(FIXED.values()).split()
    return [each for each in all_constants() if each.numbers and each.name not in fixed]


def test_constants_say_what_they_limit() -> None:
    """Each constant of these rooms is explained."""
    assert [str(each) for each in all_constants() if not each.docstring] == []


def test_all_sizes_stand_in_the_table() -> None:
    """The table has a row for each size at which another way pays, and each size is used."""
    assert sizes.__doc__ is not None
    code = "".join(path.read_text() for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    for constant in constants(Path(sizes.__file__)):
        assert f"`{constant.name}`" in sizes.__doc__, f"{constant.name} has no row"
        assert f"sizes.{constant.name}" in code, f"{constant.name} is never used"


def test_few_numbers_tune_a_search() -> None:
    """Halved or doubled, each changes a benchmark by more than 5 %: one that does not can go."""
    found = tuning()
    assert sum(each.numbers for each in found) <= MOST_TUNING, "\n".join(map(str, found))


def test_numbers_that_tune_name_their_benchmark() -> None:
    """In their docstring, or in that of their class, module or room."""
    for constant in tuning():
        room = PACKAGE / constant.path.relative_to(PACKAGE).parts[0] / "__init__.py"
        outer = [ast.get_docstring(ast.parse(path.read_text())) for path in (constant.path, room)]
        named = re.findall(r"benchmarks/(\w+\.py)", f"{constant.docstring} {outer}")
        assert named, f"{constant} names no benchmark that it moves"
        for name in named:
            assert (BENCHMARKS / name).is_file(), f"{constant}: there is no benchmarks/{name}"


def test_numbers_that_tune_nothing_are_there() -> None:
    """The table of this file has no name that is gone, and none twice."""
    fixed = " ".join(FIXED.values()).split()
    assert len(fixed) == len(set(fixed))
    assert set(fixed) - {each.name for each in all_constants()} == set()
