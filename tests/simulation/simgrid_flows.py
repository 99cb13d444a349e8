"""Run by the interpreter that has SimGrid: when flows end under its own max-min fair sharing.

The words are a platform and a file of JSON: source, destination, bytes and start of each flow. What
SimGrid adds to pure max-min (TCP's windows, slow start, acknowledgements) is turned off.
"""

import json
import sys
from pathlib import Path

from simgrid import Actor, Comm, Engine, Host, this_actor  # type: ignore[import-not-found]

PURE = (
    "network/model:CM02",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
)
"""What leaves nothing but capacities."""


def main() -> None:
    """Print when each flow ends."""
    platform, asked = sys.argv[1:]
    engine = Engine(["flows", *(f"--cfg={each}" for each in PURE), "--log=root.thres:critical"])
    engine.load_platform(platform)
    ended: dict[int, float] = {}

    def send(index: int, source: str, destination: str, size: int, start: float) -> None:
        this_actor.sleep_for(start)
        Comm.sendto_async(Host.by_name(source), Host.by_name(destination), size).wait()
        ended[index] = engine.clock

    flows = json.loads(Path(asked).read_text())
    for index, flow in enumerate(flows):
        Actor.create(f"flow-{index}", Host.by_name(flow[0]), send, index, *flow)
    engine.run()
    print(json.dumps([ended[index] for index in range(len(flows))]))


if __name__ == "__main__":
    main()
