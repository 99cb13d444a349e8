"""Print what the unit of capacity does to schedules: nothing, or something went wrong.

Times are multiplied by the scale, so all numbers of a row have to be equal; `*` marks a schedule
that is called optimal.

    python benchmarks/scaling.py --specs bipartite:2x3 genkautz:n=8,d=2
"""

import argparse

from alltoall import Problem
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import scale_capacities
from alltoall.topologies.spec import build

SCALES = (1.0, 1e-9, 1e3, 3e6, 1e7, 1e8, 2.5e10, 1e12)


def cell(spec: str, scale: float) -> str:
    """Return time times scale of a schedule, with a mark if it is called optimal."""
    found = find_schedule(
        Problem.all_to_all(scale_capacities(build(spec), scale)), "tsmcf", ScheduleSettings()
    )
    mark = "*" if found.status == "optimal" else " "
    return f"{found.schedule.time * scale:.6g}{mark}"


def main() -> None:
    """Print one line per topology."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    specs = ["bipartite:2x3", "bipartite:3x4", "genkautz:n=8,d=2"]
    parser.add_argument("--specs", nargs="+", default=specs)
    options = parser.parse_args()
    print(f"{'capacity of a link':<20}" + "".join(f"{scale:>11g}" for scale in SCALES))
    for spec in options.specs:
        print(f"{spec:<20}" + "".join(f"{cell(spec, scale):>11}" for scale in SCALES), flush=True)


if __name__ == "__main__":
    main()
