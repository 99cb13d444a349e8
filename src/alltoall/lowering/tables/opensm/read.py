"""Read forwarding tables of OpenSM: ours, or what `opensm` dumps itself on our netlist.

A destination is known by its GUID, as in OpenSM, which finds its LID by that.
"""

import re

import numpy as np

from alltoall.errors import FormatError
from alltoall.lowering.tables.opensm.emit import (
    ADAPTER,
    LARGEST_LID,
    ONE_LAYER,
    SIGN,
    SWITCH,
    first_line,
)
from alltoall.lowering.tables.opensm.forwarding import ForwardingFile
from alltoall.topologies.formats.ibsim import ADAPTER_GUID, MAX_PORTS, SWITCH_GUID

HEADER = re.compile(
    r"Unicast lids \[0-([0-9]{1,5})\] of switch Lid ([0-9]{1,5}) guid 0x([0-9a-f]{16}) \('.*'\):"
)
ROW = re.compile(
    rf"0x([0-9a-f]{{4}}) ([0-9]{{3}}) # ({ADAPTER}|{SWITCH}) portguid 0x([0-9a-f]{{16}}): '.*'"
)
END = re.compile(r"([0-9]{1,5}) lids dumped")


def read_opensm(text: str, where: str) -> ForwardingFile:
    """Read the tables strictly; which ways they make is for a topology to tell."""
    tables, lines = _Tables(where), text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("#"):
            tables.take(line, f"{where}: line {number}")
    file = tables.finished(ONE_LAYER in lines[:3])
    stated = first_line(file.switches, len(np.unique(file.goal)))
    if lines[0].startswith(SIGN) and lines[0] != stated:
        raise FormatError(f"{where}: line 1: is {lines[0][:80]!r}; its tables make it {stated!r}")
    return file


class _Tables:
    """Tables under construction, line by line."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._node: int | None = None
        self._most = 0
        self._nodes: set[int] = set()
        self._rows: dict[tuple[int, int], int] = {}
        self._guid_of: dict[int, int] = {}

    def take(self, line: str, here: str) -> None:
        """Take the next line."""
        if self._node is None:
            self._begin(line, here)
        elif found := ROW.fullmatch(line):
            guid = int(found[4], 16)
            self._add(guid, int(found[1], 16), int(found[2]), found[3] == ADAPTER, here)
        elif (found := END.fullmatch(line)) and int(found[1]) == self._most:
            self._node = None
        else:
            raise FormatError(
                f"{here}: is {line[:60]!r}; expected a row `0xLID PORT # TYPE portguid 0xGUID: "
                f"'NAME'`, or `{self._most} lids dumped`"
            )

    def _begin(self, line: str, here: str) -> None:
        found = HEADER.fullmatch(line)
        if found is None:
            raise FormatError(
                f"{here}: is {line[:60]!r}; expected `Unicast lids [0-LID] of switch Lid N guid "
                "0xGUID ('NAME'):`"
            )
        self._most, self._node = int(found[1]), self._switch(int(found[3], 16), here)
        if self._most > LARGEST_LID:
            raise FormatError(f"{here}: LID {self._most}; expected at most {LARGEST_LID}")
        if self._node in self._nodes:
            raise FormatError(f"{here}: switch S{self._node} has a table already")
        self._nodes.add(self._node)

    def _add(self, guid: int, lid: int, port: int, adapter: bool, here: str) -> None:
        if not 1 <= lid <= self._most or port > MAX_PORTS:
            raise FormatError(
                f"{here}: LID {lid} and port {port}; expected 1 to {self._most}, and 0 to "
                f"{MAX_PORTS}"
            )
        if self._guid_of.setdefault(lid, guid) != guid:
            raise FormatError(f"{here}: LID {lid} has another GUID, 0x{guid:x}, than before")
        if self._node is None or (self._node, guid) in self._rows:
            raise FormatError(f"{here}: the destination is there twice")
        if adapter and (guid < ADAPTER_GUID or guid % 2 == 0 or guid >= SWITCH_GUID):
            raise FormatError(f"{here}: GUID 0x{guid:x} is none that ibsim gives to an adapter")
        if not adapter and (self._switch(guid, here) == self._node) != (port == 0):
            raise FormatError(
                f"{here}: port {port}; expected 0 for the switch itself, and it alone"
            )
        self._rows[self._node, guid] = port

    def _switch(self, guid: int, here: str) -> int:
        if not SWITCH_GUID <= guid < SWITCH_GUID + LARGEST_LID:
            raise FormatError(f"{here}: GUID 0x{guid:x} is none that ibsim gives to a switch")
        return guid - SWITCH_GUID

    def finished(self, one_layer: bool) -> ForwardingFile:
        """Return all tables."""
        if self._node is not None or not self._nodes:
            raise FormatError(f"{self._where}: ends within a table; the file may be truncated")
        if max(self._nodes) + 1 != len(self._nodes):
            missing = next(node for node in range(len(self._nodes)) if node not in self._nodes)
            raise FormatError(f"{self._where}: switch S{missing} has no table")
        rows = [(*key, port) for key, port in self._rows.items() if key[1] < SWITCH_GUID]
        at, guid, through = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        none = np.zeros(0, dtype=np.int64)
        return ForwardingFile(
            kind="opensm",
            name=self._where,
            source=none,
            destination=none,
            start=np.zeros(1, dtype=np.int64),
            node=none,
            port=none,
            weight=np.zeros(0),
            layer=None,
            switches=len(self._nodes),
            at=at,
            goal=(guid - ADAPTER_GUID) // 2,
            through=through,
            one_layer=one_layer,
        )
