"""What is answered without importing a verb, and that it is light."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import alltoall
from alltoall import cli
from alltoall.cli.parser import command_for
from alltoall.cli.verbs import COMPLETION_WORDS, OVERVIEW_WORDS, VERBS
from alltoall.topologies.families import FAMILIES
from command_line import Run

HEAVY = ("numpy", "scipy", "networkx", "typer", "rich")
"""What none of these calls needs."""

LIGHT = {
    ("--help",): 0,
    ("--version",): 0,
    ("topology",): 0,
    ("topology", "--json"): 0,
    ("topology", "jellyfish", "--help"): 0,
    ("sovle", "torus:3x3"): 2,
    ("solve", "trous:3x3"): 2,
}
"""Calls, and how each ends."""


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_what_needs_no_verb_imports_none(words: tuple[str, ...]) -> None:
    """Help, lists and wrong words load neither arrays nor the parser of words."""
    program = (
        "import sys; from alltoall.cli.app import run; code = run(sys.argv[1:]); "
        f"print(code, [each for each in {HEAVY} if each in sys.modules])"
    )
    found = subprocess.check_output([sys.executable, "-c", program, *words], text=True)
    assert found.splitlines()[-1] == f"{LIGHT[words]} []"


UNUSED = ("scipy", "networkx", "igraph", "rich", "alltoall.schedules", "alltoall.routes.robust")
"""What no solve of a small network needs: it takes three times as long to import as to solve."""


def test_solve_imports_what_it_uses() -> None:
    """The methods of routes and schedules, and packages for sparse matrices, are for others."""
    program = (
        "import sys; from alltoall.cli.app import run; code = run(['solve', 'torus:3x3']); "
        f"print(code, [each for each in {UNUSED} if each in sys.modules])"
    )
    found = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert found.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_verb_is_short(name: str, run: Run) -> None:
    """It repeats the overview, and fits 45 lines of 80 columns; the whole help has every option."""
    short, whole = run(name, "--help").out, run(name, "--help-all").out
    assert f"  {name} " in run("--help").out
    assert VERBS[name].summary in run("--help").out
    assert f"{VERBS[name].summary}." in " ".join(short.split())
    assert len(short.splitlines()) <= 45
    assert max(map(len, whole.splitlines())) <= 80
    assert len(whole) >= len(short) - 80


def test_the_help_of_a_part_names_itself(run: Run) -> None:
    """A verb lists its parts with their summaries; the seed of a part changes no network."""
    assert "  status                  Show the network, cut cables" in run("testbed", "-h").out
    short = run("workload", "moe", "--help").out
    assert short.endswith("options: alltoall workload moe --help-all\n")
    assert "Changes to the network" not in short


OWN_TESTS = ("wrap", "testbed", "reproduce")
"""Verbs whose examples need a program, root or minutes: tests of their own run the like."""


@pytest.mark.parametrize("name", [name for name in VERBS if name not in OWN_TESTS])
def test_the_examples_of_a_help_run(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the files that the examples of other verbs save."""
    monkeypatch.chdir(tmp_path)
    alltoall.schedule("torus:3x3").save("torus.json")
    alltoall.route("torus:3x3", "single").save("routes.json")
    for example in VERBS[name].examples:
        words = example.split()
        found = run(*words[1:], *(["--ranks", "9"] if name == "run" else []))
        assert found.code == 0, (example, found.err)


def test_the_tool_has_about_120_options() -> None:
    """And no verb more than 24."""
    names: set[str] = set()
    for name, verb in VERBS.items():
        for part in verb.parts or (None,):
            options = [
                each for each in command_for(name, part).params if each.param_type_name == "option"
            ]
            assert len(options) <= 24, name
            names |= {each.opts[0] for each in options}
    assert len(names) <= 120


FOREIGN = {
    *("--as-needed", "--showme", "--oversubscribe", "--bind-to", "--allow-run-as-root"),
    *("--no-", "--dry-run", "--ink", "--soft", "--line", "--paper"),
}
"""Options of other tools and scripts, a prefix, and names of styles."""


def test_every_option_in_a_message_exists() -> None:
    """Whatever the package writes for people names options that it has."""
    known = {*OVERVIEW_WORDS, *COMPLETION_WORDS, "--version"} | FOREIGN
    for name, verb in VERBS.items():
        for part in verb.parts or (None,):
            for each in command_for(name, part).params:
                known |= {*each.opts, *each.secondary_opts}
    wrong = [
        (path.name, node.lineno, option)
        for path in Path(alltoall.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", node.value)
        if option not in known
    ]
    assert wrong == []


def test_without_words_there_is_help(run: Run) -> None:
    """Nothing asked is help asked for."""
    assert run().out == run("--help").out == run("-h").out


def test_the_version(run: Run) -> None:
    """It is that of the package, of what is installed, and of the citation."""
    assert run("--version").out == f"alltoall {alltoall.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sovle", "torus:3x3"), "did you mean 'solve'?"),
        (("solve", "trous:3x3"), "did you mean 'torus'?"),
        (("--vresion",), "no verb '--vresion'"),
    ],
)
def test_wrong_words_are_told_at_once(words: tuple[str, ...], said: str, run: Run) -> None:
    """One message, the exit code of usage, and the one JSON object if asked for."""
    outcome = run(*words, "--json")
    assert (outcome.code, json.loads(outcome.out)["error"]["code"]) == (2, 2)
    assert said in outcome.err


def test_shells_complete_verbs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that asks what may follow `alltoall ver` is told."""
    monkeypatch.setenv("_ALLTOALL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "alltoall ver")
    monkeypatch.setenv("COMP_CWORD", "1")
    outcome = run()
    assert (outcome.code, outcome.out.split()) == (0, ["verify"])


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_explains_itself(name: str, run: Run) -> None:
    """Its help has every parameter with its meaning and default, and an example."""
    family = FAMILIES[name]
    said = run("topology", name, "--help").out
    signature = inspect.signature(family.build).parameters
    assert set(family.parameters) >= set(signature)
    for key, parameter in signature.items():
        [line] = [line for line in said.splitlines() if line.startswith(f"  {key} ")]
        assert family.parameters[key] in line
        if isinstance(parameter.default, bool | int | float):
            assert f"default {str(parameter.default).lower().removesuffix('.0')}" in line
    assert said.endswith(f"Example: alltoall topology {family.example}\n")
    assert run("topology", family.example, "-h").out == said


def test_a_family_names_its_construction_and_source(run: Run) -> None:
    """The docstring of what builds it is part of its help."""
    said = run("topology", "genkautz", "--help").out
    assert "SPEC: genkautz:n=...,d=...,[rewire=...]" in said
    assert "Imase and Itoh" in said


@pytest.mark.parametrize(
    ("given", "found"), [({}, "10"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")]
)
def test_idle_threads_of_openblas_sleep_soon(
    given: dict[str, str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before numpy is imported, unless the caller says how long they wait."""
    seen: list[object] = []

    def run_or_report(_: object) -> int:
        seen.append(os.environ["OPENBLAS_THREAD_TIMEOUT"])
        return 0

    monkeypatch.setattr(cli, "listen", lambda: None)
    monkeypatch.setattr(
        cli, "import_module", lambda _: SimpleNamespace(run_or_report=run_or_report)
    )
    monkeypatch.setattr(os, "_exit", seen.append)
    monkeypatch.setattr(os, "environ", given)
    cli.main()
    assert seen == [found, 0]
