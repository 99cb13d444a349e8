"""Fuzzer of the library: public functions with a value of a wrong type in one argument."""

import sys
from pathlib import Path
from random import Random

from fuzz_case import Case, directory_of

sys.path.append(str(Path(__file__).parents[1]))

from public_calls import attempt, draw


def make_call(rng: Random) -> Case:
    """Draw a function, an argument, and what takes its place."""
    call, argument, wrong = draw(rng)
    return Case([], facts={"call": call, "argument": argument, "wrong": wrong})


def check_call(case: Case) -> None:
    """Make the call; what is raised and not ours comes through."""
    with directory_of(case):
        attempt(case.facts["call"], case.facts["argument"], case.facts["wrong"])
