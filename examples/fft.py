"""A 3D FFT whose all-to-all goes by a schedule, beside the MPI library's own.

    python examples/fft.py [GRID] [SPEC]

The result is compared with numpy's, every shard to the bit. On one machine the links are memory;
as root on Linux, `alltoall workload fft3d --rate 40mbit` has emulated ones.
"""

import sys

import alltoall


def main(grid: str, spec: str) -> None:
    """Transform, and print the three bands of both ways."""
    report = alltoall.fft3d(grid, schedule=spec, iterations=3)
    print(f"{grid} points on {report.ranks} ranks, checked against {report.checked}")
    for row in report.rows:
        bands = row.fft2d_pack, row.alltoall, row.unpack_fft1d
        words = ", ".join(f"{band * 1e3:.2f}" for band in bands)
        print(f"{row.way:9} {words} ms (2D FFT and pack, all-to-all, unpack and 1D FFT)")


if __name__ == "__main__":
    words = [*sys.argv[1:], "16x12x8", "ring:4"]
    main(words[0], words[1] if len(sys.argv) > 2 else "ring:4")
