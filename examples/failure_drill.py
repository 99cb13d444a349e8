"""A failure drill: every cable of a fabric once, and which one hurts most.

    python examples/failure_drill.py [SPEC]

Routes after each failure are certified: nobody has to believe that they are good enough.
"""

import sys

import alltoall


def main(spec: str) -> None:
    """Cut every cable, reroute, and tell the worst."""
    routes = alltoall.route(spec, method="single")
    found = alltoall.failures(routes)
    worst = found.rows[0]
    if worst.time is None or worst.bound is None:
        print(f"{worst.failure} cuts nodes off: {worst.reason}")
        return
    print(f"{spec}: {found.time:.4f} shard times with all {len(found.rows)} cables")
    print(f"worst {worst.failure}: {worst.time:.4f} without it, proven at least {worst.bound:.4f}")
    print(f"traffic lost without rerouting: {worst.lost:.1%}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hypercube:3")
