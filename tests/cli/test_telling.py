"""How answers are told: bottlenecks, bytes and seconds, and where a saved answer comes from."""

from pathlib import Path

import pytest

from alltoall.ir.answer import Answer
from alltoall.ir.summaries import OPTIMAL_NOTE
from alltoall.loading import load
from command_line import Run

VERBS = ("solve", "route", "schedule")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_the_bottleneck(run: Run, verb: str) -> None:
    """For people, and in the JSON."""
    found = run(verb, "ring:3")
    assert "saturated  all 6 links\n" in found.out
    assert "(total hops / total capacity; verified)" in found.out
    printed = run(verb, "ring:3", "--json").json
    assert printed["saturated"] == "all 6 links"
    assert printed["proof"] == "total hops / total capacity"


@pytest.mark.parametrize("verb", VERBS)
def test_the_answer_comes_first(run: Run, verb: str) -> None:
    """In the user's units, beside shortest-path routing."""
    lines = run(verb, "torus:3x3x3", "--link-bandwidth", "100G").out.splitlines()
    assert lines[0] == "36.1 GB/s per node, the proven maximum"
    assert lines[1] == "67 % more than shortest-path routing (21.7 GB/s)"
    assert lines[2] == ""
    plain = run(verb, "torus:3x3x3").out.splitlines()
    assert plain[0] == "9 shard times, the proven minimum"
    assert plain[1] == "67 % more throughput than shortest-path routing (15 shard times)"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_prints_bytes_and_seconds(run: Run, verb: str) -> None:
    """A shard of a megabyte over 8 Mbit/s takes a second, and a node sends two of them."""
    found = run(verb, "ring:3", "--link-bandwidth", "8.388608Mbps", "--bytes", "1M", "--json").json
    assert found["bytes"] == 1 << 20
    assert found["transfer_seconds"] == pytest.approx(1.0)
    assert found["bound_seconds"] == pytest.approx(1.0)
    assert found["transfer_GBps"] == found["throughput_GBps"] == pytest.approx(2.097152e-3)
    assert found["notes"] == [OPTIMAL_NOTE]  # of a triangle
    lines = run(verb, "ring:3", "--link-bandwidth", "8.388608Mbps", "--bytes", "1M").out
    assert "transfer   1 s for shards of 1048576 bytes, at least 1 s; 0.002 GB/s per node" in lines


def test_the_latency_of_a_schedule_counts(run: Run) -> None:
    """It is in shard times, and so are its steps; the throughput without --bytes has none."""
    words = ("schedule", "ring:3", "--latency", "0.5", "--link-bandwidth", "8Gbps")
    found = run(*words, "--bytes", "1000", "--json").json
    assert found["transfer_seconds"] == pytest.approx((1 + 0.5 * found["steps"]) * 1e-6)
    assert found["throughput_GBps"] == pytest.approx(2.0)


def test_a_latency_is_a_time_in_every_verb(run: Run, tmp_path: Path) -> None:
    """`2us` of a schedule is so many shard times; what it cannot be without units is said."""
    words = ("schedule", "ring:3", "--latency", "2us", "--method", "auto:message-cost=0us")
    found = run(*words, "--link-bandwidth", "8G", "--bytes", "1KB", "-o", tmp_path / "s.json")
    assert found.code == 0
    timed = run(*words, "--link-bandwidth", "8G", "--bytes", "1KB", "--json").json
    assert timed["transfer_seconds"] == pytest.approx(1e-6 + timed["steps"] * 2e-6)
    for missing in ((), ("--link-bandwidth", "8G")):
        refused = run(*words, *missing)
        assert refused.code == 2
        assert "latency 2us is a time; add the size of a shard (--bytes)" in refused.err
    predicted = run(
        *("simulate", tmp_path / "s.json", "--link-bandwidth", "8G", "--bytes", "1KB"),
        *("--latency", "2us", "--overhead", "0.5us", "--json"),
    ).json
    assert predicted["seconds"] == pytest.approx(1e-6 + 2e-6 + 2 * 0.5e-6)


@pytest.mark.parametrize("verb", VERBS)
def test_a_time_limit_is_a_time(run: Run, verb: str) -> None:
    """With a unit or in seconds."""
    assert run(verb, "ring:3", "--time-limit", "30000ms").code == 0
    refused = run(verb, "ring:3", "--time-limit", "soon")
    assert refused.code == 2
    assert "time 'soon'; expected a number with a unit, such as 2us" in refused.err


@pytest.mark.parametrize("verb", VERBS)
def test_capacities_that_are_not_one_are_not_passed_over(run: Run, verb: str) -> None:
    """A rate per unit and capacities in that unit: it is said what a link then is."""
    words = (verb, "ring:3", "--scale-capacity", "100", "--link-bandwidth", "100Gbps")
    found = run(*words)
    assert "capacities are 100: a link is 100 x 100Gbps, 10Tbps" in found.out
    assert "give --link-bandwidth 1Gbps if capacities are in Gbit/s" in found.out
    assert "3 cables of 10 Tbit/s" in found.out
    assert run(*words, "--json").json["link_GBps"] == [1250.0, 1250.0]


LAB = "a b 8.388608Mbps\nb c 8.388608Mbps\nc a 16.777216Mbps\n"
"""A ring of three, one link of which is twice as wide."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_with_units_needs_no_rate(run: Run, verb: str, tmp_path: Path) -> None:
    """Capacity 1 is the least of them, in any form of file, after changes too.

    The warning of capacities that are not 1 is for those who state a rate themselves, and here
    nobody can state another.
    """
    lab = tmp_path / "lab.edges"
    lab.write_text(LAB)
    kept = [tmp_path / name for name in ("kept.edges", "kept.json")]
    for path in kept:
        assert run("topology", lab, "-o", path).code == 0
    for path in (lab, *kept):
        even = ("--set-capacity", "c-a=1", "--set-capacity", "a-c=1")
        assert run("topology", path, *even, "-o", tmp_path / "even.json").code == 0
        words = (verb, tmp_path / "even.json", "--bytes", "1M")
        found = run(*words, "--json").json
        assert found["link_GBps"] == pytest.approx([1.048576e-3, 1.048576e-3])
        assert found["transfer_seconds"] == pytest.approx(1.0)
        assert not any("capacities are" in note for note in found["notes"])
        other = run(*words, "--link-bandwidth", "4.194304Mbps")
        assert other.code == 2
        assert "4.194304Mbps" in other.err
        assert "8.38861Mbps" in other.err
        assert run(*words, "--link-bandwidth", "8.388608Mbps", "--json").code == 0


@pytest.mark.parametrize("name", ["answer.json", "answer.npz"])
def test_answers_keep_what_capacity_1_is(run: Run, name: str, tmp_path: Path) -> None:
    """So the topology of a saved answer is that of the file."""
    lab = tmp_path / "lab.edges"
    lab.write_text(LAB)
    assert run("solve", lab, "-o", tmp_path / name).code == 0
    found = load(tmp_path / name)
    assert isinstance(found, Answer)
    assert found.problem.topology.bytes_per_second == 8.388608e6 / 8


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--bytes", "1M"), "--bytes without --link-bandwidth"),
        (("--bytes", "1K:1M", "--link-bandwidth", "1Gbps"), "expected one size, such as 1M"),
        (("--bytes", "1Mb", "--link-bandwidth", "1Gbps"), "a lower-case b stands for bits"),
        (("--bytes", "much", "--link-bandwidth", "1Gbps"), "sizes 'much'"),
        (("--link-bandwidth", "fast"), "bandwidth 'fast'"),
        (("--link-bandwidth", ""), "bandwidth ''"),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_told_is_refused(
    run: Run, verb: str, words: tuple[str, ...], expected: str
) -> None:
    """Before any work is done, with exit code 2."""
    found = run(verb, "ring:3", *words)
    assert found.code == 2
    assert expected in found.err


@pytest.mark.parametrize("name", ["answer.json", "answer.npz"])
@pytest.mark.parametrize("verb", VERBS)
def test_where_a_saved_answer_comes_from(run: Run, verb: str, name: str, tmp_path: Path) -> None:
    """The words of the call and what they meant are in the file, and `verify` shows them."""
    path = tmp_path / name
    run(verb, "ring:3", "--gap", "1e-4", "--seed", "7", "--output", path)
    found = load(path)
    assert isinstance(found, Answer)
    made = found.provenance
    assert made is not None
    assert made.command == f"alltoall {verb} ring:3 --gap 1e-4 --seed 7 --output {path}"
    assert (made.gap, made.seed, made.solver, made.method) == (1e-4, 7, "auto", found.method)
    assert run("verify", path, "--json").json["provenance"] == made.known()
    shown = run("verify", path).out
    assert "made by" in shown
    assert f"{made}\n" in shown


@pytest.mark.parametrize("name", ["answer.json", "answer.npz"])
@pytest.mark.parametrize("verb", VERBS)
def test_equal_calls_give_equal_files_of_one_date(
    run: Run, verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOURCE_DATE_EPOCH says which; Python leaves the provenance out."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    path, plain = tmp_path / name, tmp_path / f"plain-{name}"
    found = []
    for _ in range(2):
        assert run(verb, "ring:3", "--output", path).code == 0
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert run("verify", path, "--json").json["provenance"]["date"] == "1970-01-02T00:00:00Z"
    answer = load(path)
    assert isinstance(answer, Answer)
    answer.save(plain, provenance=False)
    assert "provenance" not in run("verify", plain, "--json").json
