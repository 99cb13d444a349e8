"""NCCL topology XML, as NCCL_TOPO_DUMP_FILE writes it: system > cpu > pci > gpu > nvlink.

Read as NCCL reads it: an `nvlink` of class 0x03 leads to the GPU whose `pci` has the target's bus
id, one of class 0x068001 to the CPU, and all others to one and the same NVSwitch, whatever their
target: switches on two boards are joined by trunks that the file does not show.
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
# What the file must hold besides NVLinks, and a topology does not: a plain host of V100 GPUs.
_CPU = (
    '  <cpu numaid="0" affinity="ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" '
    'modelid="79">'
)
_PCI = 'class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"'
_GPU = 'sm="70" gdr="1"'


@dataclass(frozen=True)
class _Gpu:
    """A `gpu` element and where it sits; bus ids are unique within a host only."""

    host: str
    busid: str
    element: Element

    @property
    def place(self) -> str:
        return f"<gpu dev={self.element.get('dev', '?')[:20]!r}> at pci {self.busid[:20]!r}"


def read(text: str, where: str, name: str) -> Topology:
    """Read the NVLinks of an NCCL topology; the capacity of a link is its `count`."""
    root = parse_xml(text, where)
    if local_name(root) != "system":
        raise FormatError(f"{where}: the root is <{local_name(root)}>; expected <system>")
    gpus = _in_order(_gpus(root), where)
    ids = _numbering(gpus, where)
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
    switched = any(head == len(gpus) for _, head in links)
    rows = [(*pair, links[pair]) for pair in sorted(links)]
    notes = _notes(gpus, switched, ignored)
    names = [*_names(gpus), *([SWITCH] if switched else [])]
    return Topology.from_links(name, len(gpus) + switched, rows, range(len(gpus)), notes, names)


def _names(gpus: list[_Gpu]) -> tuple[str, ...]:
    """Return what the GPUs are called: by device if that tells them apart, else by bus id."""
    devices = [gpu.element.get("dev", "") for gpu in gpus]
    if len(set(devices)) == len(gpus) and all(map(_DEVICE.fullmatch, devices)):
        return tuple(f"GPU{device}" for device in devices)
    names = sound_names(f"{gpu.host}/{gpu.busid}".removeprefix("/") for gpu in gpus)
    return names or tuple(f"GPU{index}" for index in range(len(gpus)))


def write(topology: Topology) -> str:
    """Return the XML that `read` takes for this topology, parallel links summed.

    Terminals that are called GPU and a number have it as their device, others are numbered.
    CPU, PCIe and the kind of GPU stand for no machine in particular; only the NVLinks are real.
    """
    gpus = len(topology.terminals)
    links = whole_links(topology)
    size = 2 + 2 * gpus + len(links)
    require(
        topology, size <= MAX_XML_ELEMENTS, f"{size:,} XML elements; expected 2,000,000 or less"
    )
    widest = max(links.values())
    require(
        topology,
        widest <= MAX_LINK_COUNT,
        f"{widest} links between two nodes; expected at most {MAX_LINK_COUNT}",
    )
    nvlinks: list[list[str]] = [[] for _ in range(gpus)]
    for (u, v), count in sorted(links.items()):
        if u < gpus and count:
            nvlinks[u].append(_nvlink(v, count, gpus))
    devices = _devices(topology, gpus)
    blocks = [_gpu_block(gpu, devices[gpu], lines) for gpu, lines in enumerate(nvlinks)]
    return "\n".join(['<system version="1">', _CPU, *blocks, "  </cpu>", "</system>"]) + "\n"


def _nvlink(target: int, count: int, gpus: int) -> str:
    busid, kind = (_busid(target), "0x030200") if target < gpus else (_SWITCH_ID, "0x068000")
    return f'        <nvlink target="{busid}" count="{count}" tclass="{kind}"/>'


def _devices(topology: Topology, gpus: int) -> list[str]:
    """Return the device of each GPU: the number that its name has, or its own."""
    found = [name.removeprefix("GPU") for name in (topology.names or ())[:gpus]]
    called = [f"GPU{device}" for device in found] == list((topology.names or ())[:gpus])
    if found and called and all(map(_DEVICE.fullmatch, found)):
        return found
    return [str(gpu) for gpu in range(gpus)]


def _gpu_block(gpu: int, device: str, nvlinks: list[str]) -> str:
    return "\n".join(
        [
            f'    <pci busid="{_busid(gpu)}" {_PCI}>',
            f'      <gpu dev="{device}" rank="{gpu}" {_GPU}>',
            *nvlinks,
            "      </gpu>",
            "    </pci>",
        ]
    )


def _busid(gpu: int) -> str:
    """Return a PCI address of its own for each GPU: domain and bus."""
    return f"{gpu >> 8:04x}:{gpu & 255:02x}:00.0"


def _gpus(root: Element) -> Iterator[_Gpu]:
    """Walk the tree for GPUs; each sits below the `pci` that has its bus id."""
    stack = [(root, "", "")]
    while stack:
        element, host, busid = stack.pop()
        if local_name(element) == "gpu":
            yield _Gpu(host, busid, element)
            continue
        host, busid = element.get("host_hash", host), element.get("busid", busid).lower()
        stack.extend((child, host, busid) for child in reversed(element))


def _in_order(gpus: Iterator[_Gpu], where: str) -> list[_Gpu]:
    """Return the GPUs by rank, or as the file has them if it gives no ranks."""
    found = list(gpus)
    if len(found) < 2:
        raise FormatError(f"{where}: {len(found)} <gpu> elements; expected at least 2")
    if any(gpu.element.get("rank") is None for gpu in found):
        return found
    ranks = [_integer(gpu, gpu.element, "rank", where) for gpu in found]
    if len(set(ranks)) != len(ranks):
        raise FormatError(f"{where}: two <gpu> elements have the same rank; expected one each")
    return [gpu for _, gpu in sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0])]


def _numbering(gpus: list[_Gpu], where: str) -> dict[tuple[str, str], int]:
    ids: dict[tuple[str, str], int] = {}
    for index, gpu in enumerate(gpus):
        if not gpu.busid:
            raise FormatError(f"{where}: {gpu.place} has no busid; expected <gpu> inside <pci>")
        if ids.setdefault((gpu.host, gpu.busid), index) != index:
            raise FormatError(
                f"{where}: two <gpu> elements share pci {gpu.busid[:20]!r}; "
                "several ranks on one GPU share its links, keep one of them"
            )
    return ids


def _add_links(
    gpu: _Gpu,
    nvlink: Element,
    ids: dict[tuple[str, str], int],
    links: Counter[Pair],
    ignored: Counter[str],
    where: str,
) -> None:
    """Add what one `nvlink` element stands for; several to one target add up."""
    count = _integer(gpu, nvlink, "count", where)
    if not 0 < count <= MAX_LINK_COUNT:
        raise FormatError(
            f"{where}: {gpu.place} has an nvlink of count {count}; expected 1 to {MAX_LINK_COUNT}"
        )
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


def _notes(gpus: list[_Gpu], switched: bool, ignored: Counter[str]) -> list[str]:
    notes = [f"ignored {count} {what}" for what, count in ignored.items() if count]
    if switched:
        notes.append(f"all NVSwitches are one switch, {SWITCH}, as in NCCL")
    return notes
