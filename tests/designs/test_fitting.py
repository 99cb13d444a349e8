"""Families that fit a size: what arithmetic says is what is built."""

import pytest

from alltoall.designs.fitting import (
    FITTING,
    families_that_do_not_fit,
    fitting_specs,
    nearest_sizes,
)
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.spec import build

SIZES = (
    (5, 4),
    (8, 3),
    (8, 4),
    (12, 2),
    (16, 4),
    (18, 5),
    (24, 3),
    (31, 6),
    (50, 7),
    (54, 6),
    (60, 4),
    (90, 7),
    (104, 7),
    (120, 4),
)


@pytest.mark.parametrize(("nodes", "degree"), SIZES)
def test_what_fits_has_the_size_and_the_degree(nodes: int, degree: int) -> None:
    """And is a family of the table, with one terminal a node."""
    specs = [spec for name in FITTING for spec in fitting_specs(name, nodes, degree)]
    assert f"genkautz:n={nodes},d={degree},rewire=true" in specs
    for spec in specs:
        topology = build(spec)
        assert (topology.nodes, len(topology.terminals)) == (nodes, nodes), spec
        assert topology.out_degree.max() == degree, spec


def test_every_family_is_found_somewhere() -> None:
    """No row of the table is one that never fits."""
    fits = {name for name in FITTING for n, d in SIZES if fitting_specs(name, n, d)}
    assert fits == FITTING.keys()
    assert FITTING.keys() <= set(FAMILIES)


def test_the_nearest_sizes_are_next_to_it() -> None:
    """Below and above, where there are any."""
    assert nearest_sizes("kautz", 64, 4) == (20, 80)
    assert nearest_sizes("hypercube", 64, 4) == (16,)
    assert nearest_sizes("ring", 64, 4) == ()
    assert families_that_do_not_fit(16, 4)["complete"] == (5,)
    assert "hypercube" not in families_that_do_not_fit(16, 4)
