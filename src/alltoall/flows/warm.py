"""Warm restarts: from the answer to a problem to that of one a little different.

Links or nodes fail, capacities or demands change, and most of the last answer still holds. What is
left of its flows and lengths is either made exact at once (`repair`: only what used a failed link
moves), or where the first-order method starts from (`solve_from`). Programs so small that a solver
of linear programs ends them at once need no start. None of these has to trust the last answer, nor
how its nodes are matched to the new ones: the new answer has its own certificate.
"""

from dataclasses import replace

import numpy as np

from alltoall.flows.by_lp import finished, flow_from_volumes, polished, with_status
from alltoall.flows.certificate import certify_program
from alltoall.flows.exact import NEGLIGIBLE_FLOW, exact_flows
from alltoall.flows.fill import fill_missing
from alltoall.flows.first_order import solve_by_steps
from alltoall.flows.groups import by_source
from alltoall.flows.guess import Guess
from alltoall.flows.matching import NOWHERE, matching_links, matching_nodes
from alltoall.flows.program import FlowProgram, reduced_program, whole_program
from alltoall.flows.symmetry.orbits import expand, find_symmetry
from alltoall.flows.threads import using_threads
from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.units import Units, normal_units
from alltoall.lp import SMALL_SIZE
from alltoall.settings import SolveSettings

REPAIR_PARTS = 16
"""Parts in which a repair sends what failed links carried: more than the noise of a solver."""


def repair(problem: Problem, last: Flow, settings: SolveSettings) -> Flow:
    """Return the last answer with only what cannot stay rerouted, and its certificate."""
    settings = settings.begin()
    units = normal_units(problem)
    program = whole_program(units.problem, by_source(units.problem))
    with using_threads(settings.workers):
        flow = _repaired(units.problem, program, _carried_over(program, last, units.demand))
    return units.restored(with_status(flow, Status.GAP_NOT_REACHED, settings))


def unserved(problem: Problem, last: Flow) -> float:
    """Return which share of the demand the last flow, as it is, does not deliver any more.

    What crossed several failed links one after the other counts for each, so it is at most that.
    """
    units = normal_units(problem)
    program = whole_program(units.problem, by_source(units.problem))
    graph, wanted = program.graph, program.groups.wanted
    missing = 0.0
    for row, flow in enumerate(_carried_over(program, last, units.demand).volumes):
        lacks = wanted[row] - np.bincount(graph.head, flow, graph.nodes)
        lacks += np.bincount(graph.tail, flow, graph.nodes)
        lacks[program.groups.start[row]] = 0.0
        missing += lacks[lacks > NEGLIGIBLE_FLOW * wanted[row].max()].sum()
    return float(min(1.0, missing / wanted.sum()))


def solve_from(problem: Problem, last: Flow, settings: SolveSettings) -> Flow:
    """Solve a problem by the first-order method, from the answer to a similar one."""
    units = normal_units(problem)
    return units.restored(_solve_from(units, last, settings.begin()))


def _solve_from(units: Units, last: Flow, settings: SolveSettings) -> Flow:
    """Solve a problem in normal units, from the answer to a similar one in units of its own."""
    problem = units.problem
    symmetry = find_symmetry(problem, settings.symmetry)
    program = reduced_program(symmetry)
    guess = _carried_over(program, last, units.demand)
    if guess.volumes.any():
        with using_threads(settings.workers):
            flow = _renewed(problem, program, guess, settings)
    else:  # Nothing is left of the last answer to start from.
        flow = solve_by_steps(problem, program, settings, "first-order")
    flow = finished(problem, program, flow, settings)
    return flow if symmetry.trivial else replace(flow, generators=symmetry.generators)


def _renewed(problem: Problem, program: FlowProgram, guess: Guess, settings: SolveSettings) -> Flow:
    """Return the flow that is left if it is within the gap, else what the method makes of it."""
    volumes = exact_flows(program.graph, program.groups, guess.volumes)
    proof = certify_program(program, [guess.lengths])
    flow = flow_from_volumes(problem, program, volumes, proof, "first-order")
    if flow.gap <= settings.gap:
        return with_status(flow, Status.WITHIN_GAP, settings)
    if program.variables < SMALL_SIZE:  # Solved to the end in any case, and sooner without steps.
        flow = polished(problem, program, flow, settings)
        if flow.status is not Status.GAP_NOT_REACHED:
            return flow
    start = Guess(volumes, proof.lengths)
    return solve_by_steps(problem, program, settings, "first-order", start)


def _repaired(problem: Problem, program: FlowProgram, guess: Guess) -> Flow:
    """Make the carried-over flow exact; what is missing goes where there is room."""
    filled = guess.volumes.copy()
    fill_missing(program, filled, REPAIR_PARTS)
    volumes = exact_flows(program.graph, program.groups, filled)
    certificate = certify_program(program, [guess.lengths])
    return flow_from_volumes(problem, program, volumes, certificate, "repair")


def _carried_over(program: FlowProgram, last: Flow, unit: float) -> Guess:
    """Return the volumes and lengths of the last answer on the links of the new graph.

    The new graph's demands are in units of `unit`. Its symmetric links get the mean of their
    lengths, and new links the mean of all.
    """
    last = expand(last)
    old, new = last.problem.topology, program.graph
    node = matching_nodes(old, new)
    link = matching_links(old, new, node)
    known = link != NOWHERE
    lengths = np.full(new.links, last.certificate.lengths.mean())
    lengths[known] = last.certificate.lengths[link[known]]
    total = np.bincount(program.link_class, lengths, program.classes)
    volumes = np.zeros((len(program.weight), new.links))
    for row, start in enumerate(program.groups.start):
        volumes[row, known] = _volumes_of(last, node[start])[link[known]]
    return Guess(volumes / unit, program.link_lengths(total / program.class_size))


def _volumes_of(flow: Flow, node: int) -> Floats:
    """Return the volumes of the flow from a node, summed over its groups; zero if it has none."""
    topology = flow.problem.topology
    total = np.zeros(topology.links)
    for group in np.flatnonzero(topology.terminals[flow.source] == node):
        begin, end = flow.start[group], flow.start[group + 1]
        total[flow.link[begin:end]] += flow.amount[begin:end] * flow.time
    return total
