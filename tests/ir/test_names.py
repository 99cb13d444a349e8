"""Names of nodes: what is a name, who is meant, and that files keep them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import FormatError, TopologyError, UsageError
from alltoall.flows import solve
from alltoall.ir.files.artefacts import file_bytes, read_artefact
from alltoall.ir.files.json.problem import topology_from_json, topology_to_json
from alltoall.ir.names import MAX_NAME, MAX_STEM, FileStems, distinct_names, file_stem
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

NAMED = Topology.from_edges(
    "lab", 4, [(0, 1), (1, 2), (2, 3), (3, 0)], names=["rack-1", "rack-2", "1", "spine a"]
)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "2 names for 4 nodes"),
        (["a", "b", "c", "a"], "two nodes are called 'a'"),
        (["a", "b", "c", ""], "the name of node 3 is ''"),
        (["a", "b", "c", " d"], "no blank at either end"),
        (["a", "b", "c\n", "d"], "printable"),
        (["a", "\x1b[31m", "c", "d"], "printable"),
        (["a", "b", "c", "d" * (MAX_NAME + 1)], "1 to 200"),
    ],
)
def test_unsound_names_are_refused(names: list[str], message: str) -> None:
    """Names are one per node, distinct, printable and of a bounded length."""
    with pytest.raises(TopologyError, match=message):
        replace(NAMED, names=tuple(names))


def test_nodes_are_called_by_name_or_number() -> None:
    """A name goes before the number that it looks like."""
    assert [NAMED.node_of(text) for text in ("rack-2", "1", " spine a ", "0", "3")] == [
        *(1, 2, 3, 0, 3)
    ]
    assert [NAMED.node_name(node) for node in (0, 2, 9)] == ["rack-1", "1", "9"]
    assert NAMED.terminal_name(3) == "spine a"
    assert NAMED.link_name(0) == "link rack-1 -> rack-2"
    assert replace(NAMED, names=None).link_name(0) == "link 0 (0 -> 1)"


def test_unknown_nodes_name_close_ones() -> None:
    """The message has what comes close, or what there is."""
    with pytest.raises(UsageError, match=r"no node 'rack-3'; expected .*'rack-2', 'rack-1'"):
        NAMED.node_of("rack-3")
    with pytest.raises(UsageError, match=r"no node '7'; expected one of 0\.\.3"):
        replace(NAMED, names=None).node_of("7")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("rack-1-rack-2", (0, 1)),
        ("rack-2,1", (1, 2)),
        ("rack-1->spine a", (0, 3)),
        ("0-3", (0, 3)),
        ("1-0", (2, 0)),
    ],
)
def test_links_are_two_nodes(text: str, ends: tuple[int, int]) -> None:
    """Hyphens in names do not matter if only one way to cut makes two nodes."""
    assert NAMED.ends_of(text) == ends


def test_ambiguous_and_unknown_links_say_what_to_write() -> None:
    """Several ways to cut are listed; an end that is not there has close names beside it."""
    twisted = replace(NAMED, names=("a", "b-c", "a-b", "c"))
    with pytest.raises(UsageError, match=r"may be a->b-c or a-b->c; write one of these"):
        twisted.ends_of("a-b-c")
    assert twisted.ends_of("a->b-c") == (0, 1)
    with pytest.raises(UsageError, match="no node 'rock-2', did you mean 'rack-2'"):
        NAMED.ends_of("rack-1->rock-2")
    with pytest.raises(UsageError, match="such as 3-4"):
        NAMED.ends_of("rack")


def test_messages_use_names() -> None:
    """Who cannot be reached is said by name."""
    apart = Topology.from_edges("apart", 3, [(0, 1)], names=["a", "b", "lost"])
    with pytest.raises(TopologyError, match="terminal a cannot reach terminal lost"):
        Problem.all_to_all(apart)


def test_made_up_names_become_distinct() -> None:
    """What is there already gets a mark, and no name becomes too long."""
    assert distinct_names(["a", "a", "b", "a"]) == ("a", "a~2", "b", "a~3")
    assert max(map(len, distinct_names(["x" * 300, "x" * 300]))) <= MAX_NAME


def test_json_keeps_names_and_reads_files_without() -> None:
    """The field is there only if there are names."""
    value = topology_to_json(NAMED)
    assert topology_from_json(value, "t").names == NAMED.names
    plain = topology_to_json(replace(NAMED, names=None))
    assert "names" not in plain
    assert topology_from_json(plain, "t").names is None
    with pytest.raises(FormatError, match="names is"):
        topology_from_json(value | {"names": [1, 2, 3, 4]}, "t")


@pytest.mark.parametrize("file", ["flow.json", "flow.npz"])
def test_artefacts_keep_names(tmp_path: Path, file: str) -> None:
    """Both forms of an artefact have the names of its topology."""
    flow = solve(Problem.all_to_all(NAMED))
    path = tmp_path / file
    path.write_bytes(file_bytes(path, flow))
    assert read_artefact(path).problem.topology.names == NAMED.names


def test_one_of_several_links_has_its_place() -> None:
    """So that names tell parallel links apart."""
    twice = Topology.from_links("two", 2, [(0, 1), (1, 0), (0, 1)], names=["a", "b"])
    assert [twice.link_name(link) for link in range(3)] == [
        *("link a -> b (1 of 2)", "link b -> a", "link a -> b (2 of 2)")
    ]
    assert NAMED.ends_of("rack-1 -- spine a") == (0, 3)


ODD = [
    *("gpu-05", "host0:gpu0", "host0%3Agpu0", "a/b", "../etc", "a b", "Köln", "漢" * 60, "x" * 200),
    *("-rf", "", "CON", "con", ".hidden", "~2", "a_b", "a--b", "*", "$(x)", "x" * 199 + "y"),
]


@pytest.mark.parametrize("name", ODD)
def test_a_file_stem_is_safe(name: str) -> None:
    """No separators, quotes or wildcards; short enough; the same every time."""
    stem = file_stem(f"node-{name}")
    assert stem == file_stem(f"node-{name}")
    assert len(stem) <= MAX_STEM
    assert set(stem) <= set(SAFE)
    assert Path(stem).name == stem


SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%~"


def test_no_two_names_have_one_stem() -> None:
    """Not even on a disk that does not tell cases apart, or where a name comes twice."""
    stems = list(map(FileStems().stem_of, [*ODD, *ODD]))
    assert len({stem.lower() for stem in stems}) == len(stems)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_stems_of_any_texts_are_distinct(texts: list[str]) -> None:
    """Whatever characters they have."""
    stems = list(map(FileStems().stem_of, texts))
    assert len({stem.lower() for stem in stems}) == len(texts)
    assert all(set(stem) <= set(SAFE) for stem in stems)
