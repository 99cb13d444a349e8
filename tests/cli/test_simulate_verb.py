"""`alltoall simulate`: what it prints and refuses."""

from pathlib import Path

import pytest

import alltoall
from command_line import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a schedule, its messages, routes and a flow of a ring."""
    path = tmp_path_factory.mktemp("simulate")
    schedule = alltoall.schedule("ring:4")
    schedule.save(path / "schedule.json")
    alltoall.lower(schedule, to="messages").save(path / "messages")
    alltoall.route("ring:4").save(path / "routes.npz")
    alltoall.solve("ring:4").save(path / "flow.json")
    return path


def test_the_json_has_a_row_for_each_size(folder: Path, run: Run) -> None:
    """What stands beside the rows is the last one."""
    found = run(
        *("simulate", folder / "schedule.json", "--link-bandwidth", "8Gbps", "--latency", 1e-6),
        *("--bytes", "1K:4K", "--json"),
    ).json
    assert [row["bytes"] for row in found["rows"]] == [1024, 2048, 4096]
    last = found["rows"][-1]
    assert {key: found[key] for key in last} == last
    assert found["seconds"] == pytest.approx(2 * 4096e-9 + 2e-6)
    assert found["bound_seconds"] == pytest.approx(2 * 4096e-9)
    assert found["fraction"] == pytest.approx(found["bound_seconds"] / found["seconds"])
    assert found["throughput"] == pytest.approx(3 * 4096 / found["seconds"])
    assert (found["topology"], found["model"]) == ("ring:4", "alpha-beta, dataflow")


def test_the_table_is_for_people(folder: Path, run: Run) -> None:
    """Whatever is simulated, it says what and how."""
    rate = ("--link-bandwidth", "8Gbps", "--bytes", "1M")
    lines = run("simulate", folder / "routes.npz", *rate).out.splitlines()
    assert lines[0] == "# ring:4: 4 terminals, links of 8Gbps; max-min fair fluid"
    assert lines[2].endswith(" at most")
    assert lines[3].split() == ["1048576", "2097.15", "2097.15", "1.0000", "1.500", "1.500"]
    barrier = run("simulate", folder / "schedule.json", *rate, "--sync", "step").out
    assert "alpha-beta, a barrier per step" in barrier
    coarse = run("simulate", folder / "routes.npz", *rate, "--resolution", "0.01").out
    assert "max-min fair fluid, resolution 0.01" in coarse
    lowered = run("simulate", folder / "messages", *rate, "--topology", "ring:4").out
    assert lowered.splitlines()[3] == lines[3]


@pytest.mark.parametrize(
    ("file", "words", "code", "expected"),
    [
        ("flow.json", ("--link-bandwidth", "8Gbps"), 2, "a flow cannot be simulated"),
        ("schedule.json", (), 2, "no link bandwidth"),
        ("schedule.json", ("--link-bandwidth", "8"), 2, "bandwidth '8'"),
        ("schedule.json", ("--link-bandwidth", "8Gbps", "--latency", "-1"), 2, "negative"),
        ("schedule.json", ("--link-bandwidth", "8Gbps", "--phases", "2"), 2, "expected routes"),
        ("routes.npz", ("--link-bandwidth", "8Gbps", "--phase-loss", "0.1"), 2, "add --phases"),
        ("messages", ("--link-bandwidth", "8Gbps"), 2, "give the topology too"),
        ("none.json", ("--link-bandwidth", "8Gbps"), 3, "none.json"),
        ("routes.npz", ("--link-bandwidth", "8Gbps", "--bytes", "0"), 2, "sizes '0'"),
    ],
)
def test_what_is_refused(
    folder: Path, run: Run, file: str, words: tuple[str, ...], code: int, expected: str
) -> None:
    """One message and the exit code of its kind."""
    outcome = run("simulate", folder / file, *words)
    assert outcome.code == code
    assert expected in outcome.err


def test_start_times_come_from_a_file(folder: Path, run: Run, tmp_path: Path) -> None:
    """A line for each node; what is no number is refused."""
    path = tmp_path / "starts"
    path.write_text("0 0.5\n1 0\n2 0\n3 0\n")
    words = ("simulate", folder / "routes.npz", "--link-bandwidth", "8Gbps", "--start", path)
    assert run(*words, "--json").json["seconds"] > 0.5
    path.write_text("0 soon\n1 0\n2 0\n3 0\n")
    outcome = run(*words)
    assert (outcome.code, "time 'soon'; expected a number" in outcome.err) == (3, True)


def test_what_does_not_verify_is_not_simulated(folder: Path, run: Run, tmp_path: Path) -> None:
    """A bound that the lengths do not prove would make every fraction a lie."""
    text = (folder / "schedule.json").read_text()
    path = tmp_path / "forged.json"
    path.write_text(text.replace('"chunks_per_shard":1', '"chunks_per_shard":2'))
    assert path.read_text() != text
    outcome = run("simulate", path, "--link-bandwidth", "8Gbps")
    assert (outcome.code, "fails verification" in outcome.err) == (4, True)
