"""Topologies that people already have: one file per format, all in the table `FORMATS`."""

import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alltoall.errors import FormatError, TopologyError, UsageError
from alltoall.ir.files.text import folder_names, is_folder, read_text, write_text
from alltoall.registry import load

if TYPE_CHECKING:  # Only when a file is read or written: the table itself is to be light.
    from alltoall.ir.topology import Topology

MAX_BYTES = 256 << 20
MAX_XML_BYTES = 64 << 20
MAX_MATRIX_BYTES = 1 << 20
"""The largest files that are read: of any format, of XML, and of what is always short."""


@dataclass(frozen=True)
class Format:
    """How to read and write one format: the file of this folder that does, by name."""

    module: str
    suffixes: tuple[str, ...]
    summary: str
    limit: int = MAX_BYTES
    reads: bool = True
    writes: bool = True

    @property
    def read(self) -> "Callable[..., Topology]":
        """The reader: it takes text, where it is from, and a name."""
        found: Callable[..., Topology] = load(f"{__name__}.{self.module}:read")
        return found

    @property
    def write(self) -> "Callable[[Topology], str]":
        """The writer."""
        found: Callable[[Topology], str] = load(f"{__name__}.{self.module}:write")
        return found


LLDP = "lldp"
"""The one format that a folder may have."""

FORMATS: dict[str, Format] = {
    "json": Format("alltoall_json", (".json",), "alltoall topology JSON, exact"),
    "edgelist": Format(
        "edgelist",
        (".edges", ".edgelist", ".txt", ".csv", ".tsv"),
        "edge list, one `u v [capacity]` a line, nodes by number or name",
    ),
    "graphml": Format("graphml", (".graphml",), "GraphML of networkx or igraph", MAX_XML_BYTES),
    "msccl": Format("msccl_json", (".msccl.json",), "msccl-tools JSON"),
    "nccl": Format("nccl_xml", (), "NCCL topology XML: its NVLinks", MAX_XML_BYTES),
    "nvidia-smi": Format(
        "nvidia_smi", (), "output of `nvidia-smi topo -m`: NVLinks, PCIe", MAX_MATRIX_BYTES
    ),
    LLDP: Format(
        "lldp_json",
        (),
        "what `lldpcli -f json show neighbors` prints: a folder, a file of each host",
        MAX_XML_BYTES,
        writes=False,
    ),
    "cluster": Format(
        "cluster_toml",
        (".toml",),
        "cluster TOML: hosts, their NICs and what joins them",
        MAX_MATRIX_BYTES,
        writes=False,
    ),
    "simgrid": Format("simgrid", (".xml",), "SimGrid platform XML", reads=False),
    "ibsim": Format("ibsim", (".net",), "ibsim netlist, for OpenSM", reads=False),
}

_XML_ROOTS = {"system": "nccl", "graphml": "graphml", "platform": "simgrid"}
_XML_ROOT = re.compile(r"<([A-Za-z]\w*)")
_GPU_ROW = re.compile(r"^[ \t]*GPU0[ \t]+X\b", re.MULTILINE)
_LLDP = re.compile(r'\s*\{\s*"lldp"\s*:')
_SNIFFED = 1 << 16


def read_topology(
    path: Path | str,
    format: str | None = None,
    directed: bool = False,
    capacity: str | None = None,
    parallel: bool = False,
) -> "Topology":
    """Read a topology in the named format, or in the one that suffix and content suggest.

    `directed` makes every line of an edge list one link, `parallel` every line a cable of its own,
    also where lines name a pair in both orders; `capacity` names the attribute of edges in
    GraphML, or in networkx's edge lists, that is their capacity. Where a file gives no name, the
    topology gets that of the file.
    """
    path = Path(path)
    text: str | dict[str, str]
    if is_folder(path) and format in (None, LLDP):
        key, text = LLDP, _texts(path, FORMATS[LLDP].limit)
    else:
        text = _text(path, MAX_BYTES if format is None else _format(format).limit)
        key = format or _guess(path, text)
    chosen = _format(key)
    if not chosen.reads:
        raise UsageError(f"{path}: {key} is only written; read one of {_names(reading=True)}")
    if (directed or parallel) and key != "edgelist":
        mode = "directed" if directed else "parallel"
        raise UsageError(f"{path}: only edge lists can be read as {mode}; this is {key}")
    if capacity is not None and key not in ("graphml", "edgelist"):
        raise UsageError(
            f"{path}: only edges of GraphML and of networkx's edge lists have attributes; "
            f"this is {key}"
        )
    if len(text) > chosen.limit:
        raise FormatError(f"{path}: larger than the limit of {chosen.limit:,} bytes for {key}")
    asked = {"directed": directed or None, "parallel": parallel or None, "capacity": capacity}
    options: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    try:
        return chosen.read(text, str(path), path.stem or path.resolve().name, **options)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: nested too deeply to be {chosen.summary}") from None
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        # The readers name what they find wrong; this is for what they did not think of.
        raise FormatError(f"{path}: not {chosen.summary}: {error}") from None


def write_topology(topology: "Topology", path: Path | str, format: str | None = None) -> None:
    """Write a topology in the named format, or in the one that the suffix stands for."""
    write_text(Path(path), topology_text(topology, Path(path), format))


def topology_text(topology: "Topology", path: Path, format: str | None = None) -> str:
    """Return what `write_topology` writes."""
    key = format or _by_suffix(path, reading=False)
    if key is None:
        raise UsageError(f"{path}: no format has this suffix; name one of {_names(reading=False)}")
    if not _format(key).writes:
        raise UsageError(f"{path}: {key} is only read; write one of {_names(reading=False)}")
    return _format(key).write(topology)


def _text(path: Path, limit: int) -> str:
    """Return what a regular file holds; opening a pipe would wait for its writer."""
    try:
        mode = path.stat().st_mode
    except OSError:  # which `read_text` words
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise FormatError(f"{path}: {kind}, not a regular file; give the path of a topology file")
    text = read_text(path, limit)
    if not text.strip():
        raise FormatError(f"{path}: the file is empty; expected a topology, check what wrote it")
    return text


def _texts(path: Path, limit: int) -> dict[str, str]:
    """Return what lldpcli printed on each of some hosts; stop at the first file of another kind."""
    found: dict[str, str] = {}
    for name in folder_names(path, load(f"{__name__}.lldp_json:MAX_HOSTS")):
        found[name] = _lldp_text(path, name, limit)
        limit -= len(found[name])
    if not found:
        raise FormatError(
            f"{path}: a directory, not a regular file, and it has none; give the path of a "
            "topology file, or a folder with what `lldpcli -f json show neighbors` prints on hosts"
        )
    return found


def _lldp_text(path: Path, name: str, limit: int) -> str:
    """Return what lldpcli printed on one host."""
    reason = ""
    try:
        text = read_text(path / name, limit)
        if _LLDP.match(text):
            return text
    except FormatError as error:
        reason = f" ({error})"
    raise FormatError(
        f"{path}: a directory, and {name[:80]!r} in it is not what `lldpcli -f json` prints"
        f"{reason}; give the path of a topology file, or a folder of such files only"
    )


def _format(key: str) -> Format:
    if key not in FORMATS:
        raise UsageError(f"unknown topology format {key!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[key]


def _names(reading: bool) -> str:
    return ", ".join(key for key, entry in FORMATS.items() if _does(entry, reading))


def _does(entry: Format, reading: bool) -> bool:
    return entry.reads if reading else entry.writes


def _guess(path: Path, text: str) -> str:
    """Return the format of a file: what the content says, else what the suffix stands for."""
    suffix = _by_suffix(path, reading=True)
    if suffix in ("edgelist", "graphml") and path.suffix.lower() != ".txt":
        return suffix
    key = _sniff(text) or suffix
    if key is None:
        raise UsageError(f"{path}: cannot tell its format; name one of {_names(reading=True)}")
    return key


def _sniff(text: str) -> str | None:
    """Return the format that the beginning of a text gives away."""
    start = text[:_SNIFFED].lstrip()
    if _LLDP.match(start):
        return LLDP
    if start.startswith("{"):
        return "msccl" if '"msccl_type"' in text else "json"
    if start.startswith("<"):
        root = _XML_ROOT.search(start)
        return _XML_ROOTS.get(root[1]) if root else None
    return "nvidia-smi" if _GPU_ROW.search(start) else None


def _by_suffix(path: Path, reading: bool) -> str | None:
    """Return the format whose suffix is the longest that the file name ends with."""
    matches = [
        (len(suffix), key)
        for key, entry in FORMATS.items()
        for suffix in entry.suffixes
        if _does(entry, reading) and path.name.lower().endswith(suffix)
    ]
    return max(matches)[1] if matches else None
