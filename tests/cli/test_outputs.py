"""Files that verbs write: they replace no input, follow no loop, and keep their mode."""

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

import alltoall
from command_line import Run

INPUTS = (
    "net.json",
    "flow.json",
    "routes.json",
    "schedule.json",
    "demand.csv",
    "limits.toml",
    "groups.txt",
)

SCHEDULE = "schedule.json"

WRITERS: list[tuple[str, ...]] = [
    ("topology", "ring:4"),
    ("solve", "ring:4"),
    ("route", "ring:4"),
    ("schedule", "ring:4"),
    ("lower", "schedule.json", "--to", "msccl"),
    ("lower", "routes.json", "--to", "opensm"),
    ("report", "flow.json"),
    ("design", "--nodes", "4", "--degree", "2"),
]
"""Calls of every verb with --output, in a folder with the inputs."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a file of every kind, and go there."""
    ring = alltoall.topology("ring:4")
    ring.save(tmp_path / "net.json")
    alltoall.solve(ring).save(tmp_path / "flow.json")
    alltoall.route(ring, method="ecmp").save(tmp_path / "routes.json")
    alltoall.schedule(ring).save(tmp_path / "schedule.json")
    (tmp_path / "demand.csv").write_text("0,1,1,1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n")
    (tmp_path / "groups.txt").write_text("0,1\n2,3\n")
    (tmp_path / "limits.toml").write_text("nodes = 4\ndegree = 2\n")
    (tmp_path / "link.json").symlink_to("net.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "net.json", "-o", "net.json"),
        ("solve", "net.json", "-o", "./net.json"),
        ("solve", "net.json", "-o", "link.json"),
        ("solve", "link.json", "-o", "net.json"),
        ("solve", "net.json", "--json", "--output=net.json"),
        ("solve", "ring:4", "--demand", "demand.csv", "-o", "demand.csv"),
        ("route", "net.json", "-o", "net.json"),
        ("route", "net.json", "--from", "routes.json", "-o", "net.json"),
        ("solve", "ring:4", "--group", "@groups.txt", "-o", "groups.txt"),
        ("solve", "ring:4", "--background", "flow.json@0.5", "-o", "flow.json"),
        ("route", "ring:4", "--method", "robust:demands=demand.csv", "-o", "demand.csv"),
        ("schedule", "net.json", "-o", "net.json"),
        ("schedule", "ring:4", "--demand", "demand.csv", "-o", "demand.csv"),
        ("topology", "net.json", "--draw", "net.json"),
        ("lower", "schedule.json", "--to", "msccl", "-o", "schedule.json"),
        ("report", "net.json", "flow.json", "-o", "flow.json"),
        ("design", "--constraints", "limits.toml", "-o", "limits.toml"),
        ("design", "--nodes", "4", "--degree", "2", "--workload", "demand.csv", "-o", "demand.csv"),
    ],
    ids=" ".join,
)
def test_no_output_replaces_an_input(words: Sequence[str], folder: Path, run: Run) -> None:
    """It is refused before the work, by whatever name the file goes."""
    before = {name: (folder / name).read_bytes() for name in INPUTS}
    found = run(*words)
    assert found.code == 2
    assert "is an input, which the output would replace; name another file" in found.err
    assert {name: (folder / name).read_bytes() for name in INPUTS} == before


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("topology", "net.json", "--scale-capacity", "2", "-o", "net.json"), alltoall.Topology),
        (("route", "ring:4", "--from", "routes.json", "-o", "routes.json"), alltoall.Routes),
        (
            ("schedule", "ring:4", "--from", "schedule.json", "-o", "schedule.json"),
            alltoall.Schedule,
        ),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_an_answer_is_renewed_in_its_place(
    words: Sequence[str], kind: type, folder: Path, run: Run
) -> None:
    """What the verb would have written may be input and output."""
    before = (folder / words[-1]).read_bytes()
    assert run(*words).code == 0
    assert (folder / words[-1]).read_bytes() != before
    assert isinstance(alltoall.load(folder / words[-1]), kind)


@pytest.mark.parametrize("verb", ["solve", "route", "schedule"])
@pytest.mark.parametrize("name", ["x.csv", "x.SVG", "x.html"])
def test_an_answer_is_no_table(verb: str, name: str, folder: Path, run: Run) -> None:
    """A file with JSON in it is not called something else; nothing is written."""
    found = run(verb, "ring:4", "-o", name)
    assert found.code == 2
    assert f"{name}: an answer is saved as JSON" in found.err
    assert not (folder / name).exists()


@pytest.mark.parametrize("text", ["# lab 7\na b\nb c\n", "a b 10Gbps # spare\nb c 10Gbps\n"])
def test_comments_of_an_edge_list_are_not_lost(text: str, folder: Path, run: Run) -> None:
    """It is renewed in its place once it is as the verb writes it."""
    (folder / "lab.edges").write_text(text)
    found = run("topology", "lab.edges", "-o", "lab.edges")
    assert found.code == 2
    assert "lab.edges is an input, which the output would replace" in found.err
    assert (folder / "lab.edges").read_text() == text
    assert run("topology", "lab.edges", "-o", "ours.edges").code == 0
    before = (folder / "ours.edges").read_text()
    assert run("topology", "ours.edges", "--scale-capacity", "2", "-o", "ours.edges").code == 0
    assert (folder / "ours.edges").read_text() != before


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_loop_of_links_is_said(words: Sequence[str], folder: Path, run: Run) -> None:
    """There is no file behind it, and no traceback."""
    (folder / "loop.json").symlink_to("loop.json")
    for output in ("loop.json", "loop.json/file.json"):
        found = run(*words, "-o", output)
        assert found.code == 2
        assert "cannot be written: Too many levels of symbolic links" in found.err
    assert (folder / "loop.json").is_symlink()


@pytest.mark.parametrize("words", [w for w in WRITERS if "opensm" not in w], ids=" ".join)
def test_the_mode_of_a_file_is_kept(words: Sequence[str], folder: Path, run: Run) -> None:
    """Who had made it private, or writable for a group, meant it."""
    for mode in (0o600, 0o664):
        (folder / "out.json").write_text("")
        (folder / "out.json").chmod(mode)
        assert run(*words, "-o", "out.json").code == 0
        assert stat.S_IMODE((folder / "out.json").stat().st_mode) == mode
        assert (folder / "out.json").stat().st_size > 0
