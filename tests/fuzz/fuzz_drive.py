"""`make fuzz`: run the fuzzers in processes of their own, save what fails, count.

python tests/fuzz/fuzz_drive.py --seconds 600 --jobs 2 --seed 1
python tests/fuzz/fuzz_drive.py --replay out/fuzz/files-1-17-traceback.json
"""

import argparse
import json
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from fuzz_case import CODES, Case
from fuzz_table import FUZZERS

KINDS = {
    "ok": "inputs",
    "traceback": "tracebacks",
    "crash": "crashes",
    "hang": "hangs",
    "memory": "above 2 GiB",
    "wrong": "wrong answers",
}
"""What may come of an input, and the column that it is counted in; `inputs` counts all of them."""

SILENCE = 900.0
"""Seconds without a word after which a process is taken for stuck, whatever the machine does."""

WORKER = Path(__file__).with_name("fuzz_worker.py")


@dataclass
class Tally:
    """What came of the inputs of one fuzzer, and the failures that were saved."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many inputs were tried."""
        return self.counts.total()


def drive(
    name: str, seed: int, out: Path, inputs: int = 10**9, seconds: float = 1e9, first: int = 0
) -> Tally:
    """Try inputs of a fuzzer; a process that dies is a finding, and another one goes on."""
    out.mkdir(parents=True, exist_ok=True)
    tally = Tally()
    end, index, last = time.monotonic() + seconds, first, first + inputs
    while index < last and time.monotonic() < end:
        words = [name, str(seed), str(index), str(last - index), str(end - time.monotonic())]
        with subprocess.Popen(
            [sys.executable, str(WORKER), *words, str(out)], stdout=subprocess.PIPE
        ) as worker:
            assert worker.stdout is not None
            for line in _lines(worker.stdout):
                index, kind, message = json.loads(line)
                _count(tally, (name, seed, index), kind, message, out)
                index += 1
            code = worker.poll()
            if code is None and select.select([worker.stdout], [], [], 0)[0]:
                code = worker.wait()
            if code is None:
                worker.kill()
                _count(tally, (name, seed, index), "hang", "silent, killed", out)
                index += 1
        if code:
            # A solver that would not stop is left behind by ending the process: not a crash.
            kind = "ok" if code in CODES else "crash"
            _count(tally, (name, seed, index), kind, f"the process ended with {code}", out)
            index += 1
        elif code == 0:
            break
    return tally


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines as they come, until the end, or until nothing has come for too long."""
    while select.select([stream], [], [], SILENCE)[0]:
        line = stream.readline()
        if not line:
            return
        yield line


def _count(tally: Tally, where: tuple[str, int, int], kind: str, message: str, out: Path) -> None:
    """Count an input; beside one that failed, which its process has left, write why."""
    tally.counts[kind] += 1
    saved = out / "{}-{}-{}.json".format(*where)
    if kind == "ok":
        saved.unlink(missing_ok=True)
        return
    saved.with_suffix(".txt").write_text(f"{kind}\n{message}\n")
    tally.failures.append(f"{saved}: {kind}: {message.strip().splitlines()[-1][:300]}")


def table(tallies: dict[str, Tally]) -> str:
    """Return the counts of all fuzzers, and their sum."""
    rows = [["fuzzer", *KINDS.values()]]
    total: Counter[str] = Counter()
    for name, tally in tallies.items():
        rows.append(_row(name, tally.counts))
        total += tally.counts
    rows.append(_row("all", total))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _row(name: str, counts: Counter[str]) -> list[str]:
    return [name, f"{counts.total():,}", *(str(counts[kind]) for kind in KINDS if kind != "ok")]


def main() -> None:
    """Run all fuzzers side by side, print what failed and the table; fail if anything did."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, in all")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all inputs")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where failures go")
    parser.add_argument("--only", nargs="+", choices=FUZZERS, default=list(FUZZERS))
    parser.add_argument("--replay", type=Path, help="try one saved input again, here")
    given = parser.parse_args()
    if given.replay:
        FUZZERS[given.replay.name.split("-")[0]].check(Case.from_bytes(given.replay.read_bytes()))
        return
    share = given.seconds * given.jobs / max(given.jobs, len(given.only))
    with ThreadPoolExecutor(given.jobs) as pool:
        futures = {
            name: pool.submit(drive, name, given.seed, given.out, seconds=share)
            for name in given.only
        }
        tallies = {name: future.result() for name, future in futures.items()}
    for tally in tallies.values():
        print("\n".join(tally.failures), end="\n" if tally.failures else "")
    print(f"seed {given.seed}, {given.seconds:g} s, {given.jobs} processes")
    print(table(tallies))
    sys.exit(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    main()
