"""Signals at chosen moments of a real process; `python tests/cli/shots.py 70` counts what comes.

A process counts the events that Python audits (imports, files opened, objects made from memory)
and sends the signal to itself at one of them: the same moments every time, on any machine.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

CHILD = """
import os, signal, sys
from alltoall.cli import main
number, at = int(sys.argv[1]), int(sys.argv[2])
seen = 0
def count(*_):
    global seen
    seen += 1
    if seen == at:
        signal.raise_signal(number)
leave = os._exit
def last(code):
    global seen
    if seen < at:
        seen = at
        signal.raise_signal(number)
    leave(code)
os._exit = last
sys.argv = ["alltoall", *sys.argv[3:]]
sys.addaudithook(count)
main()
"""
"""A process of its own: number of the signal, the event at which it comes, words.

If there are fewer events, the signal comes with the last thing that the process does.
"""

EVENTS = 30_000
"""About as many as a call has: nine tenths of them are imports."""

WORDS = {
    "topology": "topology torus:3x3 --json",
    "solve": "solve jellyfish:n=10,d=3,seed=1 --json",
    "route": "route jellyfish:n=10,d=3,seed=1 --method single",
    "schedule": "schedule bipartite:2x3",
    "help": "solve --help",
}


@dataclass(frozen=True)
class Shot:
    """What a process said, and how it ended."""

    code: int
    out: str
    err: str

    def verdict(self, number: int, words: str) -> str:
        """Say whether it ended as it must: one line, the code, at most one object."""
        if "Traceback" in self.err or "Exception ignored" in self.err:
            return "traceback"
        if self.code != 128 + number:
            return f"exit {self.code}"
        # On a busy machine progress comes before it.
        said = [line for line in self.err.splitlines() if line.startswith(("stopped", "error"))]
        if len(said) != 1 or said[0].startswith("error"):
            return "silent" if not said else "other lines"
        if "--json" in words:
            json.loads(self.out)
        return "one line"


def default_signals() -> None:
    """Let children start with the signals that a shell in the foreground gives them.

    A background job ignores Ctrl-C, and its children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def shoot(words: str, number: int, at: int) -> Shot:
    """Run words and send a signal at an event."""
    command = [sys.executable, "-c", CHILD, str(number), str(at), *words.split()]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=os.environ
    )
    return Shot(done.returncode, done.stdout, done.stderr)


def main() -> None:
    """Shoot at seeded moments of every verb, and print what came of it."""
    default_signals()
    counts: Counter[str] = Counter()
    generator = random.Random(0)
    for _ in range(int(sys.argv[1])):
        words = generator.choice(list(WORDS.values()))
        number = generator.choice([signal.SIGINT, signal.SIGTERM])
        shot = shoot(words, number, generator.randint(1, EVENTS))
        verdict = shot.verdict(number, words)
        counts[verdict] += 1
        if verdict != "one line":
            print(words, number, shot, file=sys.stderr)
    print(", ".join(f"{verdict}: {count}" for verdict, count in counts.most_common()))


if __name__ == "__main__":
    main()
