"""Every fuzzer: how its inputs are made from random numbers, and what is checked of each."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fuzz_cables import check_cables, make_cables
from fuzz_calls import check_call, make_call
from fuzz_case import Case
from fuzz_files import check_damaged, make_damaged
from fuzz_problems import check_problem, make_problem, make_wild
from fuzz_words import check_words, make_words


@dataclass(frozen=True)
class Fuzzer:
    """`make` gives an input, `check` raises on what is wrong with it; seconds are of the CPU."""

    make: Callable[[Random], Case]
    check: Callable[[Case], None]
    seconds: int


FUZZERS: dict[str, Fuzzer] = {
    "files": Fuzzer(make_damaged, check_damaged, 30),
    "words": Fuzzer(make_words, check_words, 60),
    "problems": Fuzzer(make_problem, check_problem, 60),
    "scales": Fuzzer(make_wild, check_problem, 60),
    "cables": Fuzzer(make_cables, check_cables, 30),
    "calls": Fuzzer(make_call, check_call, 60),
}
"""A saved input is replayed by the fuzzer that its directory in the corpus is named after."""


def case_of(name: str, seed: int, index: int) -> Case:
    """Return an input of a fuzzer; the same seed and index give the same one."""
    return FUZZERS[name].make(Random(f"{name}/{seed}/{index}"))
