"""Ranks of torch.distributed that share one import of torch, which is most of what they would do.

`gloo_ranks.py MODULE FOLDER RANKS PROGRAM WORD...`: every rank is a fork of this process, which has
imported a module, that runs a program as if it had been called with `FOLDER/store RANK RANKS
WORD...`, and has a log, `FOLDER/RANK.log`. The first that fails ends all.
"""

import os
import runpy
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path


def rank_of(folder: Path, rank: int, ranks: int, program: str, words: list[str]) -> int:
    """Be a rank; return its exit code."""
    with (folder / f"{rank}.log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.argv = [program, str(folder / "store"), str(rank), str(ranks), *words]
    sys.path[0] = str(Path(program).parent)
    try:
        runpy.run_path(program, run_name="__main__")
    except BaseException:  # whatever it is, this process does not go on as its parent does
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0


def main(folder: Path, ranks: int, program: str, words: list[str]) -> int:
    """Fork the ranks and wait for them; return 0 if none fails."""
    started: dict[int, int] = {}
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            os._exit(rank_of(folder, rank, ranks, program, words))
        started[pid] = rank
    while started:
        pid, status = os.wait()
        rank = started.pop(pid)
        if status:
            for other in started:
                os.kill(other, signal.SIGKILL)
            sys.stderr.write((folder / f"{rank}.log").read_text())
            return 1
    return 0


import_module(sys.argv[1])
sys.exit(main(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]))
