"""Clusters in TOML: what joins the hosts, and one table for each kind of them.

    outside = "torus:2x2"

    [[hosts]]
    count = 2
    kind = "dgxh100"

    [[hosts]]
    count = 2
    gpus = 4
    inside = "ring"
    link = 200
    nics = 2
    rate = 100

`name`, `over` and `forward` may stand beside `outside`, and `attach` in a table; the docstring of
`topologies/clusters.py` says what they mean. A table with a `kind` may change what that kind says.
"""

import tomllib
from dataclasses import asdict
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import Json, short, take_int, take_list, take_text
from alltoall.ir.topology import MAX_NODES, Topology
from alltoall.topologies.clusters import compose
from alltoall.topologies.families import GBIT
from alltoall.topologies.hosts import HOSTS, Host
from alltoall.topologies.outsides import RAIL
from alltoall.topologies.spec import in_unit

MAX_KINDS = 1_000
"""Most tables of hosts in a file."""

CLUSTER = {"name": "", "outside": RAIL, "over": "", "forward": "host"}
"""What a file says of the cluster, besides its hosts, and what it means if left out."""

OF_HOSTS: dict[str, tuple[type, ...]] = {
    "gpus": (int,),
    "inside": (str,),
    "nics": (int,),
    "rate": (int, float),
    "link": (int, float),
    "attach": (str,),
}
"""What a table says of its hosts, and what it is."""

REQUIRED = ("gpus", "inside", "nics", "rate")
"""What it has to say unless the kind of hosts does."""


def read(text: str, where: str, name: str) -> Topology:
    """Build the cluster that a file describes."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{where}: not TOML: {error}") from None
    _refuse_others(table, {*CLUSTER, "hosts"}, where)
    said = {key: _text(table, key, where) for key in CLUSTER}
    hosts: list[Host] = []
    for index, each in enumerate(take_list(table, "hosts", where, MAX_KINDS)):
        here = f"{where}: hosts[{index}]"
        host, count = _hosts(each, here)
        if len(hosts) + count > MAX_NODES:
            raise FormatError(f"{here}: more than {MAX_NODES:,} hosts; expected fewer")
        hosts += [host] * count
    built = compose(said["name"] or name, hosts, said["outside"], said["over"], said["forward"])
    return in_unit(built, GBIT)


def _text(table: Json, key: str, where: str) -> str:
    return take_text(table, key, where) if key in table else CLUSTER[key]


def _hosts(table: Any, here: str) -> tuple[Host, int]:
    """Return the kind of hosts that a table describes, and how many there are."""
    if not isinstance(table, dict):
        raise FormatError(f"{here}: is {short(table)}; expected a table")
    _refuse_others(table, {*OF_HOSTS, "kind", "count"}, here)
    count = take_int(table, "count", here, MAX_NODES) if "count" in table else 1
    known: dict[str, Any] = {}
    if "kind" in table:
        known = asdict(HOSTS[take_text(table, "kind", here, tuple(HOSTS))])
    for key, kinds in OF_HOSTS.items():
        if key in table:
            known[key] = _value(table[key], key, kinds, here)
    missing = [key for key in REQUIRED if key not in known]
    if missing:
        raise FormatError(
            f"{here}: {', '.join(missing)} missing; expected {', '.join(REQUIRED)}, or a kind: "
            f"{', '.join(HOSTS)}"
        )
    return Host(**known), count


def _value(value: Any, key: str, kinds: tuple[type, ...], here: str) -> Any:
    if type(value) not in kinds:
        expected = {int: "a whole number", str: "a text"}.get(kinds[-1], "a number")
        raise FormatError(f"{here}: {key} is {short(value)}; expected {expected}")
    return float(value) if float in kinds else value


def _refuse_others(table: Json, known: set[str], here: str) -> None:
    for key in table:
        if key not in known:
            raise FormatError(
                f"{here}: unknown key {short(key)}; expected one of {', '.join(sorted(known))}"
            )
