"""File formats of topologies: one file per format, all in the table `FORMATS`."""

import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alltoall.errors import FormatError, TopologyError, UsageError
from alltoall.ir.files.text import folder_names, is_folder, read_text, write_text
from alltoall.registry import load

if TYPE_CHECKING:  # Imported when a file is read or written, to keep the table light.
    from alltoall.ir.topology import Topology

MAX_BYTES = 256 << 20
MAX_XML_BYTES = 64 << 20
MAX_MATRIX_BYTES = 1 << 20
"""Largest files to read: of any format, of XML, and of formats that are always short."""


@dataclass(frozen=True)
class Format:
    """A format: the module of this folder that reads and writes it."""

    module: str
    suffixes: tuple[str, ...]
    summary: str
    limit: int = MAX_BYTES
    reads: bool = True
    writes: bool = True

    @property
    def read(self) -> "Callable[..., Topology]":
        """The reader: it takes text, its path for messages, and a name."""
        reader: Callable[..., Topology] = load(f"{__name__}.{self.module}:read")
        return reader

    @property
    def write(self) -> "Callable[[Topology], str]":
        """The writer."""
        writer: Callable[[Topology], str] = load(f"{__name__}.{self.module}:write")
        return writer

    def supports(self, reading: bool) -> bool:
        """Return whether the format can be read, or written."""
        return self.reads if reading else self.writes


LLDP = "lldp"
"""The one format that can be a folder."""

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
        "output of `lldpcli -f json show neighbors`: a folder, a file of each host",
        MAX_XML_BYTES,
        writes=False,
    ),
    "cluster": Format(
        "cluster_toml",
        (".toml",),
        "cluster TOML: hosts, their NICs and the fabric between them",
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
    """Read a topology in the named format, or guess the format from suffix and content.

    `directed` makes every line of an edge list one link, `parallel` every line a separate cable,
    even if lines name a pair in both orders. `capacity` names the edge attribute with the
    capacity, in GraphML and in networkx's edge lists. Nameless topologies get the file's name.
    """
    path = Path(path)
    text: str | dict[str, str]
    if is_folder(path) and format in (None, LLDP):
        key, text = LLDP, _read_folder(path, FORMATS[LLDP].limit)
    else:
        text = _read_file(path, MAX_BYTES if format is None else _look_up(format).limit)
        key = format or _guess(path, text)
    chosen = _look_up(key)
    if not chosen.reads:
        raise UsageError(f"{path}: {key} is only written; read one of {_names(reading=True)}")
    if (directed or parallel) and key != "edgelist":
        mode = "directed" if directed else "parallel"
        raise UsageError(f"{path}: only edge lists can be read as {mode}; this is {key}")
    if capacity is not None and key not in ("graphml", "edgelist"):
        having = "only edges of GraphML and of networkx's edge lists have attributes"
        raise UsageError(f"{path}: {having}; this is {key}")
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
        # The readers name what they find wrong; this catches the rest.
        raise FormatError(f"{path}: not {chosen.summary}: {error}") from None


def write_topology(topology: "Topology", path: Path | str, format: str | None = None) -> None:
    """Write a topology in the named format, or in that of the suffix."""
    write_text(Path(path), topology_text(topology, Path(path), format))


def topology_text(topology: "Topology", path: Path, format: str | None = None) -> str:
    """Return the text of a topology file."""
    key = format or _by_suffix(path, reading=False)
    if key is None:
        raise UsageError(f"{path}: no format has this suffix; name one of {_names(reading=False)}")
    if not _look_up(key).writes:
        raise UsageError(f"{path}: {key} is only read; write one of {_names(reading=False)}")
    return _look_up(key).write(topology)


def _read_file(path: Path, limit: int) -> str:
    """Read a regular file; opening a pipe would wait for its writer."""
    try:
        mode = path.stat().st_mode
    except OSError:  # `read_text` words it.
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise FormatError(f"{path}: {kind}, not a regular file; give the path of a topology file")
    text = read_text(path, limit)
    if not text.strip():
        raise FormatError(f"{path}: the file is empty; expected a topology, check what wrote it")
    return text


def _read_folder(path: Path, limit: int) -> dict[str, str]:
    """Read the output of lldpcli on each host; stop at the first file of another kind."""
    found: dict[str, str] = {}
    for name in folder_names(path, load(f"{__name__}.lldp_json:MAX_HOSTS")):
        text, reason = "", ""
        try:
            text = read_text(path / name, limit)
        except FormatError as error:
            reason = f" ({error})"
        if not _LLDP.match(text):
            raise FormatError(
                f"{path}: a directory, and {name[:80]!r} in it is not what `lldpcli -f json` prints"
                f"{reason}; give the path of a topology file, or a folder of such files only"
            )
        found[name] = text
        limit -= len(text)
    if not found:
        raise FormatError(
            f"{path}: a directory, not a regular file, and it has none; give the path of a "
            "topology file, or a folder with what `lldpcli -f json show neighbors` prints on hosts"
        )
    return found


def _look_up(key: str) -> Format:
    if key not in FORMATS:
        raise UsageError(f"unknown topology format {key!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[key]


def _names(reading: bool) -> str:
    return ", ".join(key for key, entry in FORMATS.items() if entry.supports(reading))


def _guess(path: Path, text: str) -> str:
    suffix = _by_suffix(path, reading=True)
    certain = suffix in ("edgelist", "graphml") and path.suffix.lower() != ".txt"
    key = suffix if certain else _sniff(text) or suffix
    if key is None:
        raise UsageError(
            f"{path}: cannot tell its format; say it: alltoall topology FILE --format FORMAT "
            f"-o net.json, FORMAT one of {_names(reading=True)}"
        )
    return key


def _sniff(text: str) -> str | None:
    """Recognize a format by the beginning of a text."""
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
    """Return the format with the longest suffix that the file name ends with."""
    matches = [
        (len(suffix), key)
        for key, entry in FORMATS.items()
        for suffix in entry.suffixes
        if entry.supports(reading) and path.name.lower().endswith(suffix)
    ]
    return max(matches)[1] if matches else None
