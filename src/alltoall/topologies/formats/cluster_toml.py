"""Clusters in TOML: the outside fabric, and one table for each kind of host.

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
`topologies/clusters.py` explains them. A table with a `kind` may override its values.
"""

import tomllib
from dataclasses import asdict, fields
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import Json, naming, short, take_int, take_list, take_text
from alltoall.ir.topology import MAX_NODES, Topology
from alltoall.topologies.clusters import compose
from alltoall.topologies.families import GBIT
from alltoall.topologies.hosts import HOSTS, Host
from alltoall.topologies.outsides import RAIL
from alltoall.topologies.spec import in_unit

MAX_KINDS = 1_000
"""Most tables of hosts in a file."""

CLUSTER = {"name": "", "outside": RAIL, "over": "", "forward": "host"}
"""Keys of the cluster besides its hosts, with their defaults."""

HOST_KEYS = tuple(each.name for each in fields(Host))
"""Keys of a table of hosts."""

REQUIRED = ("gpus", "inside", "nics", "rate")
"""Keys that a table needs unless it has a kind."""


def read(text: str, where: str, name: str) -> Topology:
    """Build the cluster that a file describes."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{where}: not TOML: {error}") from None
    _refuse_others(table, {*CLUSTER, "hosts"}, where)
    words = {key: take_text(CLUSTER | table, key, where) for key in CLUSTER}
    hosts: list[Host] = []
    for index, each in enumerate(take_list(table, "hosts", where, MAX_KINDS)):
        here = f"{where}: hosts[{index}]"
        host, count = _read_hosts(each, here)
        if len(hosts) + count > MAX_NODES:
            raise FormatError(f"{here}: more than {MAX_NODES:,} hosts; expected fewer")
        hosts += [host] * count
    name = words.pop("name") or name
    return in_unit(compose(name, hosts, **words), GBIT)


def _read_hosts(table: Any, here: str) -> tuple[Host, int]:
    if not isinstance(table, dict):
        raise FormatError(f"{here}: is {short(table)}; expected a table")
    _refuse_others(table, {*HOST_KEYS, "kind", "count"}, here)
    count = take_int({"count": 1} | table, "count", here, MAX_NODES)
    known: dict[str, Any] = {}
    if "kind" in table:
        known = asdict(HOSTS[take_text(table, "kind", here, tuple(HOSTS))])
    known |= {key: table[key] for key in HOST_KEYS if key in table}
    missing = [key for key in REQUIRED if key not in known]
    if missing:
        expected = f"expected {', '.join(REQUIRED)}, or a kind: {', '.join(HOSTS)}"
        raise FormatError(f"{here}: {', '.join(missing)} missing; {expected}")
    with naming(here):
        return Host(**known), count


def _refuse_others(table: Json, known: set[str], here: str) -> None:
    for key in (key for key in table if key not in known):
        expected = f"expected one of {', '.join(sorted(known))}"
        raise FormatError(f"{here}: unknown key {short(key)}; {expected}")
