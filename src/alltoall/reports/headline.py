"""The headline of an answer: its throughput beside shortest paths and the proven maximum.

With a link rate, numbers are GB/s per node and more is better; without, shard times and less is
better.
"""

from dataclasses import dataclass
from typing import Any

from alltoall.ir.answer import Answer, Bottleneck
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.problem import Problem
from alltoall.ir.words import PROVEN, counted, percent
from alltoall.reports.diagram import Diagram
from alltoall.reports.packed import packed_ints
from alltoall.routes.baselines.tables import METHOD

SHORTEST = "shortest-path routing"
GIGA = 1e9
SAME = 5e-4
"""Two results this close, as a share, are called equal."""


@dataclass(frozen=True)
class Scale:
    """The unit of a headline: GB/s per node on a fabric, shard times without one."""

    problem: Problem
    fabric: Fabric | None

    def value(self, time: float) -> float:
        """Return a time in the unit."""
        if self.fabric is None:
            return float(time)
        return float(self.fabric.throughput(self.problem.demand, time)) / GIGA

    def words(self, time: float, digits: int = 3) -> str:
        """Return a time as a number with its unit."""
        value, unit = self.value(time), "shard times" if self.fabric is None else "GB/s"
        return f"{value:,.0f} {unit}" if value >= 999.5 else f"{value:.{digits}g} {unit}"

    @property
    def best(self) -> str:
        """The name of the bound."""
        return "proven minimum" if self.fabric is None else "proven maximum"


def scale_of(answer: Answer, rate: Rate | None) -> Scale:
    """Return the unit of an answer, given the rate of a link of capacity 1."""
    known = link_rate(answer.problem.topology, rate)
    fabric = None if known is None else Fabric(answer.problem.topology, known)
    return Scale(answer.problem, fabric)


def headline_content(answer: Answer, rate: Rate | None, shortest: float | None) -> dict[str, Any]:
    """Return the sentences and the bars of a headline; `shortest` is the baseline's time."""
    scale = scale_of(answer, rate)
    bars = [("own", answer.method, answer.time)]
    versus = ""
    if shortest is not None and answer.method != METHOD:
        bars.insert(0, ("baseline", SHORTEST, shortest))
        versus = _versus(answer.time, shortest, scale)
    if answer.bound > 0:
        bars.append(("bound", scale.best, answer.bound))
    rated = scale.fabric is not None
    return {
        "answer": f"{scale.words(answer.time)}{' per node' * rated}, {standing(answer, scale)}",
        "versus": versus,
        "proof": _proof(answer, scale),
        "unit": "GB/s per node, more is better" if rated else "shard times, less is better",
        "bars": [[role, name, scale.value(time)] for role, name, time in bars],
        "optimal": bool(answer.bound > 0 and answer.gap <= PROVEN),
    }


def standing(answer: Answer, scale: Scale) -> str:
    """Return the distance of an answer from its bound in words."""
    if answer.bound <= 0:
        return "no bound claimed"
    if answer.gap <= PROVEN:
        return f"the {scale.best}"
    if scale.fabric is None:
        return f"{percent(answer.gap)} above the {scale.best}"
    return f"{percent(1 - answer.bound / answer.time)} below the {scale.best}"


def _proof(answer: Answer, scale: Scale) -> str:
    """Return the proven limit and its reason."""
    if answer.bound <= 0:
        return "no bound is claimed"
    verb = "take less than" if scale.fabric is None else "exceed"
    limit, why = scale.words(answer.bound, 4), answer.bottleneck()._facts()["proof"]
    return f"no routing of this network can {verb} {limit} ({why})"


def _versus(time: float, shortest: float, scale: Scale) -> str:
    """Compare the throughput of an answer with shortest-path routing."""
    other, more = f"{SHORTEST} ({scale.words(shortest)})", shortest / time - 1
    if abs(more) <= SAME:
        return f"as much as {other}"
    throughput = " throughput" if scale.fabric is None else ""
    return f"{percent(abs(more))} {'more' if more > 0 else 'less'}{throughput} than {other}"


def proof_content(bottleneck: Bottleneck, diagram: Diagram) -> dict[str, Any] | None:
    """Return the marked part of the drawing: a cut or the links that prove the bound.

    A cut marks its links and the nodes on its smaller side. If all links count alike, nothing is
    marked, and the legend says so.
    """
    proof, inside = bottleneck.proof, bottleneck.inside
    links = counted(len(proof), "link")
    if not len(proof):
        return None
    if inside is not None:
        text = f"proving cut: {links} around {counted(len(inside), 'node')}"
    elif len(proof) < bottleneck.topology.links:
        text = f"bound proven by {links} of {bottleneck.topology.links:,}"
    elif bottleneck.even:
        return {"text": "bound: total hops / total capacity, every link counts alike"}
    else:
        return {"text": "bound: distances over all links"}
    return {
        "text": text,
        "lines": packed_ints(diagram.lines_of(proof)),
        "nodes": None if inside is None else packed_ints(diagram.groups_within(inside)),
    }
