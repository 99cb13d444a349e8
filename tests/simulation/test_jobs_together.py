"""Several jobs on one fabric: alone, together uncoordinated, and against a joint schedule."""

from functools import cache
from pathlib import Path

import pytest

import alltoall
from alltoall.errors import InputError, UsageError
from alltoall.ir.routes import Routes
from command_line import Run

GROUPS = ("0,1,2,3,4,5,6,7", "4,5,6,7,8,9,10,11")


@cache
def routes_of(*groups: str) -> Routes:
    """Return routes of groups on a torus."""
    return alltoall.route(
        "torus:4x4", "extp:layering=none", groups=[each.split(",") for each in groups]
    )


def test_jobs_slow_each_other_down() -> None:
    """Nobody is faster with company, and all together keep to the bound of their sum."""
    first, second = (routes_of(each) for each in GROUPS)
    found = alltoall.simulate(jobs=[first, second], link_bandwidth=1e9, bytes=10**6)
    joint = alltoall.solve("torus:4x4", groups=[each.split(",") for each in GROUPS])
    assert found.bound_seconds == pytest.approx(joint.bound * 1e-3, rel=1e-5)
    assert found.rows == found.together
    assert found.seconds == pytest.approx(max(row.together for row in found.jobs))
    for row, routes in zip(found.jobs, (first, second), strict=True):
        alone = alltoall.simulate(routes, link_bandwidth=1e9, bytes=10**6)
        assert row.alone == pytest.approx(alone.seconds)
        assert row.slowdown == pytest.approx(row.together / row.alone)
        assert row.bound_seconds <= row.alone * (1 + 1e-9) <= row.together * (1 + 2e-9)
    assert max(row.slowdown for row in found.jobs) > 1.2


def test_joint_routes_are_held_against_jobs_on_their_own() -> None:
    """The joint ones reach the bound; uncoordinated is slower."""
    jobs = [routes_of(each) for each in GROUPS]
    found = alltoall.simulate(
        routes_of(*GROUPS), jobs=jobs, link_bandwidth=1e9, bytes=10**6, weights="share"
    )
    assert found.fraction == pytest.approx(1.0)
    assert found.together[0].seconds > 1.05 * found.seconds
    assert found.together[0].bound_seconds == found.bound_seconds


def test_a_job_that_begins_later_meets_less(tmp_path: Path) -> None:
    """One that begins when the other is done is alone; times count from its own start."""
    paths = [tmp_path / f"{name}.json" for name in "ab"]
    for path, each in zip(paths, GROUPS, strict=True):
        routes_of(each).save(path)
    late = [str(paths[0]), f"{paths[1]}@1.0"]
    found = alltoall.simulate(jobs=late, link_bandwidth=1e9, bytes=10**6)
    assert [row.slowdown for row in found.jobs] == pytest.approx([1.0, 1.0])
    assert found.jobs[1].start == 1.0
    assert found.seconds == pytest.approx(1.0 + found.jobs[1].alone)


def test_the_verb_prints_jobs_below_the_rows(tmp_path: Path, run: Run) -> None:
    """And what a joint schedule saves."""
    paths = [tmp_path / f"{name}.json" for name in "abj"]
    for path, groups in zip(paths, (GROUPS[:1], GROUPS[1:], GROUPS), strict=True):
        routes_of(*groups).save(path)
    words = ("--job", paths[0], "--job", paths[1], "--link-bandwidth", "8Gbps", "--bytes", "1M")
    alone = run("simulate", *words, "--json").json
    assert (alone["file"], [row["job"] for row in alone["jobs"]]) == (
        None,
        list(map(str, paths[:2])),
    )
    assert alone["together"] == alone["rows"]
    shown = run("simulate", paths[2], *words).out.splitlines()
    assert "times as long" in shown[5]
    assert shown[6].split() == [
        "shard",
        "B",
        "alone",
        "us",
        "together",
        "us",
        "bound",
        "us",
        "slowdown",
    ]
    assert shown[7].endswith(str(paths[0]))


def test_jobs_that_cannot_be_simulated_together(tmp_path: Path) -> None:
    """Schedules, other topologies, another joint demand, phases, and no job at all."""
    jobs = [routes_of(each) for each in GROUPS]
    with pytest.raises(UsageError, match="nothing to simulate"):
        alltoall.simulate(link_bandwidth=1e9)
    alltoall.schedule("ring:4").save(tmp_path / "schedule.json")
    with pytest.raises(UsageError, match="a schedule as one of several jobs"):
        alltoall.simulate(jobs=[tmp_path / "schedule.json"], link_bandwidth=1e9)
    with pytest.raises(InputError, match="expected jobs on one topology"):
        alltoall.simulate(jobs=[jobs[0], alltoall.route("ring:4")], link_bandwidth=1e9)
    with pytest.raises(InputError, match="another demand than all jobs together"):
        alltoall.simulate(jobs[0], jobs=jobs, link_bandwidth=1e9)
    with pytest.raises(UsageError, match="phases with several jobs"):
        alltoall.simulate(jobs=jobs, link_bandwidth=1e9, phases=2)
    jobs[0].save(tmp_path / "a.json")
    with pytest.raises(UsageError, match="begins at -1"):
        alltoall.simulate(jobs=[f"{tmp_path / 'a.json'}@-1"], link_bandwidth=1e9)
