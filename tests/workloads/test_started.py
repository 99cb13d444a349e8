"""Workloads on processes, as a user starts them: over MPI and torch, by files and by words."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.cli.workload import fft_table, moe_table
from alltoall.errors import (
    FormatError,
    LimitError,
    MissingComponentError,
    UsageError,
    VerificationError,
)
from alltoall.ir.files.json.saved_answers import answer_to_json
from alltoall.ir.files.json.values import write_json
from alltoall.ir.schedule import Schedule
from alltoall.runtime import needs
from alltoall.topologies.spec import build
from alltoall.workloads import launch
from alltoall.workloads.launch import ExchangeSpec, Launch, WaySpec, library_way, require_memory
from alltoall.workloads.ranks import Turns
from alltoall.workloads.reports import (
    FftReport,
    FftRow,
    MoeReport,
    MoeRow,
    PencilRow,
    Predicted,
)
from command_line import Run
from gloo import needs_torch
from hop_schedules import hop_schedule
from saved import save, without_last_send

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed; pip install '.[mpi]'",
)
QUICK: Any = {"iterations": 2, "warmup": 0, "timeout": 240}


def square() -> Schedule:
    """Return a schedule for four ranks."""
    return hop_schedule(build("hypercube:2"), 2)


@needs_mpi
@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_fft3d_of_a_file(kind: str, tmp_path: Path, run: Run) -> None:
    """Uneven slabs, by words; the one object has all that is promised."""
    path = save(tmp_path, "hypercube:2")
    words = ("--grid", "10x9x7", "--schedule", path, "--mpi", kind, "--iterations", 2)
    outcome = run("workload", "fft3d", *words, "--json")
    assert outcome.code == 0, outcome.err
    told = outcome.json
    assert (told["workload"], told["ranks"], told["grid"]) == ("fft3d", 4, [10, 9, 7])
    assert (told["even"], told["checked"]) == (False, "fftn")
    assert [row["way"] for row in told["rows"]] == ["library", "schedule"]
    library, schedule = told["rows"]
    bands = {"fft2d_pack", "alltoall", "unpack_fft1d"}
    assert set(schedule) == {"way", "carrier", "seconds", "error", *bands}
    assert told["speedup"] == pytest.approx(library["seconds"] / schedule["seconds"])
    assert told["alltoall_speedup"] == pytest.approx(library["alltoall"] / schedule["alltoall"])


@needs_mpi
@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_fft3d_of_pencils(kind: str, run: Run) -> None:
    """By schedules for all rows and for all columns, beside slabs, on a grid that is uneven."""
    words = ("--grid", "10x9x7", "--schedule", "torus:2x3", "--pencils", "2x3", "--mpi", kind)
    outcome = run("workload", "fft3d", *words, "--iterations", 1, "--json")
    assert outcome.code == 0, outcome.err
    told = outcome.json
    ways = ["library", "schedule", "library, slabs", "schedule, slabs"]
    assert [row["way"] for row in told["rows"]] == ways
    assert (told["pencils"], told["even"], told["checked"]) == ([2, 3], False, "fftn")
    assert set(told["rows"][0]) == {
        *("way", "carrier", "seconds", "error", "compute", "pack", "alltoall")
    }
    library, schedule = told["rows"][:2]
    assert told["alltoall_speedup"] == pytest.approx(library["alltoall"] / schedule["alltoall"])


@needs_mpi
def test_fft3d_of_pencils_where_slabs_are_too_many() -> None:
    """What pencils are for: more ranks than planes."""
    report = alltoall.fft3d("3x4x8", pencils=(3, 2), ranks=6, **QUICK)
    assert ([row.way for row in report.rows], report.speedup) == (["library"], None)


@needs_mpi
def test_fft3d_without_a_schedule() -> None:
    """There is one way, and nothing to compare."""
    report = alltoall.fft3d("5x4x3", ranks=3, **QUICK)
    assert ([row.way for row in report.rows], report.speedup) == (["library"], None)


@needs_mpi
@pytest.mark.parametrize("workload", ["fft3d", "moe"])
def test_a_schedule_that_forgets_a_chunk_fails(workload: str, tmp_path: Path, run: Run) -> None:
    """The answer is wrong, and the exit code says so."""
    path = tmp_path / "wrong.schedule.json"
    write_json(path, answer_to_json(without_last_send(square())))
    words = {"fft3d": ("--grid", 8), "moe": ("--tokens", 50, "--hidden", 4)}[workload]
    outcome = run("workload", workload, *words, "--schedule", path, "--iterations", 1, "--json")
    assert outcome.code == 4
    assert "are not those that were sent" in json.loads(outcome.out)["error"]["message"]


@needs_mpi
def test_moe_by_template_and_solved_again(run: Run) -> None:
    """Three ways, of which the one that was solved for is predicted to be best."""
    words = ("--tokens", 200, "--hidden", 8, "--skew", 1.5, "--iterations", 2)
    told = run("workload", "moe", *words, "--schedule", "hypercube:2", "--resolve", "--json").json
    rows = {row["way"]: row for row in told["rows"]}
    assert list(rows) == ["library", "template", "resolved"]
    assert {row["error"] for row in told["rows"]} == {0}
    assert rows["library"]["predicted_dispatch"] is None
    for key in ("predicted_dispatch", "predicted_combine"):
        template, resolved = rows["template"][key], rows["resolved"][key]
        assert template["bound"] == pytest.approx(resolved["bound"], rel=1e-4)
        assert template["time"] >= template["bound"]
        assert template["loss"] == pytest.approx(template["time"] / template["bound"] - 1)
        assert resolved["time"] < template["time"]
    assert rows["resolved"]["solve_seconds"] > 0
    assert told["prepare_seconds"] > 0
    assert told["skew"]["sigma"] == 1.5
    assert told["skew"]["rank_max_over_mean"] > 1
    assert told["speedups"] == pytest.approx(
        {way: rows["library"]["seconds"] / rows[way]["seconds"] for way in ("template", "resolved")}
    )


@needs_mpi
def test_moe_of_messages(tmp_path: Path) -> None:
    """They name no links, so nothing is predicted, and there is nothing to solve on."""
    path = tmp_path / "square.messages"
    path.write_text(str(alltoall.lower(square(), to="messages").text))
    report = alltoall.moe(50, hidden=4, schedule=path, **QUICK)
    assert [row.way for row in report.rows] == ["library", "template"]
    assert report.rows[1].predicted_dispatch is None
    with pytest.raises(UsageError, match="nothing to solve again"):
        alltoall.moe(50, schedule=path, resolve=True)


@needs_torch
def test_moe_over_torch() -> None:
    """By our backend against gloo's own, template and solved again."""
    report = alltoall.moe(60, hidden=4, on="torch", schedule=square(), resolve=True, **QUICK)
    assert "gloo" in report.runtime
    assert [(row.way, row.error) for row in report.rows] == [
        ("library", 0.0),
        ("template", 0.0),
        ("resolved", 0.0),
    ]
    assert [row.carrier for row in report.rows] == [
        "gloo all_to_all_single",
        "schedule, backend alltoall",
        "schedule, backend alltoall",
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("fft3d", "--grid", "8"), "no ranks and no schedule"),
        (("fft3d", "--grid", "8x8", "--ranks", 2), "grid '8x8'; expected"),
        (("fft3d", "--grid", "8", "--ranks", 9), "9 ranks for a grid of 8x8x8"),
        (("fft3d", "--grid", "8", "--ranks", 0), "0 ranks and no schedule"),
        (("fft3d", "--grid", "8", "--ranks", 2, "--iterations", 0), "0 iterations"),
        (("fft3d", "--grid", "8", "--ranks", 2, "--seed", -1), "seed -1; expected"),
        (("fft3d", "--grid", "8", "--ranks", 2, "--timeout", "nan"), "a time limit of nan"),
        (("fft3d", "--grid", "8", "--ranks", 2, "--mpi", "/"), "not an executable"),
        (("fft3d", "--grid", "8", "--ranks", 3, "--schedule", "ring:4"), "a schedule for 4 ranks"),
        (("fft3d", "--grid", "8", "--schedule", "rign:4"), "did you mean 'ring'"),
        (("fft3d", "--grid", "8", "--ranks", 5, "--pencils", "2x2"), "2x2 for 5 ranks"),
        (("fft3d", "--grid", "8", "--pencils", "2x2", "--route", "x"), "expected one of them"),
        (("fft3d", "--grid", "8", "--pencils", "1x4"), "pencils '1x4'; expected"),
        (("fft3d",), "Missing option '--grid'"),
        (("moe",), "no ranks and no schedule"),
        (("moe", "--ranks", 4, "--on", "nccl"), "no runtime 'nccl'"),
        (("moe", "--ranks", 4, "--resolve"), "nothing to solve again"),
        (("moe", "--ranks", 4, "--top-k", 9), "9 experts for each token"),
        (("nosuch",), "No such command 'nosuch'"),
        ((), "Missing command"),
    ],
)
def test_wrong_words(words: tuple[object, ...], problem: str, run: Run) -> None:
    """Are refused before anything is started."""
    outcome = run("workload", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert problem in outcome.err


def test_what_is_no_schedule_is_refused(tmp_path: Path) -> None:
    """Routes say nothing of chunks; a schedule of groups has none for most pairs."""
    path = tmp_path / "routes.json"
    alltoall.route("ring:4").save(path)
    with pytest.raises(FormatError, match="expected 'alltoall"):
        alltoall.fft3d(8, schedule=path)
    with pytest.raises(UsageError, match="no chunks for some pairs"):
        alltoall.fft3d(8, schedule=alltoall.schedule("ring:4", groups=[(0, 1), (2, 3)]))


def test_what_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is made, with what to do."""
    with pytest.raises(LimitError, match="take a smaller grid"):
        alltoall.fft3d(10_000, ranks=4)
    with pytest.raises(LimitError, match="take fewer tokens"):
        alltoall.moe(1 << 24, hidden=4096, ranks=4)
    monkeypatch.setattr(needs, "available_bytes", lambda: None)
    require_memory(1 << 60, 4, "it is not known")


@needs_mpi
def test_a_rank_that_fails_ends_all() -> None:
    """What cannot be made in a rank is told as the rank told it."""
    wrong = WaySpec(
        "wrong", [ExchangeSpec("alltoall.workloads.over_mpi:BySchedule", {"messages": "no"})]
    )
    asked = {"grid": (4, 4, 4), "seed": 0, "gathered_points": 0}
    with pytest.raises(VerificationError, match="a rank ended early"):
        launch.run_ranks(Launch("fft3d", asked, 2, [library_way("mpi"), wrong], Turns(1, 0), 120))


def test_without_torch_the_component_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started, and it is said what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingComponentError, match="torch is not installed"):
        alltoall.moe(8, hidden=2, ranks=2, on="torch")
    with pytest.raises(MissingComponentError, match="mpi4py is not installed"):
        alltoall.moe(8, hidden=2, ranks=2)


FFT = FftReport(
    "MPICH",
    None,
    4,
    (10, 9, 7),
    False,
    "sums",
    (
        FftRow("library", "MPI_Alltoall(v)", 0.004, 0.001, 0.002, 0.001, 1e-15),
        FftRow("schedule", "schedule", 0.003, 0.001, 0.001, 0.001, 2e-15),
    ),
    4 / 3,
    2.0,
)


def test_the_table_of_transforms() -> None:
    """A line for each way, with its bands, and what the schedule gains."""
    *words, header, library, schedule, gain = fft_table(FFT)
    assert "10x9x7 on 4 ranks, uneven slabs, MPICH; random sums" in words[0]
    assert "no link is emulated" in words[1]
    assert header.split("  ")[0] == "way"
    assert library.split() == [
        "library",
        *["1.00", "ms", "2.00", "ms", "1.00", "ms", "4.00", "ms", "1e-15"],
    ]
    assert schedule.split()[-1] == "2e-15"
    assert "1.33 times as fast as library in all, its all-to-all 2.00 times" in gain
    alone = fft_table(replace(FFT, rows=FFT.rows[:1], speedup=None))
    assert alone[-1].startswith("library")


def test_the_table_of_pencils() -> None:
    """Their bands, and how ranks stand."""
    rows = tuple(
        PencilRow(way, "MPI", 0.004, 0.001, 0.0005, 0.0025, 1e-15)
        for way in ("library", "schedule")
    )
    *words, header, library, _, _ = fft_table(replace(FFT, rows=rows, pencils=(2, 2)))
    assert "uneven pencils in 2 rows and 2 columns" in words[0]
    assert header.split() == ["way", "compute", "pack", "all-to-all", "total", "error"]
    assert library.split()[1::2] == ["1.00", "0.50", "2.50", "4.00", "1e-15"]


def test_the_table_of_experts() -> None:
    """What is predicted is over the bound, there and back; not all ways have such."""
    near, far = Predicted(2.0, 2.0, 0.0), Predicted(3.0, 2.0, 0.5)
    rows: tuple[Any, ...] = (
        MoeRow("library", "own", 0.003, 0.001, 0.001, 0.001, 0.0),
        MoeRow("template", "schedule", 0.003, 0.001, 0.001, 0.001, 0.0, far, near),
        MoeRow("resolved", "schedule", 0.003, 0.001, 0.001, 0.001, 0.0, near, near, 0.25),
    )
    skew = {"sigma": 0.5, "rank_max_over_mean": 1.25, "pair_max_over_mean": 1.5}
    report = MoeReport("gloo", "torch", None, 4, 64, 16, 2, 2, skew, rows, {}, 1.0)
    *words, library, template, resolved = moe_table(report)
    assert "64 tokens of 16 to 2 of 8 experts on 4 ranks, gloo" in words[0]
    assert "skew 0.5: the fullest rank receives 1.25 of the mean, the fullest pair 1.50" in words[1]
    assert library.endswith("3.00 ms")
    assert template.endswith("1.50, 1.00")
    assert resolved.endswith("1.00, 1.00  250.00 ms")
