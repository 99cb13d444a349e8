"""Independent check of symmetry: whether permutations are automorphisms.

A flow with generators claims its average over the group that they generate. An automorphism maps a
conserved flow of one source to a conserved flow of another, so the average is a flow of all
sources, whose load of a link is the mean over the orbit of the link. It remains to check that the
generators preserve links, capacities, terminals and demand.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem


def check_generators(problem: Problem, generators: Ints) -> Iterator[str]:
    """Yield the faults of claimed automorphisms, permutations [generators, nodes]."""
    topology, matrix = problem.topology, problem.demand.matrix
    everyone = np.arange(topology.nodes)
    for index, nodes in enumerate(generators):
        if not np.array_equal(np.sort(nodes), everyone):
            yield f"generator {index} is not a permutation of the nodes"
        elif not np.array_equal(np.sort(nodes[topology.terminals]), topology.terminals):
            yield f"generator {index} moves a terminal to a node that is none"
        else:
            keys = (topology.capacity, topology.head, topology.tail)
            images = (topology.capacity, nodes[topology.head], nodes[topology.tail])
            before, after = np.lexsort(keys), np.lexsort(images)
            both = zip(keys, images, strict=True)
            if not all(np.array_equal(key[before], image[after]) for key, image in both):
                yield f"generator {index} does not map links to links of the same capacity"
                continue
            moved = np.searchsorted(topology.terminals, nodes[topology.terminals])
            if matrix is not None and not np.array_equal(matrix[np.ix_(moved, moved)], matrix):
                yield f"generator {index} does not keep the demand"
