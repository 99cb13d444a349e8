"""What all nouns can do: be equal, say what they are, be saved and loaded, become a frame."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from alltoall.errors import InputError, MissingComponentError, UsageError
from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.execution_plan import ExecutionPlan, Operation, PlanOp, RankPlan
from alltoall.ir.fabric import Fabric
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.flow import Flow
from alltoall.ir.noun import Noun
from alltoall.ir.problem import Problem
from alltoall.ir.program import Instruction, Op, Program, RankProgram, Thread
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.loading import load
from alltoall.lowering.programs.messages import messages_of
from hop_schedules import hop_schedule

PATH = Topology.from_edges("<b>path</b>\n", 3, [(0, 1), (1, 2, 2.5)])
PROBLEM = Problem.all_to_all(PATH)
PROOF = Certificate(np.ones(4), 1.6)
FLOW = Flow(
    PROBLEM,
    0.5,
    np.array([0]),
    np.array([2]),
    np.array([0, 2]),
    np.array([0, 2]),
    np.array([0.5, 0.5]),
    PROOF,
    "link",
)
ROUTES = Routes(
    np.array([0, 2]),
    np.array([2, 1]),
    np.array([0, 2, 3]),
    np.array([0, 2, 3]),
    PROBLEM,
    np.array([1.0, 0.5]),
    PROOF,
    "single",
)
SCHEDULE = hop_schedule(PATH)
FABRIC = Fabric(PATH, 1.25e9, np.array([1e-6, 1e-6, 2e-6, 2e-6]), 5e9, 3e-7)
IDLE = RankProgram(2, 2, 0, (Thread(0, None, None, (Instruction(Op.NOP),)),))
PROGRAM = Program("two", Chunks(2, 1), (IDLE, IDLE))
PLAN = ExecutionPlan("two", Chunks(2, 1), (RankPlan(2, 2, 0, (), ((Operation(PlanOp.NOP),),)),) * 2)
SAVED: list[Noun] = [PATH, Demand(3), Demand.of_groups(3, [(0, 2)]), PROBLEM, PROOF]
MESSAGES = messages_of(SCHEDULE)
SAVED += [FLOW, ROUTES, SCHEDULE, FABRIC, PROGRAM, PLAN, MESSAGES]
UNEVEN = Chunks(2, counts=np.array([[0, 3], [1, 0]]))
ALL = [*SAVED, FLOW.bottleneck(), UNEVEN, MESSAGES.ranks[1]]


@pytest.mark.parametrize("noun", ALL, ids=lambda noun: type(noun).__name__)
def test_equal_by_value(noun: Noun) -> None:
    """A copy of all parts is equal and has the same hash; a noun of another kind is not."""
    again = replace(noun)
    assert again is not noun
    assert again == noun
    assert len({again, noun}) == 1
    assert noun != "noun"
    assert all(noun != other for other in ALL if type(other) is not type(noun))


@pytest.mark.parametrize(
    ("noun", "change"),
    [
        (PATH, {"nodes": 4}),
        (PATH, {"capacity": np.array([1.0, 1.0, 2.5, 3.0])}),
        (PATH, {"terminals": np.array([0, 1])}),
        (Demand(3), {"terminals": 4}),
        (Demand(3), {"matrix": 1 - np.eye(3)}),
        (PROBLEM, {"demand": Demand(3, 1 - np.eye(3))}),
        (PROOF, {"bound": 1.5}),
        (PROOF, {"lengths": np.ones(5)}),
        (FLOW, {"amount": np.array([0.5, 0.25])}),
        (FLOW, {"destination": None}),
        (FLOW, {"certificate": Certificate(np.zeros(4), 1.6)}),
        (ROUTES, {"layer": np.array([0, 0])}),
        (SCHEDULE, {"method": "other"}),
        (PROGRAM, {"fifo_slots": 3}),
        (FABRIC, {"injection": None}),
        (PLAN, {"name": "three"}),
    ],
)
def test_every_part_counts(noun: Any, change: dict[str, Any]) -> None:
    """What differs in one field is not equal, either way round."""
    other = replace(noun, **change)
    assert other != noun
    assert noun != other


def test_what_a_topology_is_called_does_not_count() -> None:
    """Name and notes say how it came to be; what is computed on it is the same."""
    other = replace(PATH, name="other", notes=("by hand",))
    assert other == PATH
    assert hash(other) == hash(PATH)


def test_hashes_of_equal_zeros_are_equal() -> None:
    """Zero and minus zero are equal in an array, so they must be in its hash."""
    one, other = (Certificate(np.array([zero, 1.0]), 1.0) for zero in (0.0, -0.0))
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("noun", "words"),
    [
        (PATH, "<Topology <b>path</b>: nodes 3, links 4>"),
        (Demand(3), "<Demand uniform: terminals 3, total 6>"),
        (PROBLEM, "<Problem <b>path</b>: nodes 3, links 4, demand uniform, 6 shards>"),
        (PROOF, "<Certificate of bound 1.6: lengths 4>"),
        (FLOW, "<Flow <b>path</b>: time 2, gap 0.25>"),
        (ROUTES, "<Routes <b>path</b>: time 1, gap 0, routes 2, layers not assigned>"),
        (SCHEDULE, "<Schedule <b>path</b>: time 3, gap 2, steps 2, chunks 1 per shard>"),
        (FABRIC, "<Fabric <b>path</b>: links 4, rate 10Gbps to 25Gbps>"),
        (PROGRAM, "<Program two: ranks 2, instructions 2>"),
        (PLAN, "<ExecutionPlan two: ranks 2, operations 2>"),
    ],
)
def test_one_line_for_a_prompt(noun: Noun, words: str) -> None:
    """The kind, what it is called, and the facts that matter, on one line."""
    assert repr(noun) == words


@pytest.mark.parametrize("noun", ALL, ids=lambda noun: type(noun).__name__)
def test_a_table_for_a_notebook(noun: Noun) -> None:
    """Well-formed, and a name that looks like HTML stays text."""
    found = noun._repr_html_()
    ElementTree.fromstring(found)
    assert "<b>path" not in found
    assert type(noun).__name__ in found


def test_pictures_for_a_notebook() -> None:
    """They are those of the topology, with the load of its links if that is known."""
    assert PATH._repr_svg_() == draw_svg(PATH)
    assert "load over capacity" in (FLOW._repr_svg_() or "")
    assert PROGRAM._repr_svg_() is None


@pytest.mark.parametrize("noun", SAVED, ids=lambda noun: type(noun).__name__)
def test_saved_and_loaded(noun: Noun, tmp_path: Path) -> None:
    """What is loaded is equal to what was saved, whatever noun it is."""
    noun.save(tmp_path / "noun.json")
    found = load(str(tmp_path / "noun.json"))
    assert type(found) is type(noun)
    assert found == noun


@pytest.mark.parametrize("name", ["noun.json", "noun.npz"])
@pytest.mark.parametrize("noun", [FLOW, ROUTES, SCHEDULE], ids=lambda noun: type(noun).__name__)
def test_answers_are_saved_in_both_forms(noun: Noun, name: str, tmp_path: Path) -> None:
    """JSON and the compact form load as the same value."""
    noun.save(tmp_path / name)
    assert load(tmp_path / name) == noun
    assert hash(load(tmp_path / name)) == hash(noun)


@pytest.mark.parametrize("noun", [ROUTES, SCHEDULE], ids=lambda noun: type(noun).__name__)
def test_an_answer_that_claims_no_bound_can_be_saved(noun: Noun, tmp_path: Path) -> None:
    """Such come from other programs; a gap without end is no JSON, so it is left out."""
    foreign = replace(noun, certificate=Certificate(np.ones(4), 0.0))  # type: ignore[call-arg]
    foreign.save(tmp_path / "noun.json")
    assert load(tmp_path / "noun.json") == foreign


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    """Parts of others have no files, and what is no answer has no compact form."""
    for noun in (FLOW.bottleneck(), UNEVEN, MESSAGES.ranks[0]):
        with pytest.raises(UsageError, match="has no file of its own"):
            noun.save(tmp_path / "noun.json")
    for small in (PATH, PROGRAM, MESSAGES):
        with pytest.raises(UsageError, match=f"a {type(small).__name__} is saved as text"):
            small.save(tmp_path / "noun.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": "alltoall.demand/1", "terminals": 0, "uniform": true}', "0 terminals"),
        ('{"format": "alltoall.demand/1", "uniform": true}', "terminals is missing"),
        ('{"format": "alltoall.demand/1", "entries": []}', "together with its topology"),
        ('{"format": "alltoall.certificate/1", "bound": 1}', "lengths is missing"),
        ('{"format": "alltoall.problem/1"}', 'no "format" key'),
        ('{"format": "alltoall.song/1"}', "expected one of"),
    ],
)
def test_what_cannot_be_loaded(tmp_path: Path, text: str, words: str) -> None:
    """A file that says what it is but is not is refused in words."""
    (tmp_path / "noun.json").write_text(text)
    with pytest.raises(InputError, match=words):
        load(tmp_path / "noun.json")


def pandas_or_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pandas is not installed, put a frame in its place that keeps its columns."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        stub: Any = ModuleType("pandas")
        stub.DataFrame = _Frame
        monkeypatch.setitem(sys.modules, "pandas", stub)


class _Frame(SimpleNamespace):
    """A table of columns that are all as long as each other."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        (rows,) = {len(column) for column in columns.values()}
        self.shape = rows, len(columns)


@pytest.mark.parametrize(
    ("noun", "rows", "columns"),
    [
        (PATH, 4, "tail head capacity"),
        (Demand(3), 6, "source destination amount"),
        (PROBLEM, 6, "source destination amount"),
        (PROOF, 4, "length"),
        (FLOW, 2, "source destination link amount"),
        (replace(FLOW, destination=None), 2, "source link amount"),
        (ROUTES, 2, "source destination weight hops links"),
        (replace(ROUTES, layer=np.array([0, 1])), 2, "source destination weight hops links layer"),
        (SCHEDULE, SCHEDULE.sends, "step source destination chunk link shards"),
        (FABRIC, 4, "tail head capacity bytes_per_second latency"),
        (PROGRAM, 2, "rank thread step op count send_to receive_from"),
        (PLAN, 2, "rank thread step op count"),
        (FLOW.bottleneck(), 4, "link tail head fullest proof"),
    ],
)
def test_frames(noun: Noun, rows: int, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for every link, pair, route, send or instruction."""
    pandas_or_stub(monkeypatch)
    frame = noun.to_frame()
    assert list(frame.columns) == columns.split()
    assert frame.shape == (rows, len(columns.split()))


def test_frames_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install, and its exit code is that of a missing component."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingComponentError, match=r"pip install '\.\[frames\]' in a clone"
    ) as caught:
        PATH.to_frame()
    assert caught.value.exit_code == 5
