"""Background traffic: rates on links, subtracted from their capacities."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np

from alltoall.errors import FormatError, InputError, UsageError
from alltoall.ir.arrays import Floats, frozen
from alltoall.ir.files.fields import short
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.flow import Flow
from alltoall.ir.quantities import plain_number
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology

GivenBackground: TypeAlias = Flow | Routes | Floats | str | PathLike[str] | None
"""Rates of links; a flow or routes at full speed; or a file: `tail,head,rate`, or FILE@SHARE."""

MAX_BACKGROUND_BYTES = 256 << 20
"""Largest file of rates to read."""


def without_background(topology: Topology, background: GivenBackground) -> Topology:
    """Subtract background traffic from the capacities."""
    if background is None:
        return topology
    left = topology.capacity - background_rates(background, topology)
    full = np.flatnonzero(left <= 1e-12 * topology.capacity)
    if len(full):
        link = int(full[0])
        used = topology.capacity[link] - left[link]
        more = f" ({len(full)} such links)" if len(full) > 1 else ""
        raise InputError(
            f"the background uses {used:g} of {topology.capacity[link]:g} on "
            f"{topology.link_name(link)}, which leaves nothing{more}; expected less than each link "
            "has. Scale it (FILE@0.5), or remove the link"
        )
    return replace(topology, capacity=left)


def background_rates(background: GivenBackground, topology: Topology) -> Floats:
    """Return the background rate of each link, in the unit of its capacity."""
    if isinstance(background, str | PathLike):
        return _rates_of_file(str(background), topology)
    if isinstance(background, Flow | Routes):
        return _rates_of_answer(background, topology, "background")
    rates = frozen(np.asarray(background), np.float64)
    if rates.shape != (topology.links,) or not np.all((rates >= 0) & np.isfinite(rates)):
        raise InputError(
            f"a background of shape {rates.shape}; expected a rate of 0 or more for each of the "
            f"{topology.links} links of {topology.name}"
        )
    return rates


def _rates_of_file(words: str, topology: Topology) -> Floats:
    # Imported here: all kinds of files are many modules, and few calls have a background.
    from alltoall.ir.files.artefacts import is_saved, saved_from_json  # noqa: PLC0415
    from alltoall.ir.files.npz import artefact_from_bytes, is_archive  # noqa: PLC0415
    from alltoall.ir.files.text import decode, read_bytes  # noqa: PLC0415

    name, at, share = words.rpartition("@")
    name, factor = (name, plain_number(share)) if at and name else (words, 1.0)
    if factor is None or not 0 <= factor < np.inf:
        raise UsageError(f"background @{share}; expected a share after the file, such as @0.5")
    data, where = read_bytes(Path(name), MAX_BACKGROUND_BYTES), str(Path(name))
    if is_archive(data):
        return factor * _rates_of_answer(artefact_from_bytes(data, where), topology, where)
    text = decode(data, where)
    if text.lstrip()[:1] != "{":
        return factor * _rates_of_lines(text, topology, where)
    value = parse_json(text, where)
    if not is_saved(value):
        raise FormatError(f"{where}: JSON of neither flow nor routes; expected either, or lines")
    return factor * _rates_of_answer(saved_from_json(value, where), topology, where)


def _rates_of_answer(answer: object, topology: Topology, where: str) -> Floats:
    if not isinstance(answer, Flow | Routes):
        raise UsageError(
            f"{where}: a {type(answer).__name__} in the place of a background; expected a flow, "
            "routes, or lines of tail,head,rate"
        )
    own = answer.problem.topology
    if not (np.array_equal(own.tail, topology.tail) and np.array_equal(own.head, topology.head)):
        raise InputError(
            f"{where}: a background on the {own.links} links of {own.name}; expected the "
            f"{topology.links} of {topology.name}"
        )
    return answer.mean_load() if isinstance(answer, Flow) else answer.load() / answer.time


def _rates_of_lines(text: str, topology: Topology, where: str) -> Floats:
    """Read lines `tail,head,rate`; parallel links share a rate in proportion to capacity."""
    rates = np.zeros(topology.links)
    for number, line in enumerate(text.splitlines(), start=1):
        here = f"{where}: line {number}"
        cells = line.partition("#")[0].replace(",", " ").split()
        if not cells or cells == ["tail", "head", "rate"]:
            continue
        if len(cells) != 3:
            raise FormatError(f"{here}: {short(line)}; expected tail,head,rate")
        try:
            tail, head, rate = *map(topology.node_of, cells[:2]), float(cells[2])
        except (UsageError, ValueError) as error:
            raise FormatError(f"{here}: {error}") from None
        links = np.flatnonzero((topology.tail == tail) & (topology.head == head))
        if not len(links) or not 0 <= rate < np.inf:
            expected = f"expected a link of {topology.name} and a rate of 0 or more"
            raise FormatError(f"{here}: {short(line)}; {expected}")
        rates[links] += rate * topology.capacity[links] / topology.capacity[links].sum()
    return rates
