"""Ranks of torch.distributed as processes that end with their test."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from alltoall.runtime.processes import Command, grouped

INSTALLED = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(
    not INSTALLED, reason="torch is not installed; pip install '.[torch]'"
)
ON_THIS_MACHINE = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def start(
    program: Path,
    ranks: int,
    words: list[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    module: str = "torch.distributed",
) -> list[str]:
    """Run a program as ranks of gloo, which share a module; return what each of them said."""
    command = [sys.executable, str(Path(__file__).with_name("gloo_ranks.py")), module]
    environment = {**ON_THIS_MACHINE, **os.environ, **(variables or {})}
    with grouped() as group:
        words = [*command, str(folder), str(ranks), str(program), *words]
        group.run([Command(words, environment, folder / "log")], 300, "the test")
    return [(folder / f"{rank}.log").read_text() for rank in range(ranks)]
