"""Types of the compiled core; `bindings.cpp` defines and checks them."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Table = NDArray[np.int32]

class Graph:
    """A directed graph: link l leads from `tail[l]` to `head[l]`."""

    def __init__(self, nodes: int, tail: Ints, head: Ints) -> None: ...

class LinkOrder:
    """Links in an order that paths follow.

    Places `blocks[i]` to `blocks[i + 1] - 1` of the order are a block, which is read again while it
    improves the way to a node from `settled` on. Link l has the price of `priced[l]`, and none if
    that is `priced_links`. Chunks go between columns of `copies`, whose rows are nodes.
    """

    def __init__(
        self,
        nodes: int,
        tail: Ints,
        head: Ints,
        order: Ints,
        blocks: Ints,
        settled: int,
        priced: Ints,
        priced_links: int,
        copies: Ints,
    ) -> None: ...

def most_hops(where: Graph | LinkOrder, start: Ints, first: Ints, end: Ints) -> int:
    """Return the most hops of a shortest path of any chunk, -1 if some chunk has no path."""

def respond(
    where: Graph | LinkOrder,
    start: Ints,
    first: Ints,
    end: Ints,
    size: Floats,
    mean_size: Floats,
    scale: Floats | None,
    steepness: float,
    table: Table,
    load: Floats,
    together: int = 1,
    threads: int = 1,
) -> int:
    """Let chunks move to cheaper paths, in place; return how many did.

    The chunks of source i are `first[i]` to `first[i + 1] - 1`. Without a scale every link costs 1.
    """

def reroute(
    where: Graph | LinkOrder,
    start: Ints,
    end: Ints,
    size: Floats,
    order: Ints,
    begin: int,
    most: int,
    budget: Floats,
    share: Floats,
    history: Floats,
    pressure: float,
    free_cost: float,
    table: Table,
    load: Floats,
) -> int:
    """Reroute up to `most` chunks over a budget, in place, from `order[begin]` on.

    Return the place where it stopped, or -1 minus the place of a chunk without a path.
    """

def add_loads(
    where: Graph | LinkOrder, size: Floats, share: Floats, table: Table, load: Floats
) -> None:
    """Add chunks on their paths to the loads of priced links."""

def choose(
    path_start: Ints,
    link: Ints,
    low: Ints,
    high: Ints,
    links: int,
    phases: int,
    size: Floats,
    order: Ints,
    begin: int,
    most: int,
    scale: Floats,
    steepness: float,
    load: Floats,
    path: Ints,
    phase: Ints,
) -> int:
    """Let chunks choose from listed paths at exponential prices; return the place of the next."""

def choose_within(
    path_start: Ints,
    link: Ints,
    low: Ints,
    high: Ints,
    links: int,
    phases: int,
    size: Floats,
    order: Ints,
    begin: int,
    most: int,
    budget: Floats,
    share: Floats,
    history: Floats,
    fill: float,
    pressure: float,
    load: Floats,
    path: Ints,
    phase: Ints,
) -> int:
    """Let chunks over a budget choose from listed paths; return the place of the next."""
