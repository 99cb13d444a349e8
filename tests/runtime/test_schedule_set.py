from pathlib import Path

import pytest

import alltoall
from alltoall.runtime.schedule_set import ScheduleSet
from hop_schedules import hop_schedule
from saved import save, without_last_send


def test_a_group_takes_the_first_schedule_of_its_size(tmp_path: Path) -> None:
    """Schedules of other sizes are for other groups, and later ones of a size for nobody."""
    lowered = tmp_path / "cube.messages"
    cube = alltoall.load(save(tmp_path, "hypercube:3"))
    assert isinstance(cube, alltoall.Schedule)
    lowered.write_text(alltoall.lower(cube, to="messages").text)
    offered = ScheduleSet([lowered, save(tmp_path, "ring:4"), "complete:4"])
    found = {ranks: offered.find(ranks) for ranks in (2, 4, 8)}
    assert [messages and messages.name for messages in found.values()] == [
        None,
        "ring:4",
        "hypercube:3",
    ]
    assert (offered.sizes(), offered.problems) == ([4, 8], [])


def test_the_environment_names_files_and_a_size(tmp_path: Path) -> None:
    """Nothing at all is an empty set; a size that is none is a problem in words."""
    files = f"{save(tmp_path, 'ring:4')}:{save(tmp_path, 'hypercube:3')}"
    offered = ScheduleSet.from_environment(
        {"ALLTOALL_SCHEDULES": files, "ALLTOALL_MIN_BYTES": "4K"}
    )
    assert (offered.find(4) is None, offered.sizes(), offered.min_bytes) == (
        False,
        [4, 8],
        4096,
    )
    empty = ScheduleSet.from_environment({})
    assert (empty.find(4), empty.sizes(), empty.problems, empty.min_bytes) == (None, [], [], 0)
    wrong = ScheduleSet.from_environment(
        {"ALLTOALL_SCHEDULES": files, "ALLTOALL_MIN_BYTES": "much"}
    )
    assert wrong.find(4) is None
    assert "ALLTOALL_MIN_BYTES: sizes 'much'; expected such as" in wrong.problems[0]


def test_what_is_broken_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    """Cut off, missing, no schedule, or one that loses a chunk: none of it is ever used."""
    whole = save(tmp_path, "hypercube:3")
    cut, missing, flow = (tmp_path / name for name in ("cut.json", "missing.json", "flow.json"))
    cut.write_text(whole.read_text()[:-50])
    alltoall.solve("hypercube:3").save(flow)
    lossy = without_last_send(hop_schedule(alltoall.topology("hypercube:3"), 2))
    offered = ScheduleSet([cut, missing, flow, lossy, tmp_path, whole])
    found = offered.find(8)
    assert found is not None
    assert found.name == "hypercube:3"
    told = ["cut.json", "missing.json", "flow.json", "fails verification", str(tmp_path)]
    assert len(offered.problems) == len(told)
    assert all(words in problem for words, problem in zip(told, offered.problems, strict=True))


def test_an_error_that_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong, the program goes on, and reads what it was."""

    def fail(given: object) -> None:
        raise MemoryError

    monkeypatch.setattr("alltoall.runtime.schedule_set.messages_for", fail)
    offered = ScheduleSet(["ring:4"])
    assert offered.find(4) is None
    assert offered.problems == ["ring:4: MemoryError"]
