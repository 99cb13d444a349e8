"""Where methods that step or sweep start from, and what they measure it by."""

from dataclasses import dataclass

import numpy as np

from alltoall.flows.exact import exact_flows
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats
from alltoall.settings import Team


@dataclass(frozen=True, eq=False)
class Guess:
    """Where to start: volumes [groups, links] and a length per link, near to optimal or not."""

    volumes: Floats
    lengths: Floats


def shortest_paths(program: FlowProgram) -> Guess:
    """Return where to start without a guess: shortest paths, and links that are equally full."""
    nothing = np.zeros((len(program.weight), program.graph.links))
    volumes = exact_flows(program.graph, program.groups, nothing)
    return Guess(volumes, 1 / program.graph.capacity)


def useful_widths(program: FlowProgram, volumes: Floats, team: Team) -> Floats:
    """Return how much of each link there is to use, next to that of a median one.

    In the time that some volumes take, all demand together needs no more than a certain width. In a
    team the program and its volumes are the part of one rank.
    """
    capacity = program.graph.capacity
    wanted = float(program.weight @ program.groups.wanted.sum(axis=1))
    told = team.total(np.append(program.weight @ volumes, wanted))
    time = float(program.durations(told[:-1]).sum())
    useful = np.minimum(capacity, told[-1] / time) if time > 0 else capacity
    return np.asarray(useful / np.quantile(useful, 0.5, method="lower"))


def within_budget(program: FlowProgram, lengths: Floats) -> Floats:
    """Return the mean length of each class, scaled so that each budget is spent."""
    counted = np.bincount(program.link_class, lengths, program.classes)[: program.classes]
    price = counted / program.class_size
    spent = np.bincount(program.budget, program.class_size * program.class_capacity * price)
    even = 1 / np.bincount(program.budget, program.class_size * program.class_capacity)
    share = np.divide(1.0, spent, out=np.zeros_like(spent), where=spent > 0)[program.budget]
    return np.where(share > 0, price * share, even[program.budget])
