"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.

>>> import alltoall
>>> flow = alltoall.solve("torus:3x3x3")
>>> round(flow.time, 6), round(flow.bound, 6)
(9.0, 9.0)

    topology, problem    the network, and who sends to whom on it
    solve                the best rate, with its proof
    compare              networks and methods side by side
    design               which network to build
    describe             the facts of a topology, and bounds that need no solver
    route, schedule      routes for fabrics that forward; chunks in steps for hosts that do
    failures             the cost of every failure, and routes or schedules ready for it
    lower                files of runtimes and fabrics, proven before they are returned
    run, wrap            real bytes between ranks; an unmodified MPI program
    simulate             predicted times
    fft3d, moe           real workloads, checked and timed
    verify               an independent check of any file or answer
    report, reproduce    an HTML page; the figures of the paper
    load                 any file, as the noun that it holds
    Solver, fair_rates   one demand after the other; several jobs at once

Names are imported when used, so `import alltoall` loads nothing, and `alltoall.verify` no solver:
the command line must react to Ctrl-C before it imports anything slow.
"""

import importlib as _importlib

__version__ = "0.1.0"

_MODULE_OF = {}
with open(__file__ + "i", encoding="utf-8") as _stub:  # noqa: PTH123 (pathlib takes longer)
    for _words in map(str.split, _stub):
        if _words[:1] == ["from"]:
            _MODULE_OF[_words[3]] = _words[1]
"""The module of each public name: the stub says so once, for us and for checkers of types."""

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; a function then checks its arguments."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_importlib.import_module(_MODULE_OF[name]), name)
    if type(found) is type(__getattr__):
        found = _importlib.import_module("alltoall.ir.arguments").export(found, name)
        found.__doc__ = _importlib.import_module("alltoall.options").documented(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *_MODULE_OF})
