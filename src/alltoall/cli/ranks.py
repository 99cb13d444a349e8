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
"""The exit code of ranks that end without one of their own."""

FORWARDING_SECONDS = 0.3
"""How long a launcher has to forward a message: an abort discards what is still on its way."""


@contextmanager
def in_a_team() -> Iterator[dict[str, Any]]:
    """Give `solve` the team that this process is a rank of; all ranks but one end here.

    A rank that fails says why and ends all of them. The one that goes on leaves the others when its
    process ends: what it has to print and save comes before.
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
