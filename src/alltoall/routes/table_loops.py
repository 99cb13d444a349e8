"""The compiled loops of forwarding tables (`routes.by_destination`): their traffic, and moves.

A node that sends anything to a terminal makes one turn: from its own link to that of the next node.
A new link changes the turns of the node, of its predecessors, and of nodes that begin or cease to
carry traffic. Where tables must stay free of deadlocks in one layer, turns are counted, and an
order of the links is kept in which all of them go forward (`routes.layers.dependencies`); a link
that closes a cycle is not taken.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.routes.layers.dependencies import Flags, insert_turn

LARGEST_PRICE_EXPONENT = 300.0
"""Beyond this a price is out of the question anyway, and sums of it must not overflow."""


class Fabric(NamedTuple):
    """The ends of each link, the terminals, and the links that leave and enter each node."""

    tail: Ints
    head: Ints
    terminals: Ints
    out_first: Ints
    leaving: Ints
    in_first: Ints
    entering: Ints


class Turns(NamedTuple):
    """All turns from a link to the next, how many entries make each, and an order of the links.

    The turn from link a to b is `first[a] + slot[b]`. `seen` is room for a search. If `acyclic`,
    turns never close a cycle.
    """

    acyclic: bool
    slot: Ints
    held: Ints
    wanted: Ints
    first: Ints
    into_first: Ints
    into: Ints
    uses: Ints
    present: Flags
    rank: Ints
    seen: Ints


class Tables(NamedTuple):
    """The link by which each node sends on to each terminal [terminals, nodes], and its traffic.

    `amount` and `pairs` are what passes a node for a terminal, its own included, and of how many
    pairs; `load` is that of each link.
    """

    link: Ints
    amount: Floats
    pairs: Ints
    load: Floats


@njit(cache=True)
def tables_in_order(order: Ints, fabric: Fabric) -> Ints:
    """Return tables whose ways go forward in an order; NOTHING where a node has no way.

    Links are read from the last to the first. A node takes the first link that leads on, and then
    one that is shorter while no other node sends over it.
    """
    nodes = len(fabric.out_first) - 1
    table = np.full((len(fabric.terminals), nodes), NOTHING, dtype=np.int64)
    for row in range(len(fabric.terminals)):
        end, mine = fabric.terminals[row], table[row]
        hops = np.full(nodes, nodes, dtype=np.int64)
        used = np.zeros(nodes, dtype=np.int64)
        hops[end] = 0
        for place in range(len(order) - 1, -1, -1):
            link = order[place]
            node, on = fabric.tail[link], fabric.head[link]
            if used[node] > 0 or hops[on] + 1 >= hops[node]:
                continue
            if mine[node] != NOTHING:
                used[fabric.head[mine[node]]] -= 1
            mine[node], hops[node] = link, hops[on] + 1
            used[on] += 1
    return table


@njit(cache=True)
def fill_tables(tables: Tables, fabric: Fabric, turns: Turns, demand: Floats) -> None:
    """Send the demand [sources, destinations] by empty tables, and count the turns."""
    for row in range(len(fabric.terminals)):
        end, mine = fabric.terminals[row], tables.link[row]
        for source in range(len(fabric.terminals)):
            at, amount = fabric.terminals[source], demand[source, row]
            while amount > 0 and at != end:
                tables.amount[row, at] += amount
                tables.pairs[row, at] += 1
                tables.load[mine[at]] += amount
                at = fabric.head[mine[at]]
        for node in range(len(mine)):
            if tables.pairs[row, node] > 0 and fabric.head[mine[node]] != end:
                turn = _turn(mine[node], mine, fabric, turns)
                turns.uses[turn] += 1
                turns.present[turn] = True


@njit(cache=True)
def respond(
    tables: Tables,
    fabric: Fabric,
    turns: Turns,
    prices: tuple[Floats, float],
    order: tuple[Ints, Ints],
) -> None:
    """Let nodes change their links if that lowers the potential; terminals and nodes in an order.

    A link that would close a cycle is passed over for the next cheapest one.
    """
    for row in order[0]:
        for node in order[1]:
            if node != fabric.terminals[row] and tables.pairs[row, node] > 0:
                _respond(row, node, tables, fabric, turns, prices)


@njit(cache=True)
def _respond(
    row: int,
    node: int,
    tables: Tables,
    fabric: Fabric,
    turns: Turns,
    prices: tuple[Floats, float],
) -> None:
    """Give a node the cheapest link to a terminal that closes no cycle."""
    mine, here = tables.link[row], links_from(fabric, node)
    before = mine[node]
    _take_off(row, node, tables, fabric, turns)
    cost = np.empty(len(here))
    for each in range(len(here)):
        cost[each] = _cost(here[each], row, node, tables, fabric, prices)
    most = _cost(before, row, node, tables, fabric, prices) * (1 - 1e-9)
    while True:
        each = int(np.argmin(cost))
        if not cost[each] < most:
            break
        mine[node], cost[each] = here[each], np.inf
        if _put_on(row, node, tables, fabric, turns):
            return
    mine[node] = before
    _put_on(row, node, tables, fabric, turns)


@njit(cache=True)
def links_from(fabric: Fabric, node: int) -> Ints:
    """Return the links that leave a node."""
    return fabric.leaving[fabric.out_first[node] : fabric.out_first[node + 1]]


@njit(cache=True)
def _turn(link: int, mine: Ints, fabric: Fabric, turns: Turns) -> int:
    """Return the turn from a link to that by which its head sends on."""
    return int(turns.first[link] + turns.slot[mine[fabric.head[link]]])


@njit(cache=True)
def _turns_of(row: int, node: int, tables: Tables, fabric: Fabric, turns: Turns) -> Ints:
    """Return the turns that a node's entry makes, with what passes it on no link behind it."""
    mine, pairs, end = tables.link[row], tables.pairs[row], fabric.terminals[row]
    found = np.empty(len(mine) + fabric.in_first[node + 1] - fabric.in_first[node], dtype=np.int64)
    count = 0
    for index in range(fabric.in_first[node], fabric.in_first[node + 1]):
        link = fabric.entering[index]
        before = fabric.tail[link]
        if before != end and mine[before] == link and pairs[before] > 0:
            found[count] = _turn(link, mine, fabric, turns)
            count += 1
    at = node
    while fabric.head[mine[at]] != end:
        if at == node or pairs[at] == 0:
            found[count] = _turn(mine[at], mine, fabric, turns)
            count += 1
        at = fabric.head[mine[at]]
    return found[:count]


@njit(cache=True)
def _take_off(row: int, node: int, tables: Tables, fabric: Fabric, turns: Turns) -> None:
    """Take what passes a node off its way, with the turns that nothing else makes."""
    _shift(row, node, -1, tables, fabric)
    _drop(_turns_of(row, node, tables, fabric, turns), turns)


@njit(cache=True)
def _put_on(row: int, node: int, tables: Tables, fabric: Fabric, turns: Turns) -> bool:
    """Send what passes a node by its link; change nothing, and return False, if that is a cycle."""
    found = _turns_of(row, node, tables, fabric, turns)
    ends, around = (turns.held, turns.wanted), (turns.first, turns.into_first, turns.into)
    for done in range(len(found)):
        turn = found[done]
        new = turns.acyclic and turns.uses[turn] == 0
        if new and not insert_turn(turn, ends, around, turns.present, turns.rank, turns.seen):
            _drop(found[:done], turns)
            return False
        turns.uses[turn] += 1
        turns.present[turn] = True
    _shift(row, node, 1, tables, fabric)
    return True


@njit(cache=True)
def _drop(found: Ints, turns: Turns) -> None:
    for turn in found:
        turns.uses[turn] -= 1
        turns.present[turn] = turns.uses[turn] > 0


@njit(cache=True)
def _shift(row: int, node: int, sign: int, tables: Tables, fabric: Fabric) -> None:
    """Add what passes a node to the links of its way and the nodes behind it, or take it off."""
    mine, end = tables.link[row], fabric.terminals[row]
    amount, pairs = sign * tables.amount[row, node], sign * tables.pairs[row, node]
    at = node
    while at != end:
        tables.load[mine[at]] += amount
        at = fabric.head[mine[at]]
        tables.amount[row, at] += amount
        tables.pairs[row, at] += pairs


@njit(cache=True)
def _cost(
    link: int,
    row: int,
    node: int,
    tables: Tables,
    fabric: Fabric,
    prices: tuple[Floats, float],
) -> float:
    """Return what a node adds to the potential by a link; infinite if it has no way."""
    scale, steepness = prices
    mine, amount, total = tables.link[row], tables.amount[row, node], 0.0
    while True:
        height = min(scale[link] * tables.load[link] - steepness, LARGEST_PRICE_EXPONENT)
        swelling = np.expm1(min(scale[link] * amount, LARGEST_PRICE_EXPONENT))
        total += np.exp(height) * swelling
        at = fabric.head[link]
        if at == fabric.terminals[row]:
            return float(total)
        if at == node or mine[at] == NOTHING:
            return np.inf
        link = mine[at]
