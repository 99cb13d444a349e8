"""A hybrid cluster: what an all-to-all is worth inside a host, across hosts, and in groups.

    python examples/hybrid_cluster.py

Two hosts of eight GPUs with a fast fabric inside and few NICs outside. Across hosts the NICs are
the limit; groups that stay inside a host do not feel them.
"""

import alltoall

SPEC = "cluster:hosts=2,gpus=8,inside=nvswitch:3600,nics=4x400,outside=ring"


def main() -> None:
    """Solve for all GPUs, and for groups of one host and across."""
    topology = alltoall.topology(SPEC)
    gpus = topology.terminals.tolist()
    half = len(gpus) // 2
    groups = {
        "all sixteen": [gpus],
        "one group per host": [gpus[:half], gpus[half:]],
        "pairs across hosts": [list(pair) for pair in zip(gpus[:half], gpus[half:], strict=True)],
    }
    for name, members in groups.items():
        flow = alltoall.solve(topology, groups=members)
        peers = len(members[0]) - 1
        print(f"{name:20} {peers / flow.time:8.1f} Gbit/s per GPU, gap {max(flow.gap, 0):.0e}")


if __name__ == "__main__":
    main()
