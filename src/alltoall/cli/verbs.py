"""The verbs by name: the table from which the command line starts, and that imports none of them.

Help on all verbs, a list of families and a wrong verb or family are answered from such tables: to
say that a word is wrong must not take longer than to read it.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from alltoall.errors import UsageError
from alltoall.topologies.families import FAMILIES, names_file, unknown_family

ABOUT = "Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer."


@dataclass(frozen=True)
class Verb:
    """Where a verb is, what it does, and whether its first word is a SPEC.

    A verb that is several in one has `parts`: where each is by the word that follows the verb. One
    that `takes_command` is given options that it does not know, which may be those of the command.
    """

    where: str
    summary: str
    takes_spec: bool = False
    takes_command: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)


VERBS: dict[str, Verb] = {
    "topology": Verb(
        "alltoall.cli.topology:topology_verb",
        "Describe a topology, and convert or draw it; list all families if there is no SPEC.",
        takes_spec=True,
    ),
    "solve": Verb(
        "alltoall.cli.solve:solve_verb",
        "Find the best all-to-all rate and prove it.",
        takes_spec=True,
    ),
    "route": Verb(
        "alltoall.cli.route:route_verb",
        "Compute routes for fabrics whose NICs forward, and layers that keep them from deadlock.",
        takes_spec=True,
    ),
    "schedule": Verb(
        "alltoall.cli.schedule:schedule_verb",
        "Compute which chunk crosses which link in which step, for fabrics where hosts forward.",
        takes_spec=True,
    ),
    "compare": Verb(
        "alltoall.cli.compare:compare_verb",
        "Compare networks, methods, saved answers and measured runs, best first.",
    ),
    "design": Verb(
        "alltoall.cli.design:design_verb",
        "Find the network to build: every family of that size beside the best that a search finds.",
    ),
    "lower": Verb(
        "alltoall.cli.lower:lower_verb",
        "Lower a saved schedule or saved routes to the file of a runtime or a fabric.",
    ),
    "failures": Verb(
        "alltoall.cli.failures:failures_verb",
        "Find what each failure costs, and routes or a schedule ready for it, worst first.",
    ),
    "simulate": Verb(
        "alltoall.cli.simulate:simulate_verb",
        "Predict what a schedule or routes take on links of a given rate and latency.",
    ),
    "run": Verb(
        "alltoall.cli.run:run_verb",
        "Run a schedule: start its ranks, check every byte, time it beside the runtime's own.",
    ),
    "wrap": Verb(
        "alltoall.cli.wrap:wrap_verb",
        "Run an MPI program that nobody changed with its all-to-alls by schedules.",
        takes_command=True,
    ),
    "testbed": Verb(
        "alltoall.cli.testbed:fabric_verb",
        "Make a fabric of network namespaces on this machine, with links of real limits.",
        parts={
            part: f"alltoall.cli.testbed:{part}_verb"
            for part in ("up", "status", "cut", "mend", "down", "exec")
        },
    ),
    "workload": Verb(
        "alltoall.cli.workload:workload_verb",
        "Run a program that an all-to-all decides, by a schedule and by the library's own.",
        parts={
            "fft3d": "alltoall.cli.workload:fft3d_verb",
            "moe": "alltoall.cli.workload:moe_verb",
        },
    ),
    "verify": Verb(
        "alltoall.cli.verify:verify_verb", "Check an artefact without trusting what made it."
    ),
    "report": Verb(
        "alltoall.cli.report:report_verb",
        "Show files as one page: numbers and proofs, the network and its loads, a schedule played.",
    ),
    "reproduce": Verb(
        "alltoall.cli.reproduce:reproduce_verb",
        "Measure figures of the paper again: data, picture, and whether each claim holds.",
    ),
}
"""All verbs, in the order of the pipeline; a summary is the first line of the verb's own help."""

OVERVIEW_WORDS = ("-h", "--help")
COMPLETION_WORDS = ("--install-completion", "--show-completion")
"""What may stand in the place of a verb, besides --version."""


def overview() -> str:
    """Return the help on all verbs."""
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {name:<{width}}{verb.summary}" for name, verb in VERBS.items())
    return f"""Usage: alltoall VERB ...

{ABOUT}

Verbs:
{verbs}

Options:
  -h, --help            Show this, or with a verb what it takes.
  --version             Show the version.
  --install-completion  Complete words in this shell from now on.
  --show-completion     Show what does that.

Example: alltoall solve torus:3x3x3, then alltoall solve --help"""


def require_words(words: Sequence[str]) -> None:
    """Raise if a call begins with a verb, or with a SPEC, that there is not."""
    name, *rest = words
    if name not in VERBS:
        close = difflib.get_close_matches(name, VERBS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"no verb {name!r}; {hint}expected one of {', '.join(VERBS)}")
    if VERBS[name].takes_spec and rest and not rest[0].startswith("-"):
        require_family(rest[0])


def require_family(spec: str) -> None:
    """Raise if a SPEC names a family that there is not; what looks like a file may be one."""
    family = spec.strip().partition(":")[0]
    if family not in FAMILIES and not names_file(spec):
        raise UsageError(unknown_family(family))
