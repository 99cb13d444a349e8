"""`mpiexec -n R alltoall solve`: R processes that share out the sources of one solve."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from alltoall.cli.show import FAILURES, described, warn
from alltoall.runtime.team import Ranks, ranks_of_this_job
from alltoall.settings import NotRootRank

FAILED = 1
"""Exit code of ranks without a specific one."""

FORWARDING_SECONDS = 0.3
"""Time for the launcher to forward a message; an abort discards messages in transit."""


@contextmanager
def in_a_team() -> Iterator[dict[str, Any]]:
    """Yield the MPI team of this process for `solve`; all ranks but the first end here.

    A rank that fails prints why and aborts all. The first rank prints and saves before it leaves
    the others.
    """
    team = ranks_of_this_job()
    if team is None:
        yield {}
        return
    try:
        yield {"team": team}
    except NotRootRank:
        team.leave()
        raise typer.Exit(0) from None
    except FAILURES as error:
        _give_up(team, error)
    except Exception as error:
        warn(f"rank {team.rank}: {type(error).__name__}: {error}")
        team.give_up(FAILED)


def _give_up(team: Ranks, error: BaseException) -> None:
    told = described(error)
    warn(f"rank {team.rank} of {team.size}: {told['message']}")
    time.sleep(FORWARDING_SECONDS)
    team.give_up(int(told["code"]))
