"""igraph's compiled core alone: its Python package loads all that it could draw with."""

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

CORE = "igraph._igraph"
"""The name of the extension module in the package."""


@cache
def load_core() -> Any:
    """Return the extension module; a later `import igraph` takes the same one."""
    package = None if CORE in sys.modules else find_spec("igraph")
    if package is not None:
        spec = PathFinder.find_spec(CORE, package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            sys.modules[CORE] = core = module_from_spec(spec)
            spec.loader.exec_module(core)
    return sys.modules[CORE]
