"""Fuzzer of the command line: any verb with any options, and any values for them."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import typer.main
from fuzz_case import Case, directory_of, run_case
from fuzz_files import valid_files

from alltoall.cli.parser import parser_of
from alltoall.cli.verbs import VERBS
from alltoall.flows import METHODS
from alltoall.lowering import TARGETS
from alltoall.lp import solver_names
from alltoall.routes import ROUTERS
from alltoall.routes.layers.assign import LAYERINGS
from alltoall.settings import PATH_SETS
from alltoall.topologies.formats import FORMATS

SPECS = (
    *("ring:3", "ring:4", "complete:3", "bipartite:2x2", "torus:2x3", "hypercube:2", "mesh:2x2"),
    *("genkautz:n=5,d=2", "jellyfish:n=6,d=3,seed=1", "sample.json", "sample.edgelist"),
    *("named.edges", "units.edges", "golf.edges", "both.edges", "ports.edges", "header.csv"),
    *("", "ring", "ring:", "ring:0", "ring:1", "ring:-3", "ring:x", "ring:99999999999", "torus:3x"),
    *("torus:0x0", "genkautz:n=4", "genkautz:n=4,d=9,e=1", "nosuch:4", "missing.json", ".", "\x1b"),
    *("a" * 300, "a" * 300 + ".json"),
)
"""Small topologies, and what is none."""

INTEGERS = ("0", "1", "2", "3", "5", "-1", "1000000000", "99999999999999999999", "1.5", "x", "")
FLOATS = ("0", "1", "0.5", "0.01", "1e-6", "2", "-1", "1e300", "1e-300", "inf", "nan", "x", "")
TEXTS = (
    *(
        "auto",
        "x",
        "",
        "\x1b[31m",
        "ö",
        "a" * 300,
        "0-1",
        "1-0",
        "0-1=2",
        "0-1=-1",
        "0-1=nan",
        "0-9",
        "0->1",
        "0,1",
        "0,1,2",
        "leaf-1",
        "leaf-1-spine",
        "2x2",
        "4",
    ),
    *("25Gbps", "1B/s", "-1Gbps", "Gbps", "64", "1K", "1K:2K", "2K:1K", "0", "mpich", "reference"),
    *(METHODS, ROUTERS, LAYERINGS, FORMATS, TARGETS, PATH_SETS, solver_names()),
)
"""Values for options that take a word: some that mean something, some that do not."""

PATHS = (
    "out.json",
    "out.npz",
    "missing/out.json",
    "sample.json",
    ".",
    "demand.csv",
    "out.xml",
    "groups.txt",
    "ranks.txt",
    "a" * 300,
)
NEVER = ("--cluster", "--mpi", "--on")
"""Options that reach for other machines or start other programs."""

BOUNDED = {
    name: ["--timeout", "5"] for name in ("run", *(f"workload {part}" for part in ("fft3d", "moe")))
}
"""What keeps a verb short that does as much as it is told to, such as a billion iterations."""


LEFT_OUT = ("testbed up", "testbed down", "testbed cut", "testbed mend", "testbed exec")
"""Verbs whose purpose is to take long, and those that change fabrics of this machine: under names
that tests beside this one use."""


@cache
def verbs() -> dict[str, Any]:
    """Return the commands, as the command line itself knows them; parts behind their verb."""
    group: Any = typer.main.get_command(parser_of(list(VERBS)))
    found: dict[str, Any] = {}
    for name, verb in group.commands.items():
        parts = getattr(verb, "commands", {})
        found |= {f"{name} {part}": each for part, each in parts.items()} or {name: verb}
    return {name: verb for name, verb in found.items() if name not in LEFT_OUT}


TEXT = tuple(word for each in TEXTS for word in ([each] if isinstance(each, str) else each))
VALUES = {"integer": INTEGERS, "float": FLOATS, "path": PATHS}
"""What options of a type are given, by its name ("integer range" has one, too), or else a text."""


def make_words(rng: Random) -> Case:
    """Choose a verb, what it is about, and up to six options with values for them."""
    name = rng.choice(sorted(verbs()))
    parameters = verbs()[name].params
    words = [*name.split(), *(_subject(rng, name) for each in parameters if _is(each, "argument"))]
    options = [each for each in parameters if _is(each, "option")]
    for option in rng.sample(options, min(len(options), rng.randrange(7))):
        words += _option(rng, option)
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), rng.choice(("--nosuch", "-x", "--", "extra")))
    words += BOUNDED.get(name, [])
    if rng.random() < 0.5 and "--json" not in words:
        words.append("--json")
    files = {word: valid_files()[word][0] for word in words if word in valid_files()}
    return Case([words], files)


def _is(parameter: Any, kind: str) -> bool:
    """Whether a parameter is an argument, or an option."""
    return bool(parameter.param_type_name == kind)


def _subject(rng: Random, verb: str) -> str:
    """Return a SPEC, or a file that somebody else made."""
    files = sorted(valid_files())
    takes_file = verb in ("verify", "lower", "run", "simulate", "report")
    return rng.choice(files) if takes_file and rng.random() < 0.9 else rng.choice(SPECS)


def _option(rng: Random, option: Any) -> Iterator[str]:
    name = rng.choice([*option.opts, *option.secondary_opts])
    if name in NEVER:
        return
    yield name
    if not option.is_flag:
        yield rng.choice(VALUES.get(option.type.name.split()[0], TEXT))


def check_words(case: Case) -> None:
    """Run the command; it may refuse, but only in the ways that are promised."""
    with directory_of(case):
        run_case(case)
