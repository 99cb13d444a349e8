"""Rows of different lengths: numbers moved from one row to its neighbour are never overlooked."""

import copy
import itertools
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.flow import check_flow
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import FormatError, InputError, VerificationError
from alltoall.flows import SolveSettings, solve
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import Artefact, answer_from_json, answer_to_json
from alltoall.ir.files.npz import artefact_from_bytes, artefact_to_bytes
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

MESH = Problem.all_to_all(build("mesh:2x3"))
SKEWED = Problem(build("ring:4"), Demand(4, np.ones((4, 4)) - np.eye(4)))
PLAIN = SolveSettings(symmetry=False)
ARTEFACTS: dict[str, dict[str, Any]] = {
    "flow per source": answer_to_json(solve(SKEWED, "grouped", PLAIN)),
    "flow per commodity": answer_to_json(solve(MESH, "decomposed", PLAIN)),
    "compact flow": answer_to_json(solve(MESH, "grouped")),
    "routes": answer_to_json(route_single(SKEWED, RouteSettings())),
    "schedule": answer_to_json(hop_schedule(build("ring:5"))),
}
for each in ARTEFACTS.values():
    each.pop("time"), each.pop("gap")  # which would give away what was moved

Place = tuple[str | int, ...]


def judge(noun: Artefact) -> None:
    """Check an artefact of any kind."""
    if isinstance(noun, Flow):
        check_flow(noun)
    elif isinstance(noun, Routes):
        check_routes(noun)
    else:
        check_schedule(noun)


def at(value: Any, place: Place) -> Any:
    """Return what is at a place."""
    for key in place:
        value = value[key]
    return value


def boundaries(value: Any, place: Place = ()) -> Iterator[tuple[Place, Place]]:
    """Yield every two rows that follow each other, be they entries of a list or of its objects."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in list(children):
        if isinstance(child, dict | list):
            yield from boundaries(child, (*place, key))
    if isinstance(value, list):
        for index, (one, two) in enumerate(itertools.pairwise(value)):
            here, there = (*place, index), (*place, index + 1)
            if isinstance(one, list) and isinstance(two, list):
                yield here, there
            if isinstance(one, dict) and isinstance(two, dict):
                for key in one:
                    if isinstance(one[key], list):
                        yield (*here, key), (*there, key)


@pytest.mark.parametrize("name", ARTEFACTS)
def test_numbers_moved_over_a_boundary_are_found(name: str) -> None:
    """At every boundary of every ragged array of a file, in both directions.

    Whole sends moved to another step are left out: they may well be right there.
    """
    value = ARTEFACTS[name]
    judge(answer_from_json(copy.deepcopy(value), "file"))
    places = [
        (one, two) for one, two in boundaries(value) if not (one[0] == "steps" and len(one) == 2)
    ]
    assert places
    for one, two in places:
        for here, there in ((one, two), (two, one)):
            moved = copy.deepcopy(value)
            taken, given = at(moved, here), at(moved, there)
            if here == one:
                given.insert(0, taken.pop())
            else:
                given.append(taken.pop(0))
            with pytest.raises((FormatError, InputError, VerificationError)):
                judge(answer_from_json(moved, "file"))


def test_a_shift_of_amounts_is_named() -> None:
    """The group whose amounts are not one for each link."""
    value = copy.deepcopy(ARTEFACTS["flow per source"])
    first, second = value["flows"][:2]
    second["amounts"].insert(0, first["amounts"].pop())
    count = len(first["links"])
    with pytest.raises(
        FormatError, match=rf"flows\[0\] has {count} links and {count - 1} amounts; expected as"
    ):
        answer_from_json(value, "file")


def test_all_groups_are_commodities_or_none_is() -> None:
    """A destination in one group only is not left out of account."""
    value = copy.deepcopy(ARTEFACTS["flow per source"])
    value["flows"][1]["dst"] = 0
    with pytest.raises(FormatError, match="1 of 4 flows have a dst"):
        answer_from_json(value, "file")


@given(data=st.data())
def test_runs_of_a_binary_file_cannot_be_cut_elsewhere(data: st.DataObject) -> None:
    """Other lengths of the same sum give other groups or routes, which do not hold."""
    name = data.draw(st.sampled_from(["flow per source", "flow per commodity", "routes"]))
    noun = answer_from_json(copy.deepcopy(ARTEFACTS[name]), "file")
    assert isinstance(noun, Flow | Routes)
    again = artefact_from_bytes(artefact_to_bytes(noun), "file")
    assert isinstance(again, Flow | Routes)
    start = np.array(again.start)
    cut = data.draw(st.integers(1, len(start) - 2))
    start[cut] = data.draw(
        st.integers(start[cut - 1] + 1, start[cut + 1] - 1).filter(lambda at: at != start[cut])
        if start[cut + 1] - start[cut - 1] > 2
        else st.just(int(start[cut - 1]))
    )
    with pytest.raises((FormatError, InputError, VerificationError)):
        judge(type(again)(**{**vars_of(again), "start": start}))


def vars_of(noun: Artefact) -> dict[str, Any]:
    """Return the fields of a noun."""
    return {each.name: getattr(noun, each.name) for each in fields(noun)}
