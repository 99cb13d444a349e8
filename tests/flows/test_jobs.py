"""Fair rates of several jobs: proven level by level, as another program finds them, and refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import alltoall
from alltoall.check.jobs import check_job_rates
from alltoall.errors import DemandError, FormatError, InputError, UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.jobs import Job, JobRates, joint_demand
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import set_capacities
from strategies import topologies

LINE = alltoall.topology("mesh:4")


def group(terminals: int, *members: int) -> Demand:
    """Return the all-to-all among some terminals."""
    return Demand.of_groups(terminals, [members])


def most_of(topology: Topology, rates: JobRates, job: int, keep: list[int]) -> float:
    """Return the most that one job can have while some others keep their rates: a flow per pair."""
    jobs = [job, *keep]
    pairs = [
        (index, int(source), int(destination))
        for index in jobs
        for source, destination in zip(*rates.jobs[index].demand.pairs(), strict=True)
    ]
    links, count = topology.links, len(pairs) * topology.links
    balance = np.zeros((len(pairs) * topology.nodes, count + 1))
    wanted = np.zeros(len(balance))
    for row, (index, source, destination) in enumerate(pairs):
        amount = float(rates.jobs[index].demand.table()[source, destination])
        ends = (topology.terminals[destination], 1.0), (topology.terminals[source], -1.0)
        for link in range(links):
            balance[row * topology.nodes + topology.head[link], row * links + link] += 1.0
            balance[row * topology.nodes + topology.tail[link], row * links + link] -= 1.0
        for node, sign in ends:
            at = row * topology.nodes + int(node)
            if index == job:
                balance[at, count] -= sign * amount
            else:
                wanted[at] += sign * amount * rates.rate[index]
    shared = np.hstack([np.tile(np.eye(links), len(pairs)), np.zeros((links, 1))])
    cost = np.append(np.zeros(count), -1.0)
    found = linprog(cost, shared, topology.capacity * (1 + 1e-9), balance, wanted)
    assert found.status == 0, found.message
    return float(np.asarray(found.x)[-1])


@st.composite
def shared(draw: st.DrawFn) -> tuple[Topology, list[Job]]:
    """Draw a topology and a few jobs on it."""
    topology = draw(topologies(max_nodes=5))
    terminals = len(topology.terminals)
    jobs = []
    for index in range(draw(st.integers(1, 3))):
        members = draw(st.sets(st.integers(0, terminals - 1), min_size=2, max_size=3))
        weight = draw(st.sampled_from([1.0, 1.0, 0.5, 3.0]))
        jobs.append(Job(f"job {index}", group(terminals, *sorted(members)), weight))
    return topology, jobs


@given(shared())
def test_no_job_can_have_more_without_one_that_has_less(case: tuple[Topology, list[Job]]) -> None:
    """The definition of max-min fairness, by a program of another kind for every job."""
    topology, jobs = case
    rates = alltoall.fair_rates(topology, jobs)
    report = check_job_rates(rates)
    assert report.gap <= 1e-6
    fair = rates.fair_share()
    for job in range(len(jobs)):
        keep = [
            each for each in range(len(jobs)) if each != job and fair[each] <= fair[job] * 1.001
        ]
        assert most_of(topology, rates, job, keep) == pytest.approx(rates.rate[job], rel=1e-5)


def test_levels_are_told_apart_and_proven() -> None:
    """The middle of a line blocks the wide job; the pair at its end has what that leaves."""
    wider = set_capacities(LINE, {(0, 1): 2.0, (1, 0): 2.0})
    rates = alltoall.fair_rates(wider, [Job("pair", group(4, 0, 1)), Job("all", Demand(4))])
    assert rates.rate.tolist() == pytest.approx([1.25, 0.25])
    assert rates.level.tolist() == [1, 0]
    assert rates.bound.tolist() == pytest.approx([0.25, 1.25])
    assert rates.summary()["jobs"][0]["time"] == pytest.approx(0.8)
    assert alltoall.verify(rates.flow).facts["time"] == pytest.approx(1.0)


def test_one_job_has_the_rate_of_its_flow() -> None:
    """And weights are shares."""
    alone = alltoall.fair_rates("torus:3x3", [Job("one", Demand(9), weight=5.0)])
    assert alone.rate[0] == pytest.approx(alltoall.solve("torus:3x3").rate)
    two = [Job("a", Demand(9), 1.0), Job("b", Demand(9), 3.0)]
    rates = alltoall.fair_rates("torus:3x3", two)
    assert rates.rate[1] == pytest.approx(3 * rates.rate[0])
    assert rates.rate.sum() == pytest.approx(alone.rate[0])


def test_jobs_are_a_demand_for_all_that_is_computed(tmp_path: Path) -> None:
    """The sum of what they send, each by its weight; `solve` carries each at its fair rate."""
    path = tmp_path / "jobs.toml"
    path.write_text('[[job]]\ngroup = [0, 1]\nweight = 2\n[[job]]\nname = "b"\ngroup = [1, 2, 3]\n')
    schedule = alltoall.schedule(LINE, demand=path, chunks=1)
    expected = 2 * group(4, 0, 1).table() + group(4, 1, 2, 3).table()
    assert schedule.problem.demand.table().tolist() == expected.tolist()
    assert alltoall.route(LINE, demand=str(path)).problem == schedule.problem
    flow = alltoall.solve(LINE, demand=path)
    rates = alltoall.fair_rates(LINE, path)
    assert flow.problem == rates.flow.problem
    with pytest.raises(UsageError, match="demand and groups; expected one of them"):
        alltoall.solve(LINE, demand=path, groups=[[0, 1]])
    with pytest.raises(UsageError, match="which fair rates do not use"):
        alltoall.solve(LINE, demand=path, method="link")


def test_jobs_of_a_file(tmp_path: Path) -> None:
    """TOML and JSON say the same; a demand may lie beside."""
    (tmp_path / "demand.json").write_text(
        '{"format": "alltoall.demand/1", "entries": [[0, 3, 2.5]]}'
    )
    toml = tmp_path / "jobs.toml"
    toml.write_text(
        '[[job]]\nname = "a"\ngroups = [[0, 1], ["2", 3]]\nstart = 0.5\n'
        '[[job]]\ndemand = "demand.json"\n'
    )
    as_json = tmp_path / "jobs.json"
    as_json.write_text(
        '{"jobs": [{"name": "a", "groups": [[0, 1], [2, 3]], "start": "500ms"},'
        ' {"demand": {"format": "alltoall.demand/1", "entries": [[0, 3, 2.5]]}}]}'
    )
    for path in (toml, as_json):
        jobs = alltoall.fair_rates(LINE, path).jobs
        assert [(job.name, job.weight, job.start) for job in jobs] == [
            ("a", 1.0, 0.5),
            ("job 1", 1.0, 0.0),
        ]
        assert jobs[0].demand.total == 4.0
        assert jobs[1].demand.table()[0, 3] == 2.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[job]]\n", "job 0: nothing; expected one of group, groups, demand"),
        ("[[job]]\ngroup = [0, 1]\ndemand = []\n", "group and demand; expected one of"),
        ("[[job]]\ngroup = [0, 9]\n", "job 0: .*9"),
        ("[[job]]\ngroup = [0, 0.5]\n", "a group is"),
        ("[[job]]\ngroup = [0]\n", "expected two or more terminals"),
        ("[[job]]\ngroup = [0, 1]\nwieght = 2\n", 'has "wieght"; expected'),
        ("[[job]]\ngroup = [0, 1]\nweight = 0\n", "weight 0; expected more than 0"),
        ('[[job]]\ngroup = [0, 1]\nweight = "2"\n', "weight is .*; expected a number"),
        ("[[job]]\ngroup = [0, 1]\nstart = -1\n", "starts at -1"),
        ('[[job]]\ngroup = [0, 1]\nstart = "soon"\n', "time 'soon'; expected a number"),
        ("[[job]]\nname = 3\ngroup = [0, 1]\n", "name is 3; expected a string"),
        ("[[job]]\nname = 'a'\ngroup = [0, 1]\n[[job]]\nname = 'a'\ngroup = [0, 1]\n", "called"),
        ('{"jobs": []}', "holds no job"),
        ('{"job": 3}', "expected an array"),
        ("job", "expected jobs as TOML"),
        ("[tasks]\n", "expected a list of jobs"),
    ],
)
def test_files_that_are_no_jobs(text: str, expected: str, tmp_path: Path) -> None:
    """What is wrong is said of the job that it is in."""
    path = tmp_path / "jobs"
    path.write_text(text)
    with pytest.raises(FormatError, match=expected):
        alltoall.fair_rates(LINE, path)


def test_jobs_that_do_not_fit() -> None:
    """None at all, and of another number of terminals."""
    with pytest.raises(InputError, match="0 jobs; expected 1 to"):
        alltoall.fair_rates(LINE, [])
    with pytest.raises(DemandError, match="expected jobs on one topology"):
        joint_demand([Job("a", Demand(4)), Job("b", Demand(5))])
    with pytest.raises(InputError, match=r"ended with .*; allow more time"):
        alltoall.fair_rates("torus:3x3", [Job("a", Demand(9))], time_limit=1e-9)
