"""The verbs by name: the table from which the command line starts, and that imports none of them.

Help on all verbs, a list of families and a wrong verb or family are answered from such tables: to
say that a word is wrong must not take longer than to read it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from alltoall.errors import UsageError
from alltoall.ir.words import did_you_mean
from alltoall.topologies.families import FAMILIES, names_file, unknown_family

ABOUT = "Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer."


@dataclass(frozen=True)
class Verb:
    """Where a verb is, what it does, and whether its first word is a SPEC.

    `parts` are words after the verb that stand for verbs of their own. A verb that `takes_command`
    keeps unknown options, which may be the command's. The short help shows `examples` and the
    options in `short`.
    """

    module: str
    summary: str
    group: str
    examples: tuple[str, ...] = ()
    short: str = ""
    takes_spec: bool = False
    takes_command: bool = False
    parts: tuple[str, ...] = ()

    def where(self, name: str) -> str:
        """Return where the verb, or a part of it, is defined."""
        return f"alltoall.cli.{self.module}:{name}_verb"


SEE, MAKE, RUN, TRUST = "See what is possible", "Make it", "Run it", "Trust it"
"""The groups of verbs, in the order of the work."""

VERBS: dict[str, Verb] = {
    "topology": Verb(
        "topology",
        "Describe, convert or draw a network; list the families",
        SEE,
        (
            "alltoall topology genkautz:n=12,d=3",
            "alltoall topology torus:4x4 -o torus.graphml --draw torus.svg",
        ),
        "output to draw json directed parallel remove_links drop_links host_bandwidth",
        takes_spec=True,
    ),
    "solve": Verb(
        "answers",
        "Find the best all-to-all rate and prove it",
        SEE,
        ("alltoall solve torus:3x3x3 --host-bandwidth 4 --link-bandwidth 25G",),
        "method demand groups link_bandwidth bytes gap time_limit output json host_bandwidth",
        takes_spec=True,
    ),
    "compare": Verb(
        "compare",
        "Compare networks, methods, saved answers and measured runs",
        SEE,
        ("alltoall compare torus:4x4 genkautz:n=16,d=4 --link-bandwidth 100G",),
        "methods over demand groups link_bandwidth gap time_limit threads output json",
    ),
    "design": Verb(
        "design",
        "Find the network to build for so many nodes and cables",
        SEE,
        ("alltoall design --nodes 16 --degree 3 --time-limit 5s",),
    ),
    "route": Verb(
        "answers",
        "Compute routes for fabrics whose NICs or switches forward",
        MAKE,
        ("alltoall route genkautz:n=32,d=4 --method single --output routes.json",),
        "method demand groups link_bandwidth max_routes max_layers from_ time_limit output json",
        takes_spec=True,
    ),
    "schedule": Verb(
        "answers",
        "Compute which chunk crosses which link in which step",
        MAKE,
        ("alltoall schedule torus:3x3 --host-bandwidth 2 --output torus.json",),
        "method demand groups link_bandwidth steps chunks from_ time_limit output json",
        takes_spec=True,
    ),
    "lower": Verb(
        "lower",
        "Write the file of a runtime or a fabric",
        MAKE,
        ("alltoall lower torus.json --to msccl:runtime=rccl -o torus.xml",),
    ),
    "failures": Verb(
        "failures",
        "Show what each failure costs, and prepare for it",
        MAKE,
        ("alltoall failures routes.json -o ready",),
    ),
    "wrap": Verb(
        "wrap",
        "Run an unmodified MPI program with your schedules",
        RUN,
        ("alltoall wrap torus.json -- mpiexec -n 9 ./program",),
        takes_command=True,
    ),
    "run": Verb(
        "run",
        "Execute a schedule on ranks, check every byte, time it",
        RUN,
        ("alltoall run torus.json --bytes 64K:1M",),
    ),
    "simulate": Verb(
        "simulate",
        "Predict the time of a schedule or routes",
        RUN,
        ("alltoall simulate torus.json --link-bandwidth 100G --latency 2us",),
    ),
    "testbed": Verb(
        "testbed",
        "Emulate a network on this machine, with real link rates",
        RUN,
        ("alltoall testbed up torus:3x3 --rate 20mbit", "alltoall testbed down"),
        parts=("up", "status", "cut", "mend", "down", "exec"),
    ),
    "workload": Verb(
        "workload",
        "Benchmark a real workload: schedule against library",
        RUN,
        ("alltoall workload fft3d --grid 12 --schedule ring:4 --iterations 1",),
        parts=("fft3d", "moe"),
    ),
    "verify": Verb(
        "verify",
        "Check a file without trusting what made it",
        TRUST,
        ("alltoall verify routes.json",),
    ),
    "report": Verb(
        "report",
        "Show files as one page: numbers, proof, network, loads",
        TRUST,
        ("alltoall report routes.json -o routes.html",),
    ),
    "reproduce": Verb(
        "reproduce",
        "Measure the figures of the paper again",
        TRUST,
        ("alltoall reproduce", "alltoall reproduce methods --quick --no-testbed"),
    ),
}
"""All verbs, in the order of the work."""

OVERVIEW_WORDS = ("-h", "--help", "--help-all")
COMPLETION_WORDS = ("--install-completion", "--show-completion")
"""Words allowed in place of a verb, besides --version."""


def overview() -> str:
    """Return the help on all verbs, by groups."""
    width = max(map(len, VERBS)) + 2
    lines = ["Usage: alltoall VERB ...", "", ABOUT]
    for group in (SEE, MAKE, RUN, TRUST):
        lines += ["", f"{group}:"]
        lines += [
            f"  {name:<{width}}{verb.summary}"
            for name, verb in VERBS.items()
            if verb.group == group
        ]
    return "\n".join([*lines, "", OVERVIEW_END])


OVERVIEW_END = """Options:
  -h, --help            Show this, or the usual options of a verb
  --help-all            Show all options of a verb
  --version             Show the version
  --install-completion  Complete words in this shell from now on
  --show-completion     Show the code that does so

Example: alltoall solve torus:3x3x3"""


def require_words(words: Sequence[str]) -> None:
    """Raise if a call has an unknown verb or family."""
    name, *rest = words
    if name not in VERBS:
        hint = did_you_mean(name, VERBS)
        raise UsageError(f"no verb {name!r}; {hint}expected one of {', '.join(VERBS)}")
    if VERBS[name].takes_spec and rest and not rest[0].startswith("-"):
        family = rest[0].strip().partition(":")[0]
        if family not in FAMILIES and not names_file(rest[0]):
            raise UsageError(unknown_family(family))
