"""Print one table of what the tool does at scale on this machine, each job against its goal.

Every job is the command that a user would type, in a process of its own: seconds are those of the
whole command, start-up included, and memory is the peak of its process. Kernels are compiled once
before. Beside every size whose symmetry helps stands one that has little or none of it, and each
line says how many automorphisms there are. Ratios are measured in the same run, without start-up:
against the fastest of HiGHS' solvers, which get `--patience` times as long as the first-order
method took; against the child programs of the paper; of a step against copying; of two MPI ranks
against one; after a failure, of routes and schedules that begin with the last ones against those
from scratch.

    python benchmarks/scale.py
    python benchmarks/scale.py --only solve ratio
    python benchmarks/scale.py --only solve route schedule --match genkautz
    python benchmarks/scale.py --only failures --nodes 200 1000
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import alltoall
from alltoall import Problem
from alltoall.flows import first_order, first_order_search, sizes
from alltoall.flows.exact import by_source
from alltoall.flows.program import FlowProgram, whole_program
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.runtime.mpiexec import find_mpi
from alltoall.settings import SolveSettings
from alltoall.topologies.operators import drop_links, drop_nodes
from alltoall.topologies.spec import build


@dataclass(frozen=True)
class Job:
    """A command of alltoall, what it may take in seconds and GiB, and which gap it must reach."""

    kind: str
    words: tuple[str, ...]
    seconds: float
    memory: float = math.inf
    gap: float = 1e-6


def job(kind: str, words: str, seconds: float, memory: float = math.inf, gap: float = 1e-6) -> Job:
    """Return a job from a line of words."""
    return Job(kind, tuple(words.split()), seconds, memory, gap)


JOBS = (
    job("solve", "solve genkautz:n=1000,d=4 --gap 1e-3", 20, 2, 1e-3),
    job("solve", "solve genkautz:n=1001,d=4 --gap 1e-3", 100, 4, 1e-3),
    job("solve", "solve genkautz:n=1000,d=4 --gap 1e-3 --method auto:symmetry=false", 10, 4, 1e-3),
    job("solve", "solve jellyfish:n=1000,d=4,seed=1 --gap 1e-3", 8, gap=1e-3),
    job("solve", "solve genkautz:n=4000,d=4 --gap 1e-2", 600, gap=1e-2),
    job("solve", "solve genkautz:n=4001,d=4 --gap 1e-2", 1800, gap=1e-2),
    job("solve", "solve torus:16x16x16", 5),
    job("solve", "solve mesh:16x16x16 --gap 1e-2", 600, gap=1e-2),
    job("solve", "solve hypercube:12", 5),
    job("solve", "solve torus:32x32x32", 60),
    job("route", "route genkautz:n=1000,d=4 --method single", 300, gap=1e-2),
    job("route", "route genkautz:n=1001,d=4 --method single", 600, gap=1e-2),
    job("schedule", "schedule torus:8x8x8", 60, gap=math.inf),
    job("schedule", "schedule genkautz:n=100,d=4", 120, gap=math.inf),
    job("schedule", "schedule jellyfish:n=64,d=4,seed=1", 5, gap=1e-2),
    job("schedule", "schedule genkautz:n=64,d=4 --drop-links 2", 5, gap=1e-2),
    job("schedule", "schedule genkautz:n=101,d=4", 30, gap=1e-2),
    job("schedule", "schedule jellyfish:n=256,d=4,seed=1", 30, 2, 1e-2),
    job("schedule", "schedule genkautz:n=1000,d=4", 120, 2, 1e-2),
    job("beyond", "solve jellyfish:n=5000,d=4,seed=1 --gap 1e-2", 300, gap=1e-2),
    job(
        "beyond",
        "solve genkautz:n=10000,d=4 --gap 1e-2 --method auto:symmetry=false",
        2400,
        12,
        1e-2,
    ),
)

HIGHS = ("simplex", "ipm", "pdlp")


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and what it took."""

    summary: dict[str, Any]
    seconds: float
    memory: float


def run(*words: str, ranks: int | None = None) -> Outcome:
    """Run a command of alltoall to its end, by so many MPI ranks if it says."""
    command = [sys.executable, "-m", "alltoall", *words, "--json"]
    if ranks is not None:
        command = find_mpi().command(ranks, command)
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return Outcome(json.loads(printed), seconds, usage.ru_maxrss / 2**20)


def symmetries(words: tuple[str, ...]) -> str:
    """Return how many automorphisms a job can make use of, in few digits."""
    if "symmetry=false" in " ".join(words):
        return "1"
    count = count_automorphisms(build(words[1]))
    return f"{count:,}" if count < 10**6 else f"1e{len(str(count)) - 1}"


def goals(kinds: list[str], match: str) -> Iterator[str]:
    """Run every job of the given kinds whose words have a text in them, and yield its line."""
    for each in JOBS:
        if each.kind not in kinds or match not in " ".join(each.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "result.npz")
            done = run(*each.words, "--output", str(saved))
            checked = run("verify", str(saved)).seconds
        gap = float(done.summary["gap"])
        met = done.seconds <= each.seconds and done.memory <= each.memory and gap <= each.gap
        yield (
            f"{' '.join(each.words):54} {symmetries(each.words):>9} symmetries "
            f"{done.seconds:8.1f} s {done.memory:6.2f} GiB gap {gap:8.1e}  "
            f"verified in {checked:5.1f} s   goal {each.seconds:g} s: {'met' if met else 'MISSED'}"
        )


def against_highs(patience: float) -> Iterator[str]:
    """Compare the first-order method with HiGHS on the whole master program, to a gap of 1e-4."""
    for nodes in (100, 200, 400):
        spec = ("solve", f"genkautz:n={nodes},d=4", "--gap", "1e-4")
        ours = run(*spec, "--method", "first-order:symmetry=false").summary["seconds"]
        limit = patience * ours + 5
        theirs = {}
        for solver in HIGHS:
            words = (
                *spec,
                "--method",
                f"grouped:symmetry=false,solver={solver}",
                "--time-limit",
                f"{limit:.0f}",
            )
            done = run(*words)
            finished = done.summary["gap"] <= 1e-4
            seconds = done.summary["seconds"]
            theirs[solver] = seconds if finished else math.inf
            shown = f"{seconds:.1f} s" if finished else f"no gap of 1e-4 in {limit:.0f} s"
            yield f"  n={nodes} {solver}: {shown}"
        best = min(theirs.values())
        ratio = f"{best / ours:.1f}" if best < math.inf else f"more than {limit / ours:.1f}"
        yield f"n={nodes}: first-order {ours:.1f} s, {ratio} times faster than the best of HiGHS"


def against_copying() -> Iterator[str]:
    """Compare a step with copying the flows as often as a step reads or writes them."""
    for nodes in (200, 1000):
        problem = Problem.all_to_all(build(f"genkautz:n={nodes},d=4"))
        program = whole_program(problem, by_source(problem))
        flow = np.ones((len(program.weight), program.graph.links), dtype=np.float32)
        other = np.empty_like(flow)
        copying = min(seconds_of(partial(np.copyto, other, flow)))
        stepping = step_seconds(program)
        # A step reads flows and anchors and writes flows; a copy reads once and writes once.
        yield (
            f"n={nodes}: a step takes {1e3 * stepping:.2f} ms, {stepping / copying / 1.5:.1f} "
            f"times as long as copying the same {3 * flow.nbytes / 1e6:.0f} MB, on one thread"
        )


def seconds_of(work: Callable[[], Any]) -> list[float]:
    """Return what some turns of a piece of work take."""
    turns = []
    for _ in range(20):
        begun = time.perf_counter()
        work()
        turns.append(time.perf_counter() - begun)
    return turns


def step_seconds(program: FlowProgram) -> float:
    """Return what a step of the first-order method takes, from the difference of two solves."""
    taken = []
    for steps in (10, 100, 300):  # The first one loads the kernels.
        by_steps = patch.object(sizes, "STEPPED_VARIABLES", program.variables + 1)
        with (
            by_steps,
            patch.object(
                first_order_search, "STEP_DEFAULTS", first_order_search.StepParams(most_steps=steps)
            ),
        ):
            settings = SolveSettings(gap=1e-3, workers=1)
            with patch.object(first_order_search.Search, "certify"):
                begun = time.perf_counter()
                first_order.answer_by_steps(program, settings)
                taken.append(time.perf_counter() - begun)
    return (taken[2] - taken[1]) / 200


def over_ranks() -> Iterator[str]:
    """Compare two MPI ranks of one thread with one rank of one thread."""
    words = ("solve", "jellyfish:n=1000,d=4,seed=1", "--gap", "1e-3", "--threads", "1")
    one = run(*words, "--method", "first-order", ranks=1).summary
    two = run(*words, "--method", "first-order", ranks=2).summary
    yield (
        f"jellyfish n=1000: 1 rank {one['seconds']:.1f} s, 2 ranks {two['seconds']:.1f} s, ratio "
        f"{one['seconds'] / two['seconds']:.2f}; gaps {one['gap']:.1e} and {two['gap']:.1e}"
    )


FAILURES: dict[str, Callable[[alltoall.Topology], alltoall.Topology]] = {
    "1 link": partial(drop_links, count=1, seed=1),
    "3 links": partial(drop_links, count=3, seed=1),
    "1 node": partial(drop_nodes, count=1, seed=1),
}
FAILING = ("genkautz:n={n},d=4", "jellyfish:n={n},d=4,seed=1")
FAILED_GAP, FAILED_SHARE, LAST_GAP = 0.02, 0.25, 1e-3
"""The goal after a failure, this gap in this share of the time that it takes from scratch; and the
gap that is asked of the last answer."""

FINDERS: dict[str, tuple[Callable[..., Any], str]] = {
    "route": (alltoall.route, "single:layering=none"),
    "schedule": (alltoall.schedule, f"list:loss={FAILED_GAP}"),
}
"""What is asked after a failure, how, and how besides where there is no last answer."""


def after_failures(nodes: list[int], verbs: list[str]) -> Iterator[str]:
    """Compare what begins with the last answer, after a failure, with what begins from scratch.

    Both are asked for the same gap, on one thread of this process, and both are checked. Routes
    are without layers, which are assigned alike in both cases.
    """
    head = (
        f"{'network':27} {'failed':8} {'verb':8} {'cold s':>7} {'gap':>6} {'warm s':>7} {'gap':>6}"
    )
    yield f"{head} {'ratio':>6}  goal {FAILED_SHARE:g} to {FAILED_GAP:.0%}"
    list(_failed("genkautz:n=45,d=4", verbs))  # Kernels are loaded.
    for n in nodes:
        for spec in FAILING:
            yield from _failed(spec.format(n=n), verbs)


def _failed(spec: str, verbs: list[str]) -> Iterator[str]:
    topology = build(spec)
    for verb in verbs:
        find, method = FINDERS[verb]
        last = find(topology, method, gap=LAST_GAP, threads=1)
        find = partial(find, gap=FAILED_GAP, threads=1)
        for what, fails in FAILURES.items():
            left = fails(topology)
            cold, cold_seconds = timed(partial(find, left, method))
            warm, warm_seconds = timed(partial(find, left, from_=last))
            ratio = warm_seconds / cold_seconds
            met = ratio <= FAILED_SHARE and warm.gap <= FAILED_GAP
            yield (
                f"{spec:27} {what:8} {verb:8} {cold_seconds:7.2f} {cold.gap:6.2%} "
                f"{warm_seconds:7.2f} {warm.gap:6.2%} {ratio:6.2f}  {'met' if met else 'MISSED'}"
            )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the CPU seconds that it took: of one thread, and whoever else runs."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def growth() -> Iterator[str]:
    """Fit how the seconds of a solve without symmetry grow with the number of nodes."""
    sizes, seconds = (200, 300, 400, 600, 1000), []
    for nodes in sizes:
        words = ("solve", f"genkautz:n={nodes},d=4", "--gap", "1e-3")
        seconds.append(run(*words, "--method", "first-order:symmetry=false").summary["seconds"])
        yield f"  n={nodes}: {seconds[-1]:.1f} s"
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    yield f"growth without symmetry, gap 1e-3: seconds ~ n^{slope:.2f}"


def main() -> None:
    """Print all lines as they come."""
    kinds = ["solve", "route", "schedule", "ratio", "ranks", "failures", "growth", "beyond"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds[:-1])
    parser.add_argument("--match", default="", help="only jobs with this text in their words")
    parser.add_argument("--patience", type=float, default=12.0)
    parser.add_argument("--nodes", nargs="+", type=int, default=[200], help="of failures")
    parser.add_argument("--verbs", nargs="+", choices=[*FINDERS], default=[*FINDERS])
    options = parser.parse_args()
    if options.only != ["failures"]:
        for words in (
            "n=40,d=4 --gap 1e-3",
            "n=40,d=4 --gap 1e-5",
            "n=80,d=4 --method auto:symmetry=false",
        ):
            run("solve", *f"genkautz:{words} --method first-order".split())
    for line in goals(options.only, options.match):
        print(line, flush=True)
    if "ratio" in options.only:
        for line in (*against_copying(), *against_highs(options.patience)):
            print(line, flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name("children.py")], check=True)
    if "ranks" in options.only:
        for line in over_ranks():
            print(line, flush=True)
    if "failures" in options.only:
        for line in after_failures(options.nodes, options.verbs):
            print(line, flush=True)
    if "growth" in options.only:
        for line in growth():
            print(line, flush=True)


if __name__ == "__main__":
    main()
