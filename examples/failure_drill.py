"""A failure drill: every cable of a fabric once, and which one hurts most.

    python examples/failure_drill.py [SPEC]

Each failure is repaired from the last flow, which takes a moment, and then solved to the optimum.
Both are certified: nobody has to believe that the repair is good enough.
"""

import sys

import alltoall


def main(spec: str) -> None:
    """Cut every cable, repair, solve, and tell."""
    topology = alltoall.build(spec)
    before = alltoall.solve(topology)
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    cables = sorted({tuple(sorted(each)) for each in ends})
    after = {}
    for cable in cables:
        left = alltoall.remove_links(topology, [cable])
        repaired = alltoall.solve(left, last=before, repair=True)
        solved = alltoall.solve(left)
        assert solved.bound <= repaired.time
        after[cable] = repaired.time, solved.time
    worst = max(cables, key=lambda cable: after[cable][1])
    print(f"{spec}: {before.time:.4f} shard times with all {len(cables)} cables")
    print(f"worst cable {worst[0]}-{worst[1]}: {after[worst][1]:.4f} without it")
    print(f"repaired at once: at most {max(repaired for repaired, _ in after.values()):.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hypercube:3")
