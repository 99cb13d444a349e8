"""How answers are told: in which units, and in which files, none of which may replace an input."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import AsJson, KeepProvenance, LinkBandwidth, Output, command_of
from alltoall.cli.show import STANDARD_OUTPUT, deliver
from alltoall.cli.wording import lines_of_answer
from alltoall.errors import AlltoallError, UsageError
from alltoall.ir.answer import made_now
from alltoall.ir.fabric import Fabric, link_rate
from alltoall.ir.quantities import parse_seconds, plain_number
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import in_order, physical
from alltoall.ir.topology import Topology
from alltoall.registry import deferred
from alltoall.runtime.sizes import parse_sizes
from alltoall.settings import SolveSettings, now
from alltoall.topologies.given import Answer

load: Callable[[str | Path], object] = deferred("alltoall.loading:load")

OUTPUTS = ("output", "draw", "patch", "checkpoint")
"""Parameters that name files to write; all others may name files to read."""

RENEWABLE = (("output", "spec"), ("output", "last"))
"""An output and an input that may be one file, if it holds what the verb writes."""

KINDS = {"topology": Topology, "route": Routes, "schedule": Schedule}
"""What verbs write that can be their input, too."""


def check_outputs(context: typer.Context) -> None:
    """Raise if outputs share standard output, or if one would replace an input.

    A file of the kind that the verb writes may be input and output at once.
    """
    given, kind = context.params, KINDS.get(context.info_name or "")
    outputs = {key: Path(given[key]) for key in OUTPUTS if given.get(key) is not None}
    printed = list(outputs.values()).count(STANDARD_OUTPUT)
    if printed > 1 or (printed and given["as_json"]):
        raise UsageError("more than one thing for standard output; give a file a name but -")
    for (name, output), (key, path) in product(outputs.items(), _inputs(given)):
        renewable = kind if (name, key) in RENEWABLE else None
        if _is_same_file(output, path) and not _holds(path, renewable):
            raise UsageError(
                f"{output} is an input, which the output would replace; name another file"
            )


def _inputs(given: Mapping[str, Any]) -> Iterator[tuple[str, str | Path]]:
    """Yield the name and value of every parameter that may be a file to read."""
    for key, value in given.items():
        if key not in OUTPUTS:
            values = value if isinstance(value, list | tuple) else (value,)
            yield from ((key, each) for each in values if isinstance(each, str | Path))


def _is_same_file(one: Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file that exists."""
    with suppress(OSError, ValueError):
        return one.samefile(other)
    return False


def _holds(path: str | Path, kind: type | None) -> bool:
    """Return whether a file holds an artefact of a kind, if there is one."""
    with suppress(AlltoallError, OSError):
        return kind is not None and isinstance(load(path), kind)
    return False


file_bytes: Callable[..., bytes] = deferred("alltoall.ir.files.artefacts:file_bytes")


@dataclass(frozen=True)
class Telling:
    """What was asked of how an answer is told, and since when it is waited for.

    `given` is the rate of a link of capacity 1 in the words of the caller. `rate` is that in bytes
    per second, from the caller or the topology; without it all is in shards.
    """

    context: typer.Context
    given: str | None
    shard_bytes: int | None
    output: Path | None
    provenance: bool
    as_json: bool
    started: float
    rate: float | None = None

    def on(self, topology: Topology) -> "Telling":
        """Return the same with the rate of a link, which the caller or the topology states."""
        rate = link_rate(topology, self.given)
        if self.shard_bytes is not None and rate is None:
            raise UsageError(
                "--bytes without --link-bandwidth; add what a link of capacity 1 carries, such as "
                "100G, or give capacities their units in an edge list"
            )
        return replace(self, rate=rate)

    def shard_times(self, option: str, given: float | str) -> float:
        """Return a cost in shard times: a number is one already, a text such as `2us` a time."""
        if not isinstance(given, str):
            return given
        if self.rate is None or self.shard_bytes is None:
            raise UsageError(
                f"{option} {given} is a time; add the size of a shard (--bytes) and what a link "
                "carries (--link-bandwidth), or give it in shard times, as a number"
            )
        return parse_seconds(given) * self.rate / self.shard_bytes

    def tell(
        self,
        answer: Answer,
        summary: dict[str, Any],
        settings: SolveSettings,
        step_latency: float = 0.0,
    ) -> None:
        """Save an answer with where it came from, and print what sums it up."""
        seconds = round(now() - self.started, 3)
        summary = in_order({**summary, "seconds": seconds}) | self._scaled(answer, step_latency)
        summary["notes"] = [*summary["notes"], *self._notes(answer)]
        made = made_now(answer, **self._known(settings) | {"seconds": seconds})
        files = {self.output: partial(file_bytes, self.output, made, self.provenance)}
        deliver(summary, self.as_json, lines_of_answer(summary), files)

    def _fabric(self, answer: Answer) -> Fabric | None:
        return None if self.rate is None else Fabric(answer.problem.topology, self.rate)

    def _scaled(self, answer: Answer, step_latency: float) -> dict[str, Any]:
        """Return what the answer is in bytes and seconds, if it is known what capacity 1 is."""
        fabric = self._fabric(answer)
        return {} if fabric is None else physical(answer, fabric, self.shard_bytes, step_latency)

    def _notes(self, answer: Answer) -> list[str]:
        fabric = self._fabric(answer)
        stated = answer.problem.topology.bytes_per_second is not None
        note = None if fabric is None or stated else fabric.note()
        return [] if note is None else [note]

    def _known(self, settings: SolveSettings) -> dict[str, Any]:
        """Return what is known of an answer of this call."""
        asked = {"command": command_of(self.context), "seed": self.context.params["seed"]}
        return settings.known() | asked


def asked_telling(
    context: typer.Context,
    link_bandwidth: LinkBandwidth = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="Of a shard, which is what one terminal sends to one other, such as 1M; "
            "with --link-bandwidth, or a SPEC or file whose capacities have units.",
        ),
    ] = None,
    output: Output = None,
    provenance: KeepProvenance = True,
    as_json: AsJson = False,
) -> Telling:
    """Return how the words of a call ask for an answer; what cannot be is refused before work."""
    check_outputs(context)
    size = _one_size(shard) if shard is not None else None
    return Telling(context, link_bandwidth, size, output, provenance, as_json, now())


def parse_cost(given: str | float) -> float | str:
    """Return a number of shard times, or the text of a time such as `2us`, which is one."""
    plain = plain_number(given)
    if plain is None:
        parse_seconds(given)
    return str(given) if plain is None else plain


def _one_size(text: str) -> int:
    if ":" in text:
        raise UsageError(f"--bytes {text}; expected one size, such as 1M")
    return parse_sizes(text)[0]
