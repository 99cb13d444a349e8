"""The compiled core: loops over links in C++. It knows arrays and graphs, nothing of problems."""

from alltoall.core._core import (
    Graph,
    LinkOrder,
    add_loads,
    choose,
    choose_within,
    most_hops,
    reroute,
    respond,
)

__all__ = [
    "Graph",
    "LinkOrder",
    "add_loads",
    "choose",
    "choose_within",
    "most_hops",
    "reroute",
    "respond",
]
