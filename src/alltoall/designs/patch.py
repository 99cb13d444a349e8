"""Patch lists: which port of which node goes to which, as whoever plugs the cables reads it."""

import csv
import io

import numpy as np

from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.topology import Topology
from alltoall.topologies.cables import cable_links, partner_links

HEADER = ("cable", "from", "from_port", "to", "to_port")
"""The columns of a patch list."""


def patch_list(topology: Topology) -> str:
    """Return a CSV with a line for every cable, or for every link if links are one way.

    Ports of a node are numbered from 1 in the order of its links. Of one-way links a node has
    ports to send (`from_port`) and ports to receive (`to_port`), each numbered by itself.
    """
    cables = cable_links(topology)
    sending = _ports(topology.tail)
    receiving = (
        sending[partner_links(topology)] if topology.bidirectional else _ports(topology.head)
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for number, link in enumerate(cables.tolist(), 1):
        tail, head = (
            topology.node_name(int(ends[link])) for ends in (topology.tail, topology.head)
        )
        writer.writerow((number, tail, int(sending[link]), head, int(receiving[link])))
    return text.getvalue()


def _ports(ends: Ints) -> Ints:
    """Return for every link which of the links at its end it is, from 1 on."""
    order = np.argsort(ends, kind="stable")
    ports = np.empty(len(ends), dtype=np.int64)
    ports[order] = inner_index(np.bincount(ends)) + 1
    return ports
