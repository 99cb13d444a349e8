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
        graph: Graph,
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

Rows = tuple[Ints, Ints, Floats]
"""(start, item, value) in compressed rows: links and amounts, or end nodes and demands."""

def distances(graph: Graph, lengths: Floats, starts: Ints, threads: int = 1) -> Floats:
    """Return the distance from each start to each node, [starts, nodes]."""

def add_tree_flows(
    graph: Graph, lengths: Floats, starts: Ints, amount: Floats, flows: Floats, threads: int = 1
) -> None:
    """Send amounts [starts, nodes] down shortest-path trees; add to flows [starts, links]."""

def disjoint_paths(graph: Graph, start: int, goals: Ints) -> tuple[Ints, Ints, Ints]:
    """Return largest sets of link-disjoint paths with fewest links: goals, starts, links."""

def simple_paths(
    graph: Graph,
    start: int,
    goals: Ints,
    hops: Floats,
    slack: int,
    most_paths: int,
    most_links: int,
) -> tuple[Ints, Ints, Ints]:
    """Return for each goal its first simple paths, shortest first: goals, starts, links.

    They have at most `slack` hops more than a shortest one; `hops[g, v]` leads from v to goal g.
    The search stops when all paths together have more than `most_links` links.
    """

def tree_paths(graph: Graph, lengths: Floats, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return a shortest path per pair: starts and links. Sorted pairs share their trees."""

def trace_paths(
    graph: Graph, begin: Ints, end: Ints, size: Floats, row: Ints, volumes: Floats, paths: Ints
) -> None:
    """Trace a path per chunk along the volumes of its row; both arrays are changed in place."""

def split_flows(
    graph: Graph, begin: Ints, flow: Rows, wanted: Rows
) -> tuple[int, Ints, Floats, Ints, Ints]:
    """Split flows into widest paths: a pair that fails or -1, pair, width, starts, links."""

def make_exact(
    graph: Graph, lengths: Floats, source: Ints, wanted: Floats, flows: Floats, threads: int = 1
) -> None:
    """Make flows [groups, links] deliver exactly `wanted` [groups, nodes], in place."""

def find_level(target: Floats, slope: Floats, width: Floats) -> float:
    """Return the level at which the sum of width * max(0, target - slope * level) is 1."""

def update_batch(
    graph: Graph,
    link_class: Ints,
    unit_cost: Floats,
    multiplier: Floats,
    slope: Floats,
    source: Ints,
    weight: Floats,
    wanted: Floats,
    flows: Floats,
    time: Floats,
    cuts: Ints,
    damping: float,
    threads: int = 1,
) -> Floats:
    """Let parts of the groups respond to prices, in place; return [parts, classes + 1].

    These are the changes of the times of classes and, last, the sum of demand times distance.
    """

class PrimalDual:
    """The iterates of the primal-dual method: flows, potentials, prices, and their anchors.

    Classes of links are in the order of their budgets; those of budget b begin at `first[b]`.
    """

    def __init__(
        self,
        graph: Graph,
        link_class: Ints,
        first: Ints,
        size: Floats,
        capacity: Floats,
        source: Ints,
        wanted: Floats,
        share: Floats,
        flow: Floats,
        potential: Floats,
        price: Floats,
    ) -> None: ...
    @property
    def price(self) -> Floats:
        """A copy of the price of each class."""

    def set_steps(self, flow: Floats, potential: Floats, price: Floats) -> None:
        """Set the step sizes per link, per node and per class."""

    def restart(self) -> None:
        """Make the present iterate the anchor."""

    def step_flows(self, keep: float, threads: int = 1) -> Floats:
        """Step flows and potentials; return the loads and, last, the squared length of the step."""

    def step_prices(self, load: Floats, keep: float) -> float:
        """Step the prices by these loads; return the squared length of the step."""

    def write_flows(self, rows: Floats) -> None:
        """Write the flows, [groups, links]."""

    def write_potentials(self, rows: Floats) -> None:
        """Write the potentials, [groups, nodes]."""

class Annealing:
    """Simulated annealing of a wiring: two cables exchange an end, one move at each temperature.

    `fixed` cables stay; those in `ends` exchange ends with others of the same `panel`, and may be
    turned round if that is asked for. The cost is the sum of demand times distance, the mean sum of
    distances after `failures` of one cable, or the sum of distances, in which a pair at distance k
    costs the first k weights; and no less than the norm of link loads if these are to be `even`.
    Prices above the budget are fined. Equal seeds give equal results.
    """

    def __init__(
        self,
        nodes: int,
        fixed: Ints,
        ends: Ints,
        directed: bool,
        turns: bool,
        panel: Ints,
        price: Floats | None,
        budget: float,
        fine: float,
        weight: Floats,
        demand: Floats | None,
        failures: bool,
        even: bool,
        seed: int,
    ) -> None: ...
    def run(self, temperatures: Floats) -> None: ...
    def best(self) -> Ints: ...
    @property
    def least(self) -> float: ...

class LiftAnnealing:
    """Simulated annealing of a lift: base arcs get other voltages, or two exchange heads.

    Rows of `arcs` are tail, head and voltage. `places` are where an arc stands among the ports of
    all base nodes, and its way back, or -1. A `single` arc is its own way back. The cost is the sum
    of the distances from one copy of every base node.
    """

    def __init__(
        self,
        bases: int,
        ports: int,
        m: int,
        k: int,
        power: Ints,
        involutions: Ints,
        arcs: Ints,
        places: Ints,
        single: Ints,
        seed: int,
    ) -> None: ...
    def run(self, temperatures: Floats) -> None: ...
    def best(self) -> Ints: ...
    @property
    def least(self) -> float: ...
    @property
    def is_simple(self) -> bool: ...

class ListScheduler:
    """Chunks that are sent step by step, the most urgent first; paths are rows of legs.

    Chunk c has the legs `first[c]` to `first[c + 1] - 1`, leg g the links at `begin[g]` to
    `begin[g + 1] - 1` of `link`. A chunk takes size times pace on a link.
    """

    def __init__(
        self,
        size: Floats,
        first: Ints,
        begin: Ints,
        link: Ints,
        pace: Floats,
        quota: float,
        shortest: float,
    ) -> None: ...
    def step(self) -> None:
        """Send the chunks of the next step."""

    @property
    def done(self) -> bool: ...
    @property
    def steps(self) -> int: ...
    @property
    def time(self) -> float: ...
    @property
    def step_of_leg(self) -> Ints: ...

class FluidFlows:
    """Flows with max-min fair rates, from event to event.

    Flow f uses the resources `resource[start[f]:start[f + 1]]`. It sends `part[f]` bytes in each of
    its rounds, with a pause in between. Events within a window count as one, at its end.
    """

    def __init__(
        self,
        start: Ints,
        resource: Ints,
        capacity: Floats,
        weight: Floats,
        part: Floats,
        rounds: Ints,
        begin: Floats,
        pause: float,
        window: float,
    ) -> None: ...
    def advance(self, events: int) -> None:
        """Go on for so many events."""

    @property
    def alive(self) -> int:
        """How many flows have not ended."""

    @property
    def now(self) -> float: ...
    @property
    def ends(self) -> Floats: ...

class FairMessages:
    """Messages that wait for others, and whose parts share resources at max-min fair rates.

    Message m has the parts `first[m]` to `first[m + 1] - 1`. It begins after `waits[m]` releases,
    the first of them at the start, once its sender has spent the overhead. Its followers
    `follower[follower_start[m]:follower_start[m + 1]]` are released when it arrives, its successor
    when it has left.
    """

    def __init__(
        self,
        start: Ints,
        resource: Ints,
        capacity: Floats,
        weight: Floats,
        size: Floats,
        first: Ints,
        waits: Ints,
        follower_start: Ints,
        follower: Ints,
        successor: Ints,
        sender: Ints,
        latency: Floats,
        overhead: Floats,
        sender_free: Floats,
    ) -> None: ...
    def advance(self, events: int) -> bool:
        """Go on for so many events; return whether all messages have arrived."""

    @property
    def now(self) -> float: ...

Singles = NDArray[np.float32]

class RouteTurns:
    """The turns of routes, as a graph whose nodes are links: from the held to the wanted link.

    They are sorted by the held link. Route r makes `turn[start[r]:start[r + 1]]`.
    """

    def __init__(self, turns: Graph, start: Ints, turn: Ints) -> None: ...

class LayerFilling:
    """A layer that takes routes unless their turns close a cycle."""

    def __init__(self, turns: RouteTurns) -> None: ...
    def offer(self, routes: Ints) -> NDArray[np.uint8]:
        """Offer routes in order; return 1 for each that is taken."""

    @property
    def rank(self) -> Ints:
        """The place of each link in an order in which all turns go forward."""

class CycleBreaking:
    """Layers by moving the routes of the rarest turn of each cycle to the next layer."""

    def __init__(self, turns: RouteTurns) -> None: ...
    def begin_layer(self, level: int) -> None: ...
    def run(self, most: int) -> bool:
        """Break up to `most` cycles; return whether the layer has none left."""

    @property
    def layer(self) -> Ints: ...

class LinkSifting:
    """Links that are put where the routes over them gain most.

    Each of the routes `which` makes a turn at least. One that goes backward at k places counts
    `powers[k]` of its weight.
    """

    def __init__(self, turns: RouteTurns, which: Ints, weight: Floats, rank: Floats) -> None: ...
    def place(self, part: Ints, powers: Floats) -> None: ...
    def renumber(self) -> None:
        """Give the links whole numbers again, in their order."""

    @property
    def rank(self) -> Floats: ...

def improve_order(
    order: Ints,
    graph: Graph,
    terminals: Ints,
    lengths: Singles,
    wanted: Singles,
    moves: int,
    seed: int,
) -> float:
    """Give so many channels, drawn at random, their best place in an order, in place.

    Return the sum of demand times the shortest path forward. `wanted` is by destination and source;
    terminal t is at the nodes `terminals[:, t]`.
    """

class ForwardingTables:
    """The link by which each node sends on to each terminal, with its traffic.

    Every pair with demand [sources, destinations] has a path. With an order of the links, in which
    all turns go forward, the turns stay free of cycles.
    """

    def __init__(
        self, graph: Graph, terminals: Ints, table: Ints, demand: Floats, order: Ints | None = None
    ) -> None: ...
    def respond(self, terminals: Ints, nodes: Ints, scale: Floats, steepness: float) -> None:
        """Let nodes take cheaper links to some terminals if that lowers the potential."""

    @property
    def table(self) -> Ints: ...
    @property
    def load(self) -> Floats: ...

def grow_lengths(
    graph: Graph,
    capacity: Floats,
    starts: Ints,
    wanted: Floats,
    epsilon: float,
    state: tuple[int, float],
    most: int,
    lengths: Floats,
    flows: Floats,
) -> tuple[int, float]:
    """Route `wanted` along shortest paths while lengths grow; both arrays change in place.

    The state is the next source and the share of its demand that is left; `most` trees are found.
    """
