"""Sixty-four GPUs: which of three fabrics, and the files for it.

    python examples/sixty_four_gpus.py [FOLDER]

Eight hosts of eight GPUs each, 4 NICs of 400 Gbit/s a host. Three ways to join the hosts are
compared by their certified all-to-all rate per GPU; the flow of the best is saved and verified.
"""

import sys
from pathlib import Path

import alltoall

OUTSIDES = ("genkautz:d=4", "torus:2x4", "ring")


def main(folder: Path) -> None:
    """Compare, then save the best."""
    times = {}
    for outside in OUTSIDES:
        spec = f"cluster:hosts=8,gpus=8,inside=nvswitch:3600,nics=4x400,outside={outside}"
        flow = alltoall.solve(spec, gap=1e-3)
        times[spec] = flow.time
        rate = 63 / flow.time
        print(f"{outside:14} {rate:7.1f} Gbit/s per GPU, gap {max(flow.gap, 0):.0e}")
    best = min(times, key=times.__getitem__)
    path = folder / "gpus.flow.npz"
    alltoall.solve(best, gap=1e-3).save(path)
    outside = best.partition("outside=")[2]
    print(f"best: {outside}; its flow is {alltoall.verify(path).kind}, verified")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
