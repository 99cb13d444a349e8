"""`alltoall testbed`: a fabric of network namespaces, made, looked at, cut, and removed."""

import os
import sys
from pathlib import Path
from typing import Any

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import show
from alltoall.errors import UsageError
from alltoall.ir.files.text import is_file
from alltoall.ir.quantities import bytes_per_second, rate_in_words
from alltoall.ir.topology import Topology
from alltoall.loading import load
from alltoall.testbed import namespaces
from alltoall.testbed.launch import ranks_on
from alltoall.testbed.namespaces import (
    DEFAULT_NAME,
    Bed,
    bed_called,
    beds,
    counted,
    require_testbed,
)
from alltoall.testbed.report import DEFAULT_RATE
from alltoall.topologies.families import names_file
from alltoall.topologies.given import topology_of


def testbed_verb() -> None:
    """Emulate a network on this machine, with real link rates.

    Every node is a network namespace, every link a pair of virtual devices with a token bucket.
    Needs root on Linux: exit code 5 without.
    """


def up(given: str, *, rate: str = DEFAULT_RATE, fabric: str = DEFAULT_NAME) -> dict[str, Any]:
    """Make a testbed; do nothing if the same one exists.

    Example: alltoall testbed up torus:3x3x3 --rate 20mbit
    """
    require_testbed()
    bed = namespaces.up(_topology(given), bytes_per_second(rate), fabric)
    return {"action": "up", "fabric": _described(bed)}


def status(*, fabric: str | None = None) -> dict[str, Any]:
    """Show the network, cut cables and bytes sent of every testbed.

    Example: alltoall testbed status --json
    """
    require_testbed()
    wanted = beds() if fabric is None else [bed_called(fabric)]
    fabrics = []
    for bed in wanted:
        found = counted(bed)
        numbers = {key: getattr(found, key) for key in ("queued", "drops", "retransmits")}
        fabrics.append({**_described(bed), "bytes": sum(found.sent.values()), **numbers})
    return {"action": "status", "fabrics": fabrics}


def cut(cable: str, *, fabric: str = DEFAULT_NAME) -> dict[str, Any]:
    """Cut a cable, in both directions.

    Example: alltoall testbed cut 0-1
    """
    require_testbed()
    bed = bed_called(fabric)
    left = namespaces.cut(bed, bed.plan.topology.ends_of(cable))
    return {"action": "cut", "fabric": _described(left)}


def mend(*, fabric: str = DEFAULT_NAME) -> dict[str, Any]:
    """Mend all cut cables.

    Example: alltoall testbed mend
    """
    require_testbed()
    return {"action": "mend", "fabric": _described(namespaces.mend(bed_called(fabric)))}


def down(*, fabric: str = DEFAULT_NAME) -> dict[str, Any]:
    """Remove a testbed, and end the processes in it.

    Example: alltoall testbed down
    """
    require_testbed()
    return {"action": "down", "name": fabric, "removed": namespaces.down(fabric)}


def execute(
    command: list[str],
    *,
    node: str | None = None,
    ranks_per_host: str | None = None,
    fabric: str = DEFAULT_NAME,
) -> None:
    """Run a command on a node, or each MPI rank on its own node.

    Example: mpiexec -n 27 alltoall testbed exec -- ./program

    Example: mpiexec -n 54 alltoall testbed exec --ranks-per-host 2 -- ./program
    """
    require_testbed()
    bed = bed_called(fabric)
    terminals = len(bed.plan.topology.terminals)
    prefix = bed.prefix(() if ranks_per_host is None else ranks_on(ranks_per_host, terminals))
    if node is not None and ranks_per_host is not None:
        raise UsageError("a node and ranks per host; expected one of them")
    if node is not None:
        prefix.insert(-1, str(bed.plan.topology.node_of(node)))
    sys.stdout.flush()
    os.execv(prefix[0], [*prefix, *command])


def _tell(found: dict[str, Any], call: VerbCall) -> None:
    show(found, call.json, _lines(found))


def _topology(word: str) -> Topology:
    """Return the topology of a SPEC, or of any file that has one."""
    path = Path(word)
    if names_file(word) and is_file(path):
        found = load(path)
        problem = getattr(found, "problem", None)
        return topology_of(found if problem is None else problem)  # type: ignore[arg-type]
    return topology_of(word)


def _described(bed: Bed) -> dict[str, Any]:
    topology = bed.plan.topology
    return {
        "name": bed.plan.name,
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "rate": bed.plan.bytes_per_second,
        "cut": [topology.link_name(link) for link in bed.cut],
    }


def _lines(found: dict[str, Any]) -> dict[str, str]:
    if "removed" in found:
        gone = "removed" if found["removed"] else "there was none"
        return {found["name"]: gone}
    fabrics = found["fabrics"] if "fabrics" in found else [found["fabric"]]
    if not fabrics:
        return {"": "no testbed; make one by alltoall testbed up SPEC"}
    return {each["name"]: _line(each) for each in fabrics}


def _line(each: dict[str, Any]) -> str:
    said = (
        f"{each['topology']}: {each['nodes']} nodes, {each['links']} links of "
        f"{rate_in_words(each['rate'])}"
    )
    if "bytes" in each:
        said += (
            f"; {each['bytes']:,} bytes sent, {each['queued']:,} queued, {each['drops']} dropped, "
            f"{each['retransmits']} sent again"
        )
    return said + (f"; cut: {', '.join(each['cut'])}" if each["cut"] else "")


up_verb, status_verb, cut_verb, mend_verb, down_verb = (
    verb_of(each, _tell, "json") for each in (up, status, cut, mend, down)
)
exec_verb = verb_of(execute, lambda *_: None)
