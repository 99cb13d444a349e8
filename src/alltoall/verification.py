"""`verify`: check any file or answer without trusting its maker.

Artefacts go to their checker. A lowered program is parsed, executed on real bytes, and measured on
a topology; lowered routes are read back into routes, and those are checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from alltoall.check.answers import check_answer
from alltoall.check.flow import TOLERANCE, check_topology
from alltoall.check.program.alltoall import AllToAllReport, check_all_to_all, check_plan
from alltoall.check.program.messages import check_messages
from alltoall.check.program.timing import time_on
from alltoall.check.routes import check_routes
from alltoall.check.template import TemplateReport, check_template
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.fabric import Fabric
from alltoall.ir.files.json.saved_answers import Artefact, format_name
from alltoall.ir.files.node_tables import read_ranks
from alltoall.ir.flow import Flow
from alltoall.ir.messages import Messages
from alltoall.ir.noun import Provenance
from alltoall.ir.problem import Problem
from alltoall.ir.program import Program
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import kind_in_words
from alltoall.loading import LoweredText, Noun, opened
from alltoall.lowering import TARGETS, Lowered, parse_lowered
from alltoall.lowering.options import topology_by_rank
from alltoall.lowering.programs.msccl_emit import RUNTIMES
from alltoall.lowering.programs.msccl_read import refusals
from alltoall.lowering.tables.routed_file import RoutedFile, differences, rebuild
from alltoall.topologies.given import Given, GivenDemand, demand_of, topology_of

Reference = Topology | Problem | Routes | Schedule
"""The reference of a file; a topology stands for its uniform all-to-all."""

Prove: TypeAlias = Callable[[Problem], Flow]
"""Solves a problem for its bound."""

SHARP = 1e-5
"""The gap of a proof up to which its bound counts as the optimum."""

KINDS = {Program: "program", ExecutionPlan: "execution plan", Messages: "messages"}
"""Names of lowered objects that are no files."""

Subject: TypeAlias = str | PathLike[str] | Noun
"""What can be verified: any file or its content."""


@dataclass(frozen=True)
class Verified:
    """The report of a successful check.

    `kind` is the format or target; `facts` are the numbers that the check computed, by the names
    that the command line prints.
    """

    kind: str
    facts: Mapping[str, Any]

    @property
    def valid(self) -> bool:
        """Always true: violations are raised."""
        return True

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"valid": True, **self.facts, "format": self.kind}


def verify(
    subject: Subject,
    *,
    topology: Given | None = None,
    rank_map: str | PathLike[str] | None = None,
    demand: GivenDemand = None,
    tolerance: float = TOLERANCE,
) -> Verified:
    """Check a file or an answer without trusting its maker; raise `VerificationError` if wrong.

    A flow must conserve, fit the capacities, meet the demand, and its certificate must prove its
    bound; a schedule must deliver every chunk and send none before it is there; routes must be
    paths, carry the demand and not deadlock; a lowered program of any target, ours or not, is
    executed on real bytes; lowered routes are read back into routes; a topology must be sound. The
    command line exits with code 4 if something is wrong.

    With a topology, lowered files must keep to its links, and their time is compared with a
    certified bound. A rank map must be the one that the file was lowered with. With a demand,
    routes and schedules are also judged as templates: each pair's amount is spread over its routes
    or chunks, and the predicted time is compared with the certified bound for that demand.

    >>> import alltoall
    >>> report = alltoall.verify(alltoall.solve("torus:3x3"))
    >>> report.kind, round(report.facts["time"], 6)
    ('alltoall.flow/1', 3.0)
    """
    if not 0 <= tolerance < 1:
        raise UsageError(f"tolerance {tolerance:g}; expected a number from 0 to below 1")
    if rank_map is not None and topology is None:
        raise UsageError("a rank map without a topology; give the topology whose nodes it names")
    found = opened(Path(subject)) if isinstance(subject, str | PathLike) else subject
    routed = isinstance(found, RoutedFile)
    if isinstance(found, LoweredText):
        routed = TARGETS[found.kind].takes is Routes
    if demand is not None and not (isinstance(found, Routes | Schedule) or (routed and topology)):
        raise UsageError(
            "a demand without a template; expected routes or a schedule to use it on, or lowered "
            "routes with the topology that they are for"
        )
    if topology is not None and isinstance(found, Artefact | Topology | Problem):
        raise UsageError(
            f"a topology for a file ({type(found).__name__}) that has its own; expected a lowered "
            "file to check against it"
        )
    if isinstance(found, Artefact):
        return _verified_artefact(found, tolerance, demand)
    if isinstance(found, Topology | Problem):
        topology = found if isinstance(found, Topology) else found.topology
        check_topology(topology)
        sizes = {"topology": topology.name, "nodes": topology.nodes, "links": topology.links}
        return Verified("topology", sizes | _made_by(topology.provenance))
    if isinstance(found, Demand | Certificate | Fabric):
        raise UsageError(
            f"{kind_in_words(found)} claims nothing by itself; expected a topology, a flow, "
            "routes, a schedule or a lowered file"
        )
    fabric = topology_of(topology) if topology is not None else None
    if fabric is not None and rank_map is not None and not routed:
        fabric = topology_by_rank(fabric, read_ranks(Path(rank_map), fabric))
    reference: Topology | Problem | None = fabric
    if fabric is not None and demand is not None:
        reference = Problem(fabric, demand_of(demand, fabric))
    if isinstance(found, LoweredText):
        facts = verify_text(found.text, found.where, reference, _prove)
    else:
        kind = found.kind if isinstance(found, RoutedFile) else KINDS[type(found)]
        facts = _verify_lowered(kind, found, found.name, reference, _prove)
    return Verified(str(facts.pop("format")), facts)


def _verified_artefact(noun: Artefact, tolerance: float, demand: GivenDemand) -> Verified:
    facts = {"topology": noun.problem.topology.name, **asdict(check_answer(noun, tolerance))}
    if demand is not None and not isinstance(noun, Flow):
        facts |= asdict(predict(noun, demand))
    return Verified(format_name(noun), facts | _made_by(noun.provenance))


def _made_by(provenance: Provenance | None) -> dict[str, Any]:
    return {} if provenance is None else {"provenance": dict(provenance.known())}


def predict(template: Routes | Schedule, demand: GivenDemand) -> TemplateReport:
    """Return the time of routes or a schedule under a demand, against that demand's own bound.

    >>> import alltoall, numpy
    >>> routes = alltoall.route("torus:3x3", method="single")
    >>> predict(routes, 2 - 2 * numpy.eye(9)).template_time
    6.0
    """
    wanted = demand_of(demand, template.problem.topology)
    problem = Problem(template.problem.topology, wanted)
    return check_template(template, wanted, _prove(problem).certificate.lengths)


def _prove(problem: Problem) -> Flow:
    """Return a flow that proves the bound of a problem."""
    # By name: most checks need no solver, and it takes longer to load than they do.
    flow: Flow = import_module("alltoall.flows").prove(problem)
    return flow


def _slack(flow: Flow) -> dict[str, float]:
    """Return how far the optimum may be above the bound, if that is significant."""
    return {"bound_slack": flow.gap} if flow.gap > SHARP else {}


def verify_text(
    text: str, where: str, reference: Reference | None = None, prove: Prove | None = None
) -> dict[str, Any]:
    """Check a lowered file and return its facts.

    A program must keep to the links of the topology (`check.program.timing`); `gap` compares its
    time there with the bound that `prove` finds. Routes must be simple paths through the stated
    ports, carry exactly the demand, and be free of deadlock in every layer. They must equal the
    given routes, if any. Only the fabric table has its own topology and can be checked alone.
    """
    kind, lowered = parse_lowered(text, where)
    found = _verify_lowered(kind, lowered, where, reference, prove)
    if kind == "msccl" and isinstance(lowered, Program):
        refused = refusals(lowered, text, where)
        found["runtimes"] = [name for name in RUNTIMES if name not in refused]
        found |= {"refused_by": refused} if refused else {}
    return found


def _verify_lowered(
    kind: str,
    lowered: RoutedFile | Lowered,
    where: str,
    reference: Reference | None,
    prove: Prove | None,
) -> dict[str, Any]:
    """Check the routes in a file, or execute a program on real bytes."""
    if isinstance(lowered, RoutedFile):
        return _verify_routed(kind, lowered, where, reference, prove)
    report: AllToAllReport
    if isinstance(lowered, Messages):
        report = check_messages(lowered)
    else:
        report = check_all_to_all(lowered) if isinstance(lowered, Program) else check_plan(lowered)
    if not report.correct:
        raise VerificationError(where, report.problems())
    return _summary(kind, lowered, report) | _timed(lowered, report, where, reference, prove)


def _timed(
    lowered: Lowered,
    report: AllToAllReport,
    where: str,
    reference: Reference | None,
    prove: Prove | None,
) -> dict[str, Any]:
    """Return the time of a program on a topology, if given, and its gap.

    Messages state the sizes of shards. Programs and plans do not: chunks of pairs with different
    counts are taken to be equal, with a note.
    """
    if reference is None:
        return {}
    topology = reference if isinstance(reference, Topology) else _problem_of(reference).topology
    time = time_on(lowered, report, topology, where)
    found: dict[str, Any] = {"topology": topology.name, "time": time}
    if not isinstance(lowered, Messages) and not lowered.chunks.uniform:
        found["chunk_sizes"] = "equal"
    if prove is None:
        return found
    demand = lowered.demand if isinstance(lowered, Messages) else lowered.chunks.demand()
    flow = prove(Problem(topology, demand))
    return found | {"bound": flow.bound, "gap": time / flow.bound - 1.0, **_slack(flow)}


def _summary(kind: str, lowered: Lowered, report: AllToAllReport) -> dict[str, Any]:
    chunks = report.chunks
    uneven = {"chunks": chunks.total, "max_chunks_per_shard": chunks.most}
    found: dict[str, Any] = {
        "format": kind,
        "name": lowered.name,
        "ranks": len(lowered.ranks),
        **({"chunks_per_shard": chunks.per_shard} if chunks.uniform else uneven),
        "correct": report.correct,
        "steps": report.steps,
        "sends": int(report.sends.sum()),
        "max_sends_per_link": int(report.sends.max()),
        "scratch_chunks": max(each.scratch for each in lowered.ranks),
    }
    if isinstance(lowered, Messages):
        return found | {"messages": lowered.messages}
    parts = (
        [each.threads for each in lowered.ranks]
        if isinstance(lowered, Program)
        else [each.blocks for each in lowered.ranks]
    )
    return found | {"thread_blocks": max(map(len, parts))}


def _verify_routed(
    kind: str,
    file: RoutedFile,
    where: str,
    reference: Reference | None,
    prove: Prove | None,
) -> dict[str, Any]:
    """Rebuild the routes in a file and check them.

    Few formats hold a certificate; for the others `prove` finds the bound.
    """
    problem, certificate = _problem(file, reference)
    found = rebuild(file, problem, certificate)
    report, slack = check_routes(found), {}
    violations = list(differences(found, reference)) if isinstance(reference, Routes) else []
    if violations:
        raise VerificationError(where, violations)
    if certificate is None and prove is not None:
        flow = prove(problem)
        report, slack = check_routes(rebuild(file, problem, flow.certificate)), _slack(flow)
    return {
        "format": kind,
        "topology": problem.topology.name,
        **file.facts,
        **asdict(report),
        **slack,
    }


def _problem(file: RoutedFile, reference: Reference | None) -> tuple[Problem, Certificate | None]:
    """Return the problem to check the file against, and its certificate, if any."""
    if reference is None:
        if file.problem is None:
            raise UsageError(
                f"{file.name}: a file of the target {file.kind} has no topology in it; "
                "give the topology that it is for (--topology SPEC)"
            )
        return file.problem, file.certificate
    problem = _problem_of(reference)
    own = file.problem
    if own is not None and own.topology != problem.topology:
        raise VerificationError(
            file.name, [f"is for another topology than {problem.topology.name}"]
        )
    if own is not None and own.demand != problem.demand:
        raise VerificationError(file.name, ["is for another demand"])
    if isinstance(reference, Routes):
        return problem, reference.certificate
    return problem, file.certificate


def _problem_of(reference: Reference) -> Problem:
    if isinstance(reference, Topology):
        return Problem.all_to_all(reference)
    return reference.problem if isinstance(reference, Routes | Schedule) else reference
