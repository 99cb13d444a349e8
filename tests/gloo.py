"""Ranks of torch.distributed as processes that end with their test."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from a2aflow.runtime.processes import Command, grouped

INSTALLED = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(
    not INSTALLED, reason="torch is not installed; pip install 'a2aflow[torch]'"
)
ON_THIS_MACHINE = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def start(
    arguments: list[str],
    ranks: int,
    files: list[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """Run a command as ranks of gloo and return what each of them said."""
    environment = {**ON_THIS_MACHINE, **os.environ, **(variables or {})}
    commands = [
        Command(
            [sys.executable, *arguments, str(folder / "store"), str(rank), str(ranks), *files],
            environment,
            folder / f"{rank}.log",
        )
        for rank in range(ranks)
    ]
    with grouped() as group:
        group.run(commands, 300, "the test")
    return [command.log.read_text() for command in commands]
