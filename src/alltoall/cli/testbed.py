"""`alltoall testbed`: a fabric of network namespaces, made, looked at, cut, and removed."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import AsJson
from alltoall.cli.show import show
from alltoall.ir.quantities import bytes_per_second, rate_in_words
from alltoall.ir.topology import Topology
from alltoall.loading import load
from alltoall.testbed.namespaces import (
    DEFAULT_NAME,
    Bed,
    bed_called,
    beds,
    counted,
    cut,
    down,
    mend,
    require_testbed,
    up,
)
from alltoall.testbed.report import DEFAULT_RATE
from alltoall.topologies.families import names_file
from alltoall.topologies.given import topology_of

Name = Annotated[str, typer.Option(metavar="NAME", help="Name of the testbed.")]


def fabric_verb() -> None:
    """Emulate a network on this machine, with real link rates.

    Every node is a network namespace, every link a pair of virtual devices with a token bucket.
    Needs root on Linux: exit code 5 without.
    """


def up_verb(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="Topology, or a file with one, such as a schedule.",
            show_default=False,
        ),
    ],
    rate: Annotated[
        str,
        typer.Option(metavar="RATE", help="Bandwidth of a capacity-1 link, such as 20mbit."),
    ] = DEFAULT_RATE,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Make a testbed; do nothing if the same one exists.

    Example: alltoall testbed up torus:3x3x3 --rate 20mbit
    """
    require_testbed()
    bed = up(_topology(spec), bytes_per_second(rate), name)
    _show("up", {"fabric": _described(bed)}, as_json)


def status_verb(
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the testbed (default: all).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the network, cut cables and bytes sent of every testbed.

    Example: alltoall testbed status --json
    """
    require_testbed()
    wanted = beds() if name is None else [bed_called(name)]
    fabrics = [{**_described(bed), **_counts(bed)} for bed in wanted]
    _show("status", {"fabrics": fabrics}, as_json)


def cut_verb(
    cable: Annotated[
        str,
        typer.Argument(
            metavar="A-B", help="Cable between two nodes, such as 0-1.", show_default=False
        ),
    ],
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Cut a cable, in both directions.

    Example: alltoall testbed cut 0-1
    """
    require_testbed()
    bed = bed_called(name)
    left = cut(bed, bed.plan.topology.ends_of(cable))
    _show("cut", {"fabric": _described(left)}, as_json)


def mend_verb(name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Mend all cut cables.

    Example: alltoall testbed mend
    """
    require_testbed()
    _show("mend", {"fabric": _described(mend(bed_called(name)))}, as_json)


def down_verb(name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Remove a testbed, and end the processes in it.

    Example: alltoall testbed down
    """
    require_testbed()
    _show("down", {"name": name, "removed": down(name)}, as_json)


def exec_verb(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND...", help="Command to run.", show_default=False),
    ],
    node: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Node (default: that of this MPI rank)."),
    ] = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Run a command on a node, or each MPI rank on its own node.

    Example: mpiexec -n 27 alltoall testbed exec -- ./program
    """
    require_testbed()
    bed = bed_called(name)
    prefix = bed.prefix()
    if node is not None:
        prefix.insert(-1, str(bed.plan.topology.node_of(node)))
    sys.stdout.flush()
    os.execv(prefix[0], [*prefix, *command])


def _show(action: str, found: dict[str, Any], as_json: bool) -> None:
    show({"action": action, **found}, as_json, _lines(found))


def _topology(word: str) -> Topology:
    """Return the topology that a word means, also that of an answer in a file."""
    path = Path(word)
    if names_file(word) and path.is_file():
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


def _counts(bed: Bed) -> dict[str, Any]:
    found = counted(bed)
    return {
        "bytes": sum(found.sent.values()),
        "queued": found.queued,
        "drops": found.drops,
        "retransmits": found.retransmits,
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
