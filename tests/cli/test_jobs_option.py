"""Jobs as `--demand`, and `--background`, on the verbs that take a SPEC."""

from pathlib import Path

import pytest

from command_line import Run

JOBS = """
[[job]]
name = "pair"
group = [0, 1]

[[job]]
name = "all"
group = [0, 1, 2, 3]
"""
WIDE = ("topology", "mesh:4", "--set-capacity", "0-1=2", "--set-capacity", "1-0=2", "-o")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Write two jobs on a line of four."""
    path = tmp_path / "jobs.toml"
    path.write_text(JOBS)
    return path


def test_solve_tells_the_rate_and_the_proof_of_every_level(
    jobs: Path, run: Run, tmp_path: Path
) -> None:
    """In JSON and for people; the flow that carries all is saved, and verifies."""
    path, wide = tmp_path / "flow.json", tmp_path / "wide.json"
    assert run(*WIDE, wide).code == 0
    found = run("solve", wide, "--demand", jobs, "--json", "-o", path).json
    assert [(job["name"], job["level"]) for job in found["jobs"]] == [("pair", 1), ("all", 0)]
    assert [job["rate"] for job in found["jobs"]] == pytest.approx([1.25, 0.25])
    assert [level["bound"] for level in found["levels"]] == pytest.approx([0.25, 1.25])
    assert max(level["gap"] for level in found["levels"]) < 1e-6
    assert run("verify", path).code == 0
    lines = run("solve", wide, "--demand", jobs).out.splitlines()
    table = [line.split() for line in lines]
    assert ["0", "0.25", "4", "1", "all"] in table
    assert ["1", "1.25", "0.8", "1", "pair"] in table
    assert any("1: 0 % below the proven limit 1.25" in line for line in lines)


def test_joint_answers_carry_all_jobs(jobs: Path, run: Run) -> None:
    """The pair of both jobs sends two shards."""
    expected = run("route", "mesh:4", "--group", "0,1", "--group", "0,1,2,3", "--json").json
    for verb in ("route", "schedule"):
        found = run(verb, "mesh:4", "--demand", jobs, "--json").json
        assert found["time"] == pytest.approx(expected["time"])


@pytest.mark.parametrize("verb", ["solve", "route", "schedule"])
def test_a_background_is_taken_away(verb: str, run: Run, tmp_path: Path) -> None:
    """From what every link has; of a link that is full, nothing can be."""
    path = tmp_path / "load.csv"
    rows = [(tail, (tail + step) % 4) for tail in range(4) for step in (1, 3)]
    path.write_text("".join(f"{tail},{head},0.5\n" for tail, head in rows))
    empty, half = (
        run(verb, "ring:4", *words, "--json").json["time"] for words in ((), ("--background", path))
    )
    assert half == pytest.approx(2 * empty)
    outcome = run(verb, "ring:4", "--background", f"{path}@2")
    assert (outcome.code, "which leaves nothing (8 such links)" in outcome.err) == (3, True)


def test_what_jobs_cannot_be_combined_with(jobs: Path, run: Run) -> None:
    """Groups or a method."""
    for words, expected in (
        (("--group", "0,1"), "demand and groups"),
        (("--method", "link"), "which fair rates do not use"),
    ):
        outcome = run("solve", "mesh:4", "--demand", jobs, *words)
        assert (outcome.code, expected in outcome.err) == (2, True), outcome.err
