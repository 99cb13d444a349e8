"""Run scripts of `lower --to linux` on a fabric, and read its kernel's tables."""

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats
from alltoall.ir.routes import Routes
from alltoall.testbed.namespaces import Bed

SHOWN = ("rule", "-6 rule", "route show table all", "-6 route show table all", "address", "link")
"""What a host has, by the words of `ip` that show it."""


def inside(bed: Bed, node: int, *words: str) -> list[str]:
    """Return a command that runs on a node."""
    prefix = bed.prefix()
    prefix.insert(-1, str(node))
    return [*prefix, *words]


def run_script(bed: Bed, node: int, text: bytes, *words: str) -> str:
    """Run a script on a node as a user would; return what it prints."""
    done = subprocess.run(
        inside(bed, node, "sh", "-s", "--", *words), input=text, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def install(bed: Bed, files: dict[str, bytes], suffix: str = ".sh") -> None:
    """Run the script of every host, or that which undoes it."""
    topology = bed.plan.topology
    for node in range(topology.nodes):
        run_script(bed, node, files[f"{topology.node_name(node)}{suffix}"])


def shown(bed: Bed, node: int) -> list[str]:
    """Return all that `ip` shows of a node, but for what devices give themselves, and when."""
    found = []
    for words in SHOWN:
        text = subprocess.check_output(inside(bed, node, "ip", *words.split()), text=True)
        lines = text.splitlines(keepends=True)
        found.append("".join(line for line in lines if not {"fe80:", "ff00:"} & kinds_of(line)))
    return found


def kinds_of(line: str) -> set[str]:
    """Return how the addresses of a line begin."""
    return {word[:5] for word in line.split()}


@dataclass(frozen=True)
class Tables:
    """The rules of a host in their order, and its routes by table and destination."""

    rules: list[tuple[str, int]]
    routes: dict[tuple[int, str], list[tuple[str, int]]]

    def ways(self, source: str, to: str, local: bool) -> list[tuple[str, int]]:
        """Return the devices, with weights, of a packet: the first table with a route decides."""
        for selector, table in self.rules:
            fits = selector in ("all", source) or (selector == "lo" and local)
            if fits and (table, to) in self.routes:
                return self.routes[table, to]
        raise AssertionError(f"no route from {source} to {to}")


def tables_of(bed: Bed, node: int) -> Tables:
    """Read what the kernel of a node has."""
    rules: list[dict[str, Any]] = _told(bed, node, "rule")
    order = []
    for rule in rules:
        if str(rule["table"]).isdecimal():
            selector = "lo" if rule.get("iif") == "lo" else rule["src"]
            order.append((selector, int(rule["table"])))
    routes = {}
    for row in _told(bed, node, "route", "show", "table", "all"):
        if str(row.get("table")).isdecimal():
            hops = row.get("nexthops") or [row]
            ways = [(hop["dev"], hop.get("weight", 1)) for hop in hops]
            routes[int(row["table"]), row["dst"]] = ways
    return Tables(order, routes)


def _told(bed: Bed, node: int, *words: str) -> list[dict[str, Any]]:
    told = subprocess.check_output(inside(bed, node, "ip", "-json", *words), text=True)
    return list(json.loads(told))


def loads_by_tables(bed: Bed, address: list[str], routes: Routes) -> Floats:
    """Follow the demand of every pair through the kernel's tables; return the loads of links."""
    topology = bed.plan.topology
    tables = [tables_of(bed, node) for node in range(topology.nodes)]
    leaving = {(each.node, each.name): link for link, each in bed.plan.device_of.items()}
    loads = np.zeros(topology.links)
    for position, begin in enumerate(topology.terminals.tolist()):
        for other, end in enumerate(topology.terminals.tolist()):
            share = routes.weight[(routes.source == position) & (routes.destination == other)].sum()
            at = defaultdict[int, float](float, {begin: share}) if share else {}
            for _ in range(topology.nodes):
                there = defaultdict[int, float](float)
                for node, amount in at.items():
                    if node == end:
                        continue
                    ways = tables[node].ways(address[begin], address[end], node == begin)
                    for device, weight in ways:
                        link = leaving[node, device]
                        part = amount * weight / sum(each for _, each in ways)
                        loads[link] += part
                        there[int(topology.head[link])] += part
                at = there
            assert not at, f"from {begin} to {end}: packets go in circles"
    return loads
