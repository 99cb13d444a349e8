"""Print how long whole-chunk schedules take to find, and how near to the certified bound they are.

`above` is the time of the schedule over the certified bound of any all-to-all, less 1; `seconds` is
everything from the topology to the checked schedule, `saved` writing it in the compact form.

    python benchmarks/chunk_schedules.py torus:3x3x3 genkautz:n=100,d=4 torus:8x8x8
"""

import argparse
import tempfile
import time
from pathlib import Path

from alltoall import Problem
from alltoall.flows import SolveSettings
from alltoall.ir.files.artefacts import write_artefact
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.spec import build

SPECS = ["torus:3x3x3", "genkautz:n=32,d=4", "genkautz:n=100,d=4", "torus:8x8x8"]


def measure(spec: str, symmetry: bool) -> str:
    """Return one line of the table."""
    settings = ScheduleSettings(solve=SolveSettings(symmetry=symmetry))
    started = time.perf_counter()
    found = find_schedule(Problem.all_to_all(build(spec)), "tsmcf", settings)
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_artefact(Path(folder) / "schedule.npz", found.schedule)
        saved = time.perf_counter() - started
    schedule = found.schedule
    return (
        f"{spec:28} {schedule.time:12.6g} {max(0.0, schedule.gap):9.4%} "
        f"{schedule.chunks_per_shard:7} {schedule.steps:6} {schedule.sends:10,} "
        f"{seconds:8.2f} {saved:6.2f}  {found.status.value}"
    )


def main() -> None:
    """Print one line per topology; the first call also loads what is compiled."""
    parser = argparse.ArgumentParser(description="Whole-chunk schedules, timed.")
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--no-symmetry", action="store_true", help="solve for all sources at once")
    arguments = parser.parse_args()
    measure("ring:3", True)
    print(
        f"{'topology':28} {'time':>12} {'above':>9} {'chunks':>7} {'steps':>6} {'sends':>10} "
        f"{'seconds':>8} {'saved':>6}  fractional"
    )
    for spec in arguments.specs:
        print(measure(spec, not arguments.no_symmetry), flush=True)


if __name__ == "__main__":
    main()
