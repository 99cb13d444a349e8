"""`torchrun`, but its ranks are forks of one process that has imported torch and its optimizers.

To import them takes several times longer than the few steps of training that a page shows.
"""

import runpy
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch.distributed.run as torchrun

configured: Callable[..., tuple[Any, Any, Any]] = torchrun.config_from_args


def rank(program: str, *words: str) -> None:
    """Run a program as torchrun would."""
    sys.argv = [program, *words]
    runpy.run_path(program, run_name="__main__")


def forked(given: Namespace) -> tuple[Any, Any, Any]:
    """Return what torchrun makes of its words, with a function in the place of a command."""
    config, _, _ = configured(given)
    config.start_method = "fork"
    return config, rank, [given.training_script, *given.training_script_args]


if __name__ == "__main__":
    import_module("torch._dynamo")
    torchrun.config_from_args = forked
    torchrun.main()
