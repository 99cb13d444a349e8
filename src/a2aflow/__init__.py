"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.

>>> import a2aflow
>>> problem = a2aflow.Problem.all_to_all(a2aflow.build("torus:3x3x3"))
>>> flow = a2aflow.solve_flow(problem)
>>> round(flow.time, 6), round(flow.bound, 6)
(9.0, 9.0)

The names are those of `a2aflow.api`, which is imported when the first of them is used: the command
line has to hear Ctrl-C before it imports anything that takes long.
"""

import importlib as _importlib

MYPY = False  # What checkers of types take for true; `typing` has it too, but is slow to import.
if MYPY:
    from a2aflow.api import *  # noqa: F403
    from a2aflow.api import __all__ as __all__
del MYPY


def __getattr__(name: str) -> object:
    """Import everything public when some of it is asked for."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    api = _importlib.import_module("a2aflow.api")
    globals().update({each: getattr(api, each) for each in api.__all__}, __all__=api.__all__)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    """List what is public, whether imported yet or not."""
    return sorted({*globals(), *_importlib.import_module("a2aflow.api").__all__})
