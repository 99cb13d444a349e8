"""Jobs that share a fabric, as TOML or JSON.

[[job]]
name = "train"                group = ["0", "1", "2"]    all-to-all among these terminals, or
groups = [[0, 1], [2, 3]]     within several, or
demand = "file.csv"           the file of a demand, beside this one, or a matrix
weight = 2.0                  start = "2us"              or seconds; 1 and 0 if left out
"""

from collections import Counter
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.demand import Demand
from alltoall.ir.files.fields import Json, naming, short, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_from_json
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.node_tables import group_of, read_demand
from alltoall.ir.files.text import read_text
from alltoall.ir.jobs import MOST_JOBS, Job
from alltoall.ir.quantities import parse_seconds
from alltoall.ir.topology import Topology

MAX_JOBS_BYTES = 64 << 20
"""Most bytes of a file of jobs."""

MATRICES = ("group", "groups", "demand")
"""The keys for the demand: one of these for each job."""

KEYS = (*MATRICES, "name", "weight", "start")
"""All keys of a job."""


def read_jobs(path: Path, topology: Topology) -> tuple[Job, ...]:
    """Return the jobs of a file, on the terminals of a topology."""
    text, where = read_text(path, MAX_JOBS_BYTES), str(path)
    value = parse_json(text, where) if text.lstrip()[:1] == "{" else _toml(text, where)
    obj = take_object(value, where)
    _refuse_others(obj, ("job", "jobs"), where, "a list of jobs, [[job]]")
    rows = take_list(obj, "jobs" if "jobs" in obj else "job", where, MOST_JOBS)
    if not rows:
        raise FormatError(f"{where}: holds no job; expected at least one")
    jobs = tuple(_job(row, index, path, topology) for index, row in enumerate(rows))
    for name, times in Counter(job.name for job in jobs).items():
        if times > 1:
            raise FormatError(f"{where}: two jobs are called {short(name)}; expected another name")
    return jobs


def _refuse_others(obj: Json, known: tuple[str, ...], here: str, expected: str) -> None:
    for key in (key for key in obj if key not in known):
        raise FormatError(f"{here}: has {short(key)}; expected {expected}")


def _toml(text: str, where: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 (slow to import)

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{where}: {error}; expected jobs as TOML, or as JSON") from None


def _job(row: object, index: int, path: Path, topology: Topology) -> Job:
    here = f"{path}: job {index}"
    obj = take_object(row, here)
    _refuse_others(obj, KEYS, here, ", ".join(KEYS))
    name = take_text(obj, "name", here) if "name" in obj else f"job {index}"
    with naming(here):
        demand = _demand(obj, here, path, topology)
        if isinstance(obj.get("start"), str):
            obj = {**obj, "start": parse_seconds(obj["start"])}
        begins = _number(obj, "start", here, 0.0)
        return Job(name, demand, _number(obj, "weight", here, 1.0), begins)


def _demand(obj: Json, here: str, path: Path, topology: Topology) -> Demand:
    said = [key for key in MATRICES if key in obj]
    if len(said) != 1:
        found = " and ".join(said) or "nothing"
        raise FormatError(f"{here}: {found}; expected one of {', '.join(MATRICES)}")
    if said == ["demand"]:
        given = obj["demand"]
        if isinstance(given, str):
            return read_demand(path.parent / given, topology)
        return demand_from_json(given, topology, here)
    groups = take_list(obj, said[0], here)
    members = [_members(each, here) for each in ([groups] if said == ["group"] else groups)]
    ends = [group_of(each, topology) for each in members]
    return Demand.of_groups(len(topology.terminals), ends)


def _members(group: object, here: str) -> list[str]:
    if not isinstance(group, list) or not all(type(each) in (int, str) for each in group):
        raise FormatError(f"{here}: a group is {short(group)}; expected nodes by name or number")
    return [str(each) for each in group]


def _number(obj: Json, key: str, here: str, default: float) -> float:
    value = obj.get(key, default)
    if type(value) not in (int, float):
        raise FormatError(f"{here}: {key} is {short(value)}; expected a number")
    return float(value)
