"""Fuzzer of cables listed from one end or from both: never counted twice without being asked."""

from random import Random

from fuzz_case import Case, FuzzFailureError, directory_of, run_case, shown

SEPARATORS = (" ", "\t", ",", " -- ", " <-> ")
SETTLED: dict[str, int] = {"--directed": 1, "--parallel": 2}
"""Words that settle what a line is, and how many links it then becomes."""


def make_cables(rng: Random) -> Case:
    """Make an edge list of a ring and more cables, some of them named from both ends."""
    nodes = rng.randrange(3, 9)
    pairs = {(v, (v + 1) % nodes) for v in range(nodes)}
    for _ in range(rng.randrange(nodes)):
        u, v = rng.sample(range(nodes), 2)
        pairs |= set() if (v, u) in pairs else {(u, v)}
    twice = rng.sample(sorted(pairs), rng.choice((0, 1, len(pairs))))
    lines = [*sorted(pairs), *((v, u) for u, v in twice)]
    rng.shuffle(lines)
    between, end = rng.choice(SEPARATORS), rng.choice(("", " 100G"))
    text = "".join(f"n{u}{between}n{v}{end.replace(' ', between[:1])}\n" for u, v in lines)
    word = rng.choice((None, *SETTLED))
    command = ["topology", "net.edges", *([word] if word else []), "--json"]
    links = len(lines) * SETTLED[word] if word else 2 * len(lines)
    refused = word is None and bool(twice)
    return Case([command], {"net.edges": text.encode()}, 3 if refused else 0, {"links": links})


def check_cables(case: Case) -> None:
    """Read the list; it is refused with the words that settle it, or has the links it should."""
    with directory_of(case):
        (outcome,) = run_case(case)
    if case.code and not all(word in outcome.err for word in ("in both orders", *SETTLED)):
        raise FuzzFailureError("wrong", f"{shown(outcome.words)}: {outcome.err}")
    if not case.code and outcome.json["links"] != case.facts["links"]:
        raise FuzzFailureError("wrong", f"{shown(outcome.words)}: {outcome.json['links']} links")
