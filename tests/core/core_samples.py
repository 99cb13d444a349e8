"""Valid arguments of every export of the core, and the bad arrays that they are turned into.

    python tests/core/core_samples.py CORE.so

calls every export with each of its bad arguments, in a process that may crash. It prints the name
of an export before it calls that, and every bad argument that was not refused.
"""

import faulthandler
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Arguments = dict[str, Any]
Call = tuple[Callable[..., Any], Arguments]

SECONDS = 60
"""A call that does not return by then is a failure."""

REFUSED = (TypeError, ValueError)
"""What a bad argument may raise."""

FREE = {
    ("LiftAnnealing", "single"), ("FluidFlows", "rounds"),
    ("FairMessages", "waits"), ("PrimalDual", "link_class"), ("update_batch", "link_class"),
    ("trace_paths", "paths"),
}  # fmt: skip
"""Arrays of integers that are no indices, or may be as large as they like."""

WORK = {("improve_order", "moves")}
"""Numbers that say how much a call does."""


def samples() -> dict[str, Call]:
    """Return a call of every export, with arguments that it takes."""
    from alltoall import core

    every, ones, links = np.arange(3), np.ones(4), np.arange(4)
    tail, head = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 1])
    graph = core.Graph(3, tail, head)
    bounds, square, flows = np.array([0, 1, 2, 3]), np.ones((3, 3)) - np.eye(3), np.ones((3, 4))
    of_graph: Arguments = {"nodes": 3, "tail": tail, "head": head}
    of_order: Arguments = {
        "graph": graph, "order": links, "blocks": np.array([0, 4]), "settled": 3, "priced": links,
        "priced_links": 4, "copies": every[None],
    }  # fmt: skip
    chunks: Arguments = {"where": graph, "start": every, "end": np.roll(every, -1)}
    grouped: Arguments = chunks | {"first": bounds}
    table = np.array([[0, -1], [1, -1], [2, -1]], np.int32)
    placed: Arguments = {"table": table, "load": ones.copy()}
    budgets: Arguments = {"budget": ones, "share": ones, "history": ones * 0}
    listed: Arguments = {
        "path_start": bounds, "link": every, "low": every[:2], "high": every[1:], "links": 4,
        "phases": 1, "size": ones[:2], "order": every[:2], "begin": 0, "most": 9,
        "load": ones.copy(), "path": every[:2].copy(), "phase": np.array([0, -1]),
    }  # fmt: skip
    starts: Arguments = {"graph": graph, "lengths": ones, "starts": every}
    groups: Arguments = {"graph": graph, "source": every, "wanted": square}
    rows = bounds, every, ones[:3]
    wires: Arguments = {
        "nodes": 4, "fixed": np.array([[0, 1]]), "ends": np.array([[0, 1], [1, 2], [2, 3], [3, 0]]),
        "directed": True, "turns": False, "panel": np.zeros(4, np.int64), "price": np.ones((4, 4)),
        "budget": np.inf, "fine": 1.0, "weight": ones, "demand": np.ones((4, 4)),
        "failures": False, "even": False, "seed": 0,
    }  # fmt: skip
    lift: Arguments = {
        "bases": 1, "ports": 2, "m": 5, "k": 1, "power": np.array([1]),
        "involutions": np.array([0]), "arcs": np.array([[0, 0, 1], [0, 0, 2]]),
        "places": np.array([[0, -1], [1, -1]]),
        "single": np.zeros(2, np.int64), "seed": 0,
    }  # fmt: skip
    legs: Arguments = {
        "size": ones[:2], "first": np.array([0, 1, 3]), "begin": bounds, "link": every,
        "pace": ones[:3], "quota": 1.0, "shortest": 0.0,
    }  # fmt: skip
    shared: Arguments = {
        "start": bounds, "resource": np.array([0, 1, 0]), "capacity": ones[:2], "weight": ones[:3]
    }  # fmt: skip
    fluid: Arguments = shared | {
        "part": ones[:3], "rounds": np.ones(3, np.int64), "begin": ones[:3], "pause": 0.0,
        "window": 0.0,
    }  # fmt: skip
    sent: Arguments = shared | {
        "size": ones[:3], "first": bounds, "waits": np.array([1, 1, 2]),
        "follower_start": np.array([0, 1, 1, 1]), "follower": np.array([2]),
        "successor": np.array([-1, -1, -1]), "sender": np.zeros(3, np.int64), "latency": ones[:3],
        "overhead": ones[:3], "sender_free": ones[:1],
    }  # fmt: skip
    turned: Arguments = {
        "turns": core.Graph(3, every[:2], every[1:]), "start": np.array([0, 2, 3]),
        "turn": np.array([0, 1, 0]),
    }  # fmt: skip
    turns = core.RouteTurns(**turned)
    sifted: Arguments = {
        "turns": turns,
        "which": every[:2],
        "weight": ones[:2],
        "rank": np.arange(3.0),
    }
    sifting = core.LinkSifting(**sifted)
    channels: Arguments = {
        "order": links.copy(), "graph": graph, "terminals": every[None],
        "lengths": np.ones(4, np.float32), "wanted": np.ones((3, 3), np.float32),
    }  # fmt: skip
    forwarding: Arguments = {
        "graph": graph, "terminals": every[:2], "table": np.array([[-1, 1, 2], [0, -1, 2]]),
        "demand": np.array([[0.0, 1.0], [1.0, 0.0]]), "order": None,
    }  # fmt: skip
    tables = core.ForwardingTables(**forwarding)
    steps: Arguments = groups | {
        "link_class": np.array([0, 1, 2, 3]), "first": np.array([0, 3]), "size": ones[:3],
        "capacity": ones[:3], "share": ones[:3], "flow": flows, "potential": np.zeros((3, 3)),
        "price": ones[:3],
    }  # fmt: skip
    method = core.PrimalDual(**steps)
    sizes: Arguments = {"flow": ones, "potential": ones[:3], "price": ones[:3]}
    method.set_steps(**sizes)
    annealing, lifting = core.Annealing(**wires), core.LiftAnnealing(**lift)
    cooling: Arguments = {"temperatures": ones}
    scheduler, fluids = core.ListScheduler(**legs), core.FluidFlows(**fluid)
    messages, filling = core.FairMessages(**sent), core.LayerFilling(turns)
    breaking = core.CycleBreaking(turns)
    return {
        "Graph": (core.Graph, of_graph),
        "LinkOrder": (core.LinkOrder, of_order),
        "most_hops": (core.most_hops, grouped),
        "respond": (core.respond, grouped | placed | {
            "size": ones[:3], "mean_size": ones[:3], "scale": ones, "steepness": 1.0,
            "together": 2, "threads": 2,
        }),
        "reroute": (core.reroute, chunks | placed | budgets | {
            "size": ones[:3], "order": every, "begin": 0, "most": 9, "pressure": 1.0,
            "free_cost": 0.0,
        }),
        "choose_within": (core.choose_within, listed | budgets | {"fill": 0.5, "pressure": 1.0}),
        "distances": (core.distances, starts),
        "add_tree_flows": (core.add_tree_flows, starts | {"amount": square, "flows": flows.copy()}),
        "disjoint_paths": (core.disjoint_paths, {"graph": graph, "start": 0, "goals": every}),
        "simple_paths": (core.simple_paths, {
            "graph": graph, "start": 0, "goals": every, "hops": square, "slack": 2,
            "most_paths": 9, "most_links": 99,
        }),
        "tree_paths": (core.tree_paths, {
            "graph": graph, "lengths": ones, "begin": every, "end": every[::-1]
        }),
        "trace_paths": (core.trace_paths, {
            "graph": graph, "begin": every, "end": np.roll(every, 1), "size": ones[:3],
            "row": every, "volumes": flows.copy(), "paths": np.full((3, 3), -1),
        }),
        "split_flows": (core.split_flows, {
            "graph": graph, "begin": every, "flow": rows,
            "wanted": (bounds, np.array([1, 2, 0]), ones[:3]),
        }),
        "make_exact": (core.make_exact, groups | {
            "lengths": ones, "flows": flows.copy(), "threads": 2
        }),
        "find_level": (core.find_level, {"target": ones, "slope": ones, "width": ones}),
        "update_batch": (core.update_batch, groups | {
            "link_class": links, "unit_cost": ones, "multiplier": ones / 4, "slope": ones,
            "weight": ones[:3], "flows": flows.copy(), "time": ones, "cuts": np.array([0, 2, 3]),
            "damping": 1.0, "threads": 2,
        }),
        "PrimalDual": (core.PrimalDual, steps),
        "PrimalDual.price": (lambda: method.price, {}),
        "PrimalDual.set_steps": (method.set_steps, sizes),
        "PrimalDual.restart": (method.restart, {}),
        "PrimalDual.step_flows": (method.step_flows, {"keep": 0.5, "threads": 2}),
        "PrimalDual.step_prices": (method.step_prices, {"load": np.ones(5), "keep": 0.5}),
        "PrimalDual.write_flows": (method.write_flows, {"rows": flows.copy()}),
        "PrimalDual.write_potentials": (method.write_potentials, {"rows": square.copy()}),
        "Annealing": (core.Annealing, wires),
        "Annealing.run": (annealing.run, cooling),
        "Annealing.best": (annealing.best, {}),
        "Annealing.least": (lambda: annealing.least, {}),
        "LiftAnnealing": (core.LiftAnnealing, lift),
        "LiftAnnealing.run": (lifting.run, cooling),
        "LiftAnnealing.best": (lifting.best, {}),
        "LiftAnnealing.least": (lambda: lifting.least, {}),
        "LiftAnnealing.is_simple": (lambda: lifting.is_simple, {}),
        "ListScheduler": (core.ListScheduler, legs),
        "ListScheduler.step": (scheduler.step, {}),
        "ListScheduler.done": (lambda: scheduler.done, {}),
        "ListScheduler.steps": (lambda: scheduler.steps, {}),
        "ListScheduler.time": (lambda: scheduler.time, {}),
        "ListScheduler.step_of_leg": (lambda: scheduler.step_of_leg, {}),
        "FluidFlows": (core.FluidFlows, fluid),
        "FluidFlows.advance": (fluids.advance, {"events": 3}),
        "FluidFlows.alive": (lambda: fluids.alive, {}),
        "FluidFlows.now": (lambda: fluids.now, {}),
        "FluidFlows.ends": (lambda: fluids.ends, {}),
        "FairMessages": (core.FairMessages, sent),
        "FairMessages.advance": (messages.advance, {"events": 9}),
        "FairMessages.now": (lambda: messages.now, {}),
        "RouteTurns": (core.RouteTurns, turned),
        "LayerFilling": (core.LayerFilling, {"turns": turns}),
        "LayerFilling.offer": (filling.offer, {"routes": every[:2]}),
        "LayerFilling.rank": (lambda: filling.rank, {}),
        "CycleBreaking": (core.CycleBreaking, {"turns": turns}),
        "CycleBreaking.begin_layer": (breaking.begin_layer, {"level": 0}),
        "CycleBreaking.run": (breaking.run, {"most": 9}),
        "CycleBreaking.layer": (lambda: breaking.layer, {}),
        "LinkSifting": (core.LinkSifting, sifted),
        "LinkSifting.place": (sifting.place, {"part": every, "powers": 0.5 ** np.arange(4.0)}),
        "LinkSifting.renumber": (sifting.renumber, {}),
        "LinkSifting.rank": (lambda: sifting.rank, {}),
        "improve_order": (core.improve_order, channels | {"moves": 9, "seed": 0}),
        "ForwardingTables": (core.ForwardingTables, forwarding),
        "ForwardingTables.respond": (tables.respond, {
            "terminals": every[:2], "nodes": every, "scale": ones, "steepness": 1.0
        }),
        "ForwardingTables.table": (lambda: tables.table, {}),
        "ForwardingTables.load": (lambda: tables.load, {}),
        "grow_lengths": (core.grow_lengths, {
            "graph": graph, "capacity": ones, "starts": every, "wanted": square, "epsilon": 0.1,
            "state": (0, 1.0), "most": 9, "lengths": ones.copy(), "flows": flows.copy(),
        }),
    }  # fmt: skip


def bad_values(name: str, argument: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield bad values of an argument: their names, and whether they must be refused."""
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            for kind, bad, must in bad_values(name, argument, part):
                yield f"{kind} in {place}", (*value[:place], bad, *value[place + 1 :]), must
    elif isinstance(value, np.ndarray):
        yield "text", value.astype(str), True
        yield "one dimension more", value[None], True
        yield "no array", None, argument not in {"price", "demand", "scale"}
        yield "no entries", value[:0], False
        yield "one entry less", value[:-1], False
        yield "one entry more", np.concatenate([value, value[-1:]]), False
        if value.dtype.kind == "i":
            is_index = (name, argument) not in FREE
            big = np.iinfo(value.dtype).max
            for number in (-2, 10**6, big, -big):
                for place in {0, value.size - 1} if value.size else set():
                    bad = value.copy()
                    bad.flat[place] = number
                    yield f"{number} at {place}", bad, is_index
        else:
            for odd in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e30, 1e-30):
                bad = value.copy()
                bad.flat[:1] = odd
                yield f"{odd} first", bad, False
                yield f"{odd} everywhere", np.full_like(value, odd), False
    elif isinstance(value, int | float) and not isinstance(value, bool):
        numbers = (-(2**63), -1, 0, 2**63 - 1, 2**70)
        for each in numbers if isinstance(value, int) else (np.nan, np.inf, -1.0, 0.0, 1e300):
            yield f"{each}", type(value)(each), each == 2**70
        yield "text", "text", True
    else:
        yield "text", "text", True


def main(path: str) -> None:
    """Call every export with bad arguments."""
    from with_core import load

    load(path)
    faulthandler.enable()
    for name in samples():
        print(f"calling {name}", flush=True)
        _, arguments = samples()[name]
        for argument, value in arguments.items():
            for kind, bad, must in bad_values(name, argument, value):
                if (name, argument) in WORK and isinstance(bad, int) and bad > 0:
                    continue
                call, usual = samples()[name]
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                try:
                    call(**usual | {argument: bad})
                except (*REFUSED, MemoryError):
                    continue
                finally:
                    faulthandler.cancel_dump_traceback_later()
                if must:
                    print(f"not refused: {name}, {argument}: {kind}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
