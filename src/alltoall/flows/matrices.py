"""The constraint families that all link-based programs share, over any choice of variables.

A program has variables x[i]: the flow of group `group[i]` on link `link[i]`. Leaving out the
variables that cannot be positive is what keeps child and time-stepped programs small.
"""

import numpy as np
from scipy.sparse import block_array, coo_array

from alltoall.flows.groups import Groups
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram


def all_variables(topology: Topology, groups: Groups) -> tuple[Ints, Ints]:
    """Return group and link of one variable for every group and link."""
    count = len(groups.start)
    return np.repeat(np.arange(count), topology.links), np.tile(np.arange(topology.links), count)


def conservation(
    topology: Topology, groups: Groups, group: Ints, link: Ints
) -> tuple[coo_array, Floats]:
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
    shape = (len(present), len(link))
    return coo_array((signs[keep], (row, columns[keep])), shape=shape), wanted


def link_sums(links: int, link: Ints) -> coo_array:
    """Return the matrix that adds up, for each of so many links, all groups' flow."""
    column = np.arange(len(link))
    return coo_array((np.ones(len(link)), (link, column)), shape=(links, len(link)))


def class_sums(program: FlowProgram, group: Ints, link: Ints) -> coo_array:
    """Return the matrix that adds up, for each class of links, all flow that counts in it."""
    row = program.link_class[link]
    column = np.flatnonzero(row < program.classes)
    weight = program.weight[group[column]]
    return coo_array((weight, (row[column], column)), shape=(program.classes, len(link)))


def widths(program: FlowProgram) -> coo_array:
    """Return the matrix of what each class carries in all per unit of its budget."""
    carried = program.class_size * program.class_capacity
    shape = (program.classes, int(program.budget.max()) + 1)
    return coo_array((carried, (np.arange(program.classes), program.budget)), shape=shape)


def linear_program(program: FlowProgram, group: Ints, link: Ints) -> LinearProgram:
    """Build the linear program over the variables x[group, link], then one z per budget.

    Rows are conservation, then one per class of links.
    """
    balance, wanted = conservation(program.graph, program.groups, group, link)
    width = widths(program)
    blocks: list[list[coo_array | None]] = [
        [balance, None],
        [class_sums(program, group, link), -width],
    ]
    return LinearProgram(
        cost=np.concatenate((np.zeros(len(link)), np.ones(width.shape[1]))),
        matrix=block_array(blocks, format="csc"),
        row_lower=np.concatenate((wanted, np.full(program.classes, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(program.classes))),
    )
