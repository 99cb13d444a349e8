"""The matrix that `nvidia-smi topo -m` prints: a cell NVk stands for k NVLinks.

If NVLinks do not join all GPUs, the other cells give a tree of PCIe switches.
"""

import re
from dataclasses import replace

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Floats, Ints, reachable
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import MAX_MATRIX_BYTES
from alltoall.topologies.formats.pcie_tree import (
    NVLINK,
    SWITCH,
    close_levels,
    level_of,
    read_rates,
    require,
    require_both_ways,
    tree_edges,
    whole_links,
)

MAX_NVLINKS = 18
"""Most NVLinks of any GPU: a row that adds up to more shows a switched fabric."""

Cell = tuple[str, str]
"""The text of a cell, and its place for messages."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_NVLINK = re.compile(r"NV([0-9]{1,4})")


def read(text: str, where: str, name: str) -> Topology:
    """Read the output of `nvidia-smi topo -m`; lines such as `# rate SYS: 20GB/s` state rates."""
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    rates = read_rates(lines, where)
    words = [line.split() for line in lines]
    header, gpus = _header(words, where)
    cells = _matrix(words, header, gpus, where)
    counts = np.array([[_links(*cell) for cell in row] for row in cells], dtype=np.int64)
    for u, v in np.argwhere(counts != counts.T)[:1]:
        shown = f"{gpus[u]} shows {counts[u, v]} NVLinks to {gpus[v]}, which shows {counts[v, u]}"
        raise FormatError(f"{where}: {shown} back; expected a symmetric matrix")
    if not _joins_all(counts):
        level = np.array([[level_of(*cell) for cell in row] for row in cells])
        return _with_pcie(name, counts, close_levels(level, gpus, where), gpus, rates, where)
    return replace(_network(name, counts, gpus), bytes_per_second=rates.get(NVLINK))


def write(topology: Topology) -> str:
    """Return the matrix of a topology, parallel links summed.

    Terminals named like GPUs keep their names, others are numbered. Two GPUs behind a switch get
    the NVLinks of the one with fewer.
    """
    gpus = len(topology.terminals)
    fits = gpus * gpus * len("NV9\t") < MAX_MATRIX_BYTES
    expected = f"expected a matrix of less than {MAX_MATRIX_BYTES:,} bytes"
    require(topology, fits, f"{gpus} GPUs; {expected}")
    links = whole_links(topology)
    for u, v in list(links):
        require_both_ways(topology, links, u, v)
    widest = max(links.values())
    require(topology, widest < 10_000, f"{widest} links between two nodes; expected below 10,000")
    counts = np.zeros((gpus, gpus), dtype=np.int64)
    if topology.nodes > gpus:
        spokes = np.array([links[gpu, gpus] for gpu in range(gpus)])
        counts += np.minimum.outer(spokes, spokes)
    for (u, v), count in links.items():
        if max(u, v) < gpus:
            counts[u, v] += count
    np.fill_diagonal(counts, 0)
    # Refuse a matrix that `read` takes for another network.
    joined = _joins_all(counts)
    require(topology, joined, "GPUs that no NVLinks join, which would be read as joined by PCIe")
    found = _network(topology.name, counts, _names(len(counts)))
    kind = "one switch" if found.nodes > len(counts) else "links without a switch"
    require(
        topology,
        found.nodes == topology.nodes and whole_links(found) == +links,
        f"its GPUs show up to {counts.sum(axis=1).max()} NVLinks, which would be read as {kind}, "
        f"not as this network; expected direct links, at most {MAX_NVLINKS} a GPU, or links to one "
        f"switch alone, as many at every GPU, so that a GPU shows more than {MAX_NVLINKS}",
    )
    names = list(topology.names or ())[:gpus]
    if not names or not all(map(_GPU.fullmatch, names)):
        names = _names(gpus)
    lines = ["\t".join(["", *names])]
    for gpu, row in enumerate(counts.tolist()):
        cells = [f"NV{count}" if count else "SYS" for count in row]
        cells[gpu] = " X "
        lines.append("\t".join([names[gpu], *cells]))
    return "\n".join(lines) + "\n"


def _network(name: str, counts: Ints, gpus: list[str]) -> Topology:
    """Return the network of a matrix: direct links, or an NVSwitch if they are too many."""
    shown, switch = counts.sum(axis=1).max(), len(counts)
    if shown <= MAX_NVLINKS:
        links = [(u, v, counts[u, v]) for u, v in np.argwhere(counts)]
        return Topology.from_links(name, switch, links, names=gpus)
    spokes = [(gpu, switch, links) for gpu, links in enumerate(counts.max(axis=1)) if links]
    note = (
        f"NVSwitch: a GPU shows {shown} NVLinks, more than the {MAX_NVLINKS} that any GPU has; "
        f"modelled as one switch, {SWITCH}, with all links of each GPU"
    )
    return Topology.from_edges(name, switch + 1, spokes, range(switch), (note,), [*gpus, SWITCH])


def _with_pcie(
    name: str, counts: Ints, level: Floats, gpus: list[str], rates: dict[str, float], where: str
) -> Topology:
    """Return the PCIe tree of a machine and its NVLinks; the slowest link has capacity 1."""
    if rates and counts.any() and NVLINK not in rates:
        problem = "lines state rates, but none for NVLinks"
        raise FormatError(f"{where}: {problem}; add `# rate NVLink: 25GB/s`")
    edges, switches = tree_edges(level, rates, where)
    pairs = [(u, v) for u, v in np.argwhere(counts).tolist() if u < v]
    edges += [(u, v, float(counts[u, v] * rates.get(NVLINK, 1.0))) for u, v in pairs]
    unit, note = (
        1.0,
        (
            "every PCIe link, and an NVLink, has capacity 1; if rates differ add lines to the file "
            "such as `# rate PCIe: 32GB/s`, `# rate SYS: 20GB/s` and `# rate NVLink: 25GB/s`"
        ),
    )
    if rates:
        unit = min((width for *_, width in edges), default=1.0)
        note = f"capacity 1 is {rate_in_words(unit)}"
    first = f"NVLinks do not join all GPUs: read with PCIe as a tree of {len(switches)} switches"
    names, scaled = [*gpus, *switches], [(u, v, width / unit) for u, v, width in edges]
    tree = Topology.from_edges(name, len(names), scaled, range(len(gpus)), (first, note), names)
    return replace(tree, bytes_per_second=unit if rates else None)


def _joins_all(counts: Ints) -> bool:
    tail, head = np.nonzero(counts)
    return bool(reachable(len(counts), tail, head, 0).all())


def _names(count: int) -> list[str]:
    return [f"GPU{index}" for index in range(count)]


def _header(lines: list[list[str]], where: str) -> tuple[int, list[str]]:
    for index, words in enumerate(lines):
        if len(words) >= 2 and _GPU.fullmatch(words[0]) and _GPU.fullmatch(words[1]):
            gpus = [word for word in words if _GPU.fullmatch(word)]
            if len(set(gpus)) != len(gpus):
                raise FormatError(f"{where}: line {index + 1}: the header names a GPU twice")
            return index, gpus
    raise FormatError(
        f"{where}: no header line with GPU0 and GPU1; "
        "expected the output of `nvidia-smi topo -m` on a machine with two or more GPUs"
    )


def _matrix(lines: list[list[str]], header: int, gpus: list[str], where: str) -> list[list[Cell]]:
    columns = {gpu: lines[header].index(gpu) for gpu in gpus}
    table: dict[str, list[Cell]] = {}
    for number, words in enumerate(lines[header + 1 :], start=header + 2):
        if not words or words[0] not in columns:
            continue
        name, *cells = words
        place = f"{where}: line {number}: {name}"
        if len(cells) <= max(columns.values()):
            found = f"{len(cells)} cells"
            raise FormatError(f"{place} has {found}; expected one per column of the header")
        if cells[columns[name]] != "X":
            own = cells[columns[name]]
            raise FormatError(f"{place} has {own!r} in its own column; expected X")
        table[name] = [(cells[column], place) for column in columns.values()]
    for gpu in (gpu for gpu in gpus if gpu not in table):
        raise FormatError(f"{where}: no row for {gpu}; check that the file is complete")
    return [table[gpu] for gpu in gpus]


def _links(cell: str, place: str) -> int:
    nvlink = _NVLINK.fullmatch(cell)
    if nvlink is None and cell.startswith("NV"):
        raise FormatError(f"{place} has a cell {cell[:20]!r}; expected NV and a number of links")
    return int(nvlink[1]) if nvlink else 0
