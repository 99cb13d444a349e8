"""NCCL topology XML, as NCCL_TOPO_DUMP_FILE writes it: system > cpu > pci > gpu > nvlink.

As in NCCL, an `nvlink` of class 0x03 leads to the GPU with the target's bus id, class 0x068001 to
the CPU, and all others to a single NVSwitch, since the file does not show the trunks between
switches of two boards.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from alltoall.errors import FormatError
from alltoall.ir.files.xml import MAX_XML_ELEMENTS, local_name, parse_xml
from alltoall.ir.names import sound_names
from alltoall.ir.topology import Topology
from alltoall.topologies.formats.pcie_tree import SWITCH, require, whole_links

Pair = tuple[int, int]

_DEVICE = re.compile(r"0|[1-9][0-9]{0,5}")
MAX_LINK_COUNT = 10_000
GPU_CLASS = "0x03"
CPU_CLASS = "0x068001"

_SWITCH_ID = "ffff:ff:00.0"
_CPU = (
    '  <cpu numaid="0" affinity="ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" '
    'modelid="79">'
)
_PCI = 'class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"'
_GPU = 'sm="70" gdr="1"'
"""Placeholders for required parts that a topology lacks: a plain host of V100 GPUs."""


@dataclass(frozen=True)
class _Gpu:
    """A `gpu` element, its host and bus id; bus ids are unique within a host only."""

    host: str
    busid: str
    element: Element

    @property
    def place(self) -> str:
        """The element in words, for messages."""
        return f"<gpu dev={self.element.get('dev', '?')[:20]!r}> at pci {self.busid[:20]!r}"


def read(text: str, where: str, name: str) -> Topology:
    """Read the NVLinks of an NCCL topology; the capacity of a link is its `count`."""
    root = parse_xml(text, where)
    if local_name(root) != "system":
        raise FormatError(f"{where}: the root is <{local_name(root)}>; expected <system>")
    gpus = _in_order(_gpus(root), where)
    ids: dict[tuple[str, str], int] = {}
    for index, gpu in enumerate(gpus):
        if not gpu.busid:
            raise FormatError(f"{where}: {gpu.place} has no busid; expected <gpu> inside <pci>")
        if ids.setdefault((gpu.host, gpu.busid), index) != index:
            raise FormatError(
                f"{where}: two <gpu> elements share pci {gpu.busid[:20]!r}; "
                "several ranks on one GPU share its links, keep one of them"
            )
    links: Counter[Pair] = Counter()
    ignored: Counter[str] = Counter()
    for gpu in gpus:
        for nvlink in gpu.element.iter("nvlink"):
            _add_links(gpu, nvlink, ids, links, ignored, where)
    if not links:
        raise FormatError(
            f"{where}: no <nvlink> between the {len(gpus)} GPUs; PCIe and network links are not "
            "read from this format, describe them in an edge list"
        )
    ignored["network interfaces"] = sum(1 for _ in root.iter("net"))
    rows = [(*pair, links[pair]) for pair in sorted(links)]
    notes = [f"ignored {count} {kind}" for kind, count in ignored.items() if count]
    names = [*_names(gpus)]
    if any(head == len(gpus) for _, head in links):
        notes.append(f"all NVSwitches are one switch, {SWITCH}, as in NCCL")
        names.append(SWITCH)
    return Topology.from_links(name, len(names), rows, range(len(gpus)), notes, names)


def _names(gpus: list[_Gpu]) -> tuple[str, ...]:
    """Return the names of the GPUs: by device if unique, else by bus id."""
    devices = [gpu.element.get("dev", "") for gpu in gpus]
    if len(set(devices)) == len(gpus) and all(map(_DEVICE.fullmatch, devices)):
        return tuple(f"GPU{device}" for device in devices)
    names = sound_names(f"{gpu.host}/{gpu.busid}".removeprefix("/") for gpu in gpus)
    return names or tuple(f"GPU{index}" for index in range(len(gpus)))


def write(topology: Topology) -> str:
    """Return the XML of a topology, parallel links summed.

    A terminal named like `GPU3` gets that device number, others are numbered. Only the NVLinks are
    real; CPU, PCIe and GPU model are placeholders.
    """
    gpus = len(topology.terminals)
    links = whole_links(topology)
    size, widest = 2 + 2 * gpus + len(links), max(links.values())
    fits = size <= MAX_XML_ELEMENTS
    require(topology, fits, f"{size:,} XML elements; expected 2,000,000 or less")
    expected = f"expected at most {MAX_LINK_COUNT}"
    require(topology, widest <= MAX_LINK_COUNT, f"{widest} links between two nodes; {expected}")
    busid = [f"{gpu >> 8:04x}:{gpu & 255:02x}:00.0" for gpu in range(gpus)]  # domain and bus
    targets: list[list[Pair]] = [[] for _ in range(topology.nodes)]
    for (node, target), count in sorted((+links).items()):
        targets[node].append((target, count))
    lines = ['<system version="1">', _CPU]
    for gpu, device in enumerate(_devices(topology, gpus)):
        lines.append(f'    <pci busid="{busid[gpu]}" {_PCI}>')
        lines.append(f'      <gpu dev="{device}" rank="{gpu}" {_GPU}>')
        for target, count in targets[gpu]:
            far, kind = (busid[target], "0x030200") if target < gpus else (_SWITCH_ID, "0x068000")
            lines.append(f'        <nvlink target="{far}" count="{count}" tclass="{kind}"/>')
        lines += ["      </gpu>", "    </pci>"]
    return "\n".join([*lines, "  </cpu>", "</system>"]) + "\n"


def _devices(topology: Topology, gpus: int) -> list[str]:
    """Return the device of each GPU: the number in its name, or its own."""
    names = list((topology.names or ())[:gpus])
    devices = [name.removeprefix("GPU") for name in names]
    named = [f"GPU{device}" for device in devices] == names
    if names and named and all(map(_DEVICE.fullmatch, devices)):
        return devices
    return [str(gpu) for gpu in range(gpus)]


def _gpus(root: Element) -> Iterator[_Gpu]:
    """Yield the GPUs of the tree; each is below the `pci` with its bus id."""
    stack = [(root, "", "")]
    while stack:
        element, host, busid = stack.pop()
        if local_name(element) == "gpu":
            yield _Gpu(host, busid, element)
            continue
        host, busid = element.get("host_hash", host), element.get("busid", busid).lower()
        stack.extend((child, host, busid) for child in reversed(element))


def _in_order(gpus: Iterator[_Gpu], where: str) -> list[_Gpu]:
    """Return the GPUs by rank, or in file order without ranks."""
    found = list(gpus)
    if len(found) < 2:
        raise FormatError(f"{where}: {len(found)} <gpu> elements; expected at least 2")
    if any(gpu.element.get("rank") is None for gpu in found):
        return found
    ranks = [_integer(gpu, gpu.element, "rank", where) for gpu in found]
    if len(set(ranks)) != len(ranks):
        raise FormatError(f"{where}: two <gpu> elements have the same rank; expected one each")
    return [gpu for _, gpu in sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0])]


def _add_links(
    gpu: _Gpu,
    nvlink: Element,
    ids: dict[tuple[str, str], int],
    links: Counter[Pair],
    ignored: Counter[str],
    where: str,
) -> None:
    """Add the links of one `nvlink` element; several to one target add up."""
    count = _integer(gpu, nvlink, "count", where)
    if not 0 < count <= MAX_LINK_COUNT:
        found = f"{gpu.place} has an nvlink of count {count}"
        raise FormatError(f"{where}: {found}; expected 1 to {MAX_LINK_COUNT}")
    source, switch = ids[gpu.host, gpu.busid], len(ids)
    target = ids.get((gpu.host, nvlink.get("target", "").lower()))
    kind = nvlink.get("tclass", "")
    if kind.startswith(CPU_CLASS):
        ignored["NVLinks to a CPU"] += count
    elif not kind.startswith(GPU_CLASS):
        links[source, switch] += count
        links[switch, source] += count
    elif target is None:
        ignored["NVLinks to a GPU that is not in the file"] += count
    elif target == source:
        raise FormatError(f"{where}: {gpu.place} has an nvlink to itself; remove it")
    else:
        links[source, target] += count


def _integer(gpu: _Gpu, element: Element, key: str, where: str) -> int:
    value = element.get(key, "")
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise FormatError(
            f"{where}: {gpu.place}: <{local_name(element)}> has {key}={value[:20]!r}; "
            "expected a non-negative integer"
        )
    return int(value)
