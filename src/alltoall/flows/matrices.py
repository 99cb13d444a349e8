"""The constraint families that all link-based programs share, over any choice of variables.

A program has variables x[i]: the flow of group `group[i]` on link `link[i]`. Leaving out the
variables that cannot be positive is what keeps child and time-stepped programs small.
"""

import numpy as np

from alltoall.flows.groups import Groups
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.lp.matrix import Entries, sparse_matrix
from alltoall.lp.program import LinearProgram


def all_variables(topology: Topology, groups: Groups) -> tuple[Ints, Ints]:
    """Return group and link of one variable for every group and link."""
    count = len(groups.start)
    return np.repeat(np.arange(count), topology.links), np.tile(np.arange(topology.links), count)


def conservation(
    topology: Topology, groups: Groups, group: Ints, link: Ints
) -> tuple[Entries, Floats]:
    """Return B and the right-hand side of B x = wanted: one row per group and node it touches.

    +1 where a link enters a node, -1 where it leaves; the row of a group's source is left out.
    """
    keys = np.concatenate(
        (group * topology.nodes + topology.head[link], group * topology.nodes + topology.tail[link])
    )
    signs = np.repeat((1.0, -1.0), len(link))
    columns = np.tile(np.arange(len(link)), 2)
    keep = keys % topology.nodes != np.tile(groups.start[group], 2)
    present, row = np.unique(keys[keep], return_inverse=True)
    wanted = groups.wanted[present // topology.nodes, present % topology.nodes]
    return Entries(signs[keep], row, columns[keep]), wanted


def link_sums(link: Ints) -> Entries:
    """Return the rows that add up all groups' flow on each link."""
    return Entries(np.ones(len(link)), link, np.arange(len(link)))


def class_sums(program: FlowProgram, group: Ints, link: Ints) -> Entries:
    """Return the rows that add up, for each class of links, all flow that counts in it."""
    row = program.link_class[link]
    column = np.flatnonzero(row < program.classes)
    return Entries(program.weight[group[column]], row[column], column)


def linear_program(program: FlowProgram, group: Ints, link: Ints) -> LinearProgram:
    """Build the linear program over the variables x[group, link], then one z per budget.

    Rows are conservation, then one per class of links.
    """
    balance, wanted = conservation(program.graph, program.groups, group, link)
    rows, budgets = len(wanted) + program.classes, int(program.budget.max()) + 1
    room = program.class_size * program.class_capacity
    time = Entries(-room, np.arange(program.classes), program.budget)
    return LinearProgram(
        cost=np.concatenate((np.zeros(len(link)), np.ones(budgets))),
        matrix=sparse_matrix(
            (rows, len(link) + budgets),
            balance,
            class_sums(program, group, link).moved(rows=len(wanted)),
            time.moved(len(wanted), len(link)),
        ),
        row_lower=np.concatenate((wanted, np.full(program.classes, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(program.classes))),
    )
