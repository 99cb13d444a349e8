"""Start and synchronise the ranks of routes: `python -m alltoall.testbed.conduct JOB`.

One process outside the fabric becomes a rank in every terminal's namespace by forking, so that
Python and numpy are loaded once. All start together; an iteration takes as long as its slowest
rank. Link counters are read before the first and after the last iteration of a size, so that every
byte is accounted for.
"""

import json
import os
import select
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from alltoall.ir.files.json.values import read_json, write_json
from alltoall.runtime.metered import MOST_STEAL, steal_seconds
from alltoall.testbed.flows import Rank
from alltoall.testbed.inside import enter
from alltoall.testbed.namespaces import Bed, Counted, bed_called, counted

REPEATS = 2
"""Most attempts, as a multiple of the requested iterations."""

START_SECONDS = 0.02
"""Notice of the common start, in seconds."""

QUIET_SECONDS = 5.0
"""Time for the last acknowledgements to leave the queues before counters are read."""

GATHER_SECONDS = 0.002
"""Interval of collecting answers: waking for each would take time from working ranks."""

TOLD_BYTES = 1 << 22
"""The longest message of a rank."""


class Late(Exception):  # noqa: N818 - what follows is a report
    """Raised at the timeout, or if a rank is stuck; `answers` are the ranks' last."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        super().__init__("not done in time")
        self.answers = answers


class RankLines:
    """The lines to all ranks."""

    def __init__(self, job: dict[str, Any], deadline: float) -> None:
        self.lines: list[socket.socket] = []
        self.deadline = deadline
        for rank, namespace in enumerate(job["namespaces"]):
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for end in (here, there):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, TOLD_BYTES)
            if os.fork() == 0:
                for line in (here, *self.lines):
                    line.close()
                _be_rank(job, rank, namespace, there)
            there.close()
            self.lines.append(here)

    def ask(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a command to all ranks and return their answers."""
        for line in self.lines:
            line.send(json.dumps(order).encode())
        return self.answers()

    def answers(self) -> list[dict[str, Any]]:
        """Return the next answer of each rank; if one is stuck or late, stop all others."""
        found: dict[int, dict[str, Any]] = {}
        self._gather(found, self.deadline)
        if len(found) < len(self.lines) or _stuck(found):
            waited = [line for rank, line in enumerate(self.lines) if rank not in found]
            for line in waited:
                line.send(json.dumps({"do": "stop"}).encode())
            self._gather(found, time.monotonic() + QUIET_SECONDS)
            raise Late([found.get(rank, {}) for rank in range(len(self.lines))])
        return [found[rank] for rank in range(len(self.lines))]

    def _gather(self, found: dict[int, dict[str, Any]], deadline: float) -> None:
        while len(found) < len(self.lines) and not (_stuck(found) and deadline == self.deadline):
            waited = {
                line.fileno(): rank for rank, line in enumerate(self.lines) if rank not in found
            }
            poll = select.poll()
            for file in waited:
                poll.register(file, select.POLLIN)
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                return
            time.sleep(GATHER_SECONDS)
            for file, _ in ready:
                rank = waited[file]
                said = self.lines[rank].recv(TOLD_BYTES)
                if not said:
                    raise SystemExit(
                        f"rank {rank} ended early: what it said is above, or else it was killed, "
                        "or the fabric was removed (testbed down) while this ran"
                    )
                found[rank] = json.loads(said)


def _stuck(found: dict[int, dict[str, Any]]) -> bool:
    return any("missing" in told for told in found.values())


def _be_rank(job: dict[str, Any], rank: int, namespace: str, line: socket.socket) -> None:
    """Become a rank; never returns."""
    code = 1
    try:
        enter(namespace)
        Rank(job, rank, line).serve()
        code = 0
    except BrokenPipeError:
        pass  # nobody listens any more, and why is told by who does not
    except BaseException as error:
        sys.stderr.write(f"rank {rank}: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)


def main(words: list[str]) -> None:
    """Run the job in a file, and write the measurements beside it."""
    job: Any = read_json(Path(words[0]))
    bed = bed_called(job["bed"])
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {"rows": rows, "missing": []}
    ranks = RankLines(job, time.monotonic() + job["timeout"])
    try:
        ranks.answers()
        ranks.ask({"do": "connect"})
        for index in range(len(job["sizes"])):
            ranks.ask({"do": "size", "index": index})
            rows.append(_measured(bed, job, ranks))
            if rows[-1]["wrong"]:
                break
    except Late as late:
        result["missing"] = [row for told in late.answers for row in told.get("missing", [])]
        result["late"] = "timeout" if time.monotonic() >= ranks.deadline else "silence"
    write_json(Path(job["results"]), result)


def _measured(bed: Bed, job: dict[str, Any], ranks: RankLines) -> dict[str, Any]:
    """Repeat an exchange until enough of them were undisturbed, or often enough."""
    before = _settled(bed)
    runs: list[dict[str, float]] = []
    wrong: list[str] = []
    wanted = job["iterations"]
    done = 0
    while not wrong and done < job["warmup"] + REPEATS * wanted:
        run, wrong = _once(ranks)
        done += 1
        if done > job["warmup"]:
            runs.append(run)
        if sum(run["steal"] <= MOST_STEAL for run in runs) >= wanted:
            break
    after = _settled(bed)
    # The least disturbed, should there not be enough undisturbed ones.
    taken = sorted(runs, key=lambda run: run["steal"] > MOST_STEAL and run["steal"])[:wanted]
    middle = {
        key: statistics.median(run[key] for run in taken) if taken else 0.0
        for key in ("seconds", "steal")
    }
    return {
        **middle,
        "exchanges": done,
        "wrong": wrong,
        "sent": [[*key, after.sent[key] - before.sent[key]] for key in sorted(after.sent)],
        "retransmits": after.retransmits - before.retransmits,
        "drops": after.drops - before.drops,
    }


def _once(ranks: RankLines) -> tuple[dict[str, float], list[str]]:
    """Exchange once, with nothing else between the common start and the last end."""
    ranks.ask({"do": "reset"})
    start = time.monotonic_ns() + int(START_SECONDS * 1e9)
    stolen = steal_seconds()
    told = ranks.ask({"do": "go", "at": start})
    seconds = (max(each["ended"] for each in told) - start) * 1e-9
    run = {"seconds": seconds, "steal": (steal_seconds() - stolen) / seconds}
    return run, [line for each in ranks.ask({"do": "check"}) for line in each["wrong"]]


def _settled(bed: Bed) -> Counted:
    """Read the link counters once the queues are empty."""
    deadline = time.monotonic() + QUIET_SECONDS
    while (found := counted(bed)).queued and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
