"""The project's own JSON form of a topology, `alltoall.topology/1`."""

from alltoall.errors import FormatError
from alltoall.ir.files.artefacts import file_bytes
from alltoall.ir.files.json.problem import topology_from_json
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.topology import MAX_LINKS, MAX_NODES, Topology

OTHER_ARRAYS = 1_000
"""Most brackets besides those of links."""


def read(text: str, where: str, name: str) -> Topology:
    """Read the JSON form; `name` is used if the file has none."""
    # Checked before anything of that size is parsed; every link is an array.
    if text.count("[") > MAX_LINKS + OTHER_ARRAYS:
        raise FormatError(f"{where}: more links than the limit of {MAX_LINKS:,}")
    obj = parse_json(text, where)
    if not isinstance(obj, dict):
        raise FormatError(f"{where}: expected a JSON object that describes a topology")
    nodes = obj.get("nodes")
    # Checked before anything of that size is allocated.
    if isinstance(nodes, int) and nodes > MAX_NODES:
        raise FormatError(f"{where}: {nodes} nodes; expected at most {MAX_NODES:,}")
    return topology_from_json({"name": name} | obj, where)


def write(topology: Topology) -> str:
    """Return the file of a topology, with its provenance if known."""
    return file_bytes(None, topology).decode()
