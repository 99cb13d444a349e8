"""`a2aflow testbed`: a fabric of network namespaces, made, looked at, cut, and removed."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.options import AsJson
from a2aflow.cli.show import show
from a2aflow.errors import UsageError
from a2aflow.ir.bandwidth import bytes_per_second, rate_in_words
from a2aflow.ir.topology import Topology
from a2aflow.loading import load
from a2aflow.testbed.namespaces import (
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
from a2aflow.testbed.public import DEFAULT_RATE
from a2aflow.topologies.families import names_file
from a2aflow.topologies.given import topology_of


@dataclass(frozen=True)
class Asked:
    """The words of a call behind its action."""

    words: list[str]
    name: str | None
    rate: str
    node: str | None
    command: list[str]

    def one(self, what: str) -> str:
        """Return the one word that an action takes."""
        if len(self.words) != 1:
            raise UsageError(f"{len(self.words)} words behind the action; expected {what}")
        return self.words[0]

    def none(self) -> None:
        """Raise if there is a word that an action does not take."""
        if self.words:
            raise UsageError(f"{self.words[0]!r} behind an action that takes none")

    def bed(self) -> Bed:
        """Return the fabric that is meant."""
        return bed_called(self.name or DEFAULT_NAME)


def fabric_verb(
    context: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="up SPEC, status, cut A-B, mend, down, or exec -- COMMAND.",
            show_default=False,
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC | A-B | -- COMMAND...]",
            help="For up a topology, or a file with one, such as a saved schedule; for cut two "
            "nodes that a cable joins; for exec a command.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        str,
        typer.Option(metavar="RATE", help="What a link of capacity 1 carries, such as 20mbit."),
    ] = DEFAULT_RATE,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"Which fabric, if there are several. [default: {DEFAULT_NAME}]"
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="NODE", help="Where exec runs a command, if MPI does not say which rank it is."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a fabric of network namespaces on this machine, with links of real limits.

    Every node is a namespace, every link a pair of virtual devices with a token bucket. up makes
    it, and does nothing if the same one exists; status shows all fabrics; cut stops what crosses a
    cable, in both directions; mend undoes all cuts; down removes a fabric, whatever is left of it,
    and ends what runs in it; exec runs a command on a node, or each rank on its own. Needs root on
    Linux: exit code 5 without.

    Examples: a2aflow testbed up torus:3x3x3 --rate 20mbit;
    mpiexec -n 27 a2aflow testbed exec -- ./program;
    a2aflow testbed down
    """
    line = list(context.obj)
    command = line[line.index("--") + 1 :] if "--" in line else []
    given = list(words or [])
    asked = Asked(given[: len(given) - len(command)], name, rate, node, command)
    if action not in ACTIONS:
        raise UsageError(f"no action {action!r}; expected one of {', '.join(ACTIONS)}")
    require_testbed()
    found = ACTIONS[action](asked)
    show({"action": action, **found}, as_json, _lines(found))


def _up(asked: Asked) -> dict[str, Any]:
    topology = _topology(asked.one("a SPEC or a file, such as torus:3x3x3"))
    return {
        "fabric": _described(up(topology, bytes_per_second(asked.rate), asked.name or DEFAULT_NAME))
    }


def _status(asked: Asked) -> dict[str, Any]:
    asked.none()
    wanted = [asked.bed()] if asked.name else beds()
    return {"fabrics": [{**_described(bed), **_counts(bed)} for bed in wanted]}


def _cut(asked: Asked) -> dict[str, Any]:
    bed = asked.bed()
    ends = bed.plan.topology.ends_of(asked.one("two nodes, such as 0-1"))
    return {"fabric": _described(cut(bed, ends))}


def _mend(asked: Asked) -> dict[str, Any]:
    asked.none()
    return {"fabric": _described(mend(asked.bed()))}


def _down(asked: Asked) -> dict[str, Any]:
    asked.none()
    name = asked.name or DEFAULT_NAME
    return {"name": name, "removed": down(name)}


def _exec(asked: Asked) -> dict[str, Any]:
    if not asked.command:
        raise UsageError("no command; expected exec -- COMMAND, such as exec -- ./program")
    bed = asked.bed()
    prefix = bed.prefix()
    if asked.node is not None:
        prefix.insert(-1, str(bed.plan.topology.node_of(asked.node)))
    sys.stdout.flush()
    os.execv(prefix[0], [*prefix, *asked.command])


ACTIONS: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "up": _up,
    "status": _status,
    "cut": _cut,
    "mend": _mend,
    "down": _down,
    "exec": _exec,
}


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
        return {"": "no fabric; make one by a2aflow testbed up SPEC"}
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
