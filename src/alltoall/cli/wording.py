"""What the verbs found, in words for people; the JSON has the names of the fields.

`lines_of_answer` is for flows, routes and schedules: a line may say several numbers. `lines_of` is
for what checks found: a line per number.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from alltoall.cli.show import columns, line_of
from alltoall.ir.noun import Provenance
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.words import beyond_rounding, counted, seconds_in_words, status_in_words
from alltoall.settings import MOST_CHUNKS

WORDING = {
    "format": ("target", "{}"),
    "time": ("time", "{:.9g}"),
    "bound": ("bound", "{:.9g}, certified"),
    "bound_slack": ("proof", "the optimum is at most {:.2%} above the bound"),
    "max_load": ("fullest link", "{:.9g} of its capacity"),
    "groups": ("flows", "{:,}"),
    "routes": ("routes", "{:,}"),
    "max_routes_per_pair": ("per pair", "{} routes at most"),
    "chunks_per_shard": ("chunks", "{} per shard"),
    "max_chunks_per_shard": ("largest shard", "{:,} chunks"),
    "chunk_sizes": ("sizes", "the file has none: time and bound take all chunks to be {}"),
    "padding": ("padding", "{:.2%} more data, as all chunks are as large as the largest"),
    "sends": ("sends", "{:,}"),
    "max_sends_per_link": ("busiest pair", "{:,} sends"),
    "scratch_chunks": ("scratch", "{:,} chunks at most on a rank"),
    "thread_blocks": ("thread blocks", "{} at most on a rank"),
    "runtimes": ("accepted by", "{}"),
    "refused_by": ("refused by", "{}"),
    "queue_pairs": ("queue pairs", "{:,}"),
    "template_time": ("as a template", "{:.6g} under the demand"),
    "template_bound": ("at least", "{:.6g}, certified"),
    "template_loss": ("loss", "{:.1%}"),
    "bytes": ("size", "{:,} bytes"),
    "seconds": ("took", "{:.2f} s"),
}
"""The label of a field, and how its value is written; others are labelled by their name."""


def lines_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines for people, in the order of the fields."""
    return dict(_line(key, value) for key, value in found.items())


def _line(key: str, value: Any) -> tuple[str, str]:
    if key == "correct":
        return "bytes", "each arrives where it must" if value else "wrong"
    if key == "gap":
        return "gap", f"{beyond_rounding(value):.2e}"
    if key == "provenance":
        return "made by", str(Provenance(**value))
    if key == "layers":
        return "layers", "not assigned" if value is None else str(value)
    label, form = WORDING.get(key, (key.replace("_", " "), "{}"))
    simple = isinstance(value, int | float) and not isinstance(value, bool)
    text = form.format(value if simple else line_of(value))
    return label, re.sub(r"^1 (\w+)s\b", r"1 \1", text) if simple else text


def lines_of_answer(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines about a flow, routes or a schedule, of those that there is something for."""
    said = ((label, text(summary)) for label, text in ANSWER.items())
    return {label: text for label, text in said if text is not None}


def _time(summary: Mapping[str, Any]) -> str:
    if "flow" in summary:
        return f"{summary['time']:.9g} (flow {summary['flow']:.9g})"
    steps = f" in {counted(summary['steps'], 'step')}" if "steps" in summary else ""
    return f"{summary['time']:.9g}{steps}, verified"


def _routes(summary: Mapping[str, Any]) -> str | None:
    if "routes" not in summary:
        return None
    return f"{summary['routes']}, at most {summary['max_routes_per_pair']} per pair"


def _layers(summary: Mapping[str, Any]) -> str | None:
    return _line("layers", summary["layers"])[1] if "layers" in summary else None


def _fractional(summary: Mapping[str, Any]) -> str | None:
    if "fractional_time" not in summary:
        return None
    return f"{summary['fractional_time']:.9g} if shards could be cut at will"


def _chunks(summary: Mapping[str, Any]) -> str | None:
    if "common_factor_chunks" in summary:
        common = summary["common_factor_chunks"]
        if common:
            return f"{common} by common factor"
        return f"no common factor up to {MOST_CHUNKS}; --chunks C makes one"
    return _chunks_of_schedule(summary) if "chunks_per_shard" in summary else None


def _chunks_of_schedule(summary: Mapping[str, Any]) -> str:
    """Say what this number of chunks costs, and what fewer would at least (--sweep finds all)."""
    chunks, loss = summary["chunks_per_shard"], beyond_rounding(summary["loss"])
    text = f"{chunks} per shard, {loss:.3%} above the fractional time"
    floor = {float(each): least for each, least in summary["least_loss_by_chunks"].items()}
    fewer = {each: least for each, least in floor.items() if each < chunks and least > 0}
    if not fewer:
        return text
    best = min(fewer, key=lambda each: (fewer[each], each))
    return f"{text}; {best:g} would be at least {fewer[best]:.3%} above"


def _tradeoff(summary: Mapping[str, Any]) -> str | None:
    """Say what else there was to choose from: a row each, the chosen one marked."""
    rows = summary.get("tradeoff")
    if not rows:
        return None
    table: list[tuple[str, ...]] = [
        ("", "relays", "steps", "chunks", "operations", "time", "total")
    ]
    for row in rows:
        numbers = (row["relays"], row["steps"], row["chunks_per_shard"], row["operations"])
        times = (f"{row['time']:.6g}", f"{row['total']:.6g}")
        table.append(("*" if row["chosen"] else "", *map(str, numbers), *times))
    return "\n".join(columns(table))


def _jobs(summary: Mapping[str, Any]) -> str | None:
    """Say what each job has, and what is proven of its level."""
    if "levels" not in summary:
        return None
    table: list[tuple[str, ...]] = [("level", "rate", "time", "weight", "job")]
    for job in sorted(summary["jobs"], key=lambda each: (each["level"], each["name"])):
        numbers = (f"{job[key]:.6g}" for key in ("rate", "time", "weight"))
        table.append((str(job["level"]), *numbers, job["name"]))
    return "\n".join(columns(table, words=[-1]))


def _levels(summary: Mapping[str, Any]) -> str | None:
    levels = summary.get("levels")
    return levels and "\n".join(
        f"{each['level']}: at most {each['bound']:.6g} by weight, certified, "
        f"gap {beyond_rounding(each['gap']):.2e}"
        for each in levels
    )


def _throughput(summary: Mapping[str, Any]) -> str | None:
    if "throughput_GBps" not in summary:
        return None
    bound = summary.get("throughput_bound_GBps")
    most = "" if bound is None else f", at most {bound:.3f}"
    return f"{summary['throughput_GBps']:.3f} GB/s per node{most}"


def link_in_words(summary: Mapping[str, Any]) -> str | None:
    """Say which rate a link has, or the least and the largest, if that is known."""
    if "link_GBps" not in summary:
        return None
    least, most = (rate_in_words(rate * 1e9) for rate in summary["link_GBps"])
    return least if least == most else f"{least} to {most}"


def _transfer(summary: Mapping[str, Any]) -> str | None:
    if "transfer_seconds" not in summary:
        return None
    size, bound = counted(summary["bytes"], "byte"), seconds_in_words(summary["bound_seconds"])
    return (
        f"{seconds_in_words(summary['transfer_seconds'])} for shards of {size}, at least {bound}; "
        f"{summary['transfer_GBps']:.3f} GB/s per node"
    )


def _last(summary: Mapping[str, Any]) -> str | None:
    found = summary.get("last")
    if found is None or "steps" in summary:
        return None
    return (
        f"{found['unserved']:.2%} of the demand does not arrive if they stay as they are; "
        f"{found['repaired_gap']:.1%} above the bound if only that moves\n"
        f"{counted(found['moved'], 'route')} moved now"
    )


def _last_schedule(summary: Mapping[str, Any]) -> str | None:
    found = summary.get("last")
    if found is None or "steps" not in summary:
        return None
    return (
        f"{found['unserved']:.2%} of the demand does not arrive if it stays as it is; at least "
        f"{found['repaired_gap']:.1%} above the bound if only that moves"
    )


def _robust(summary: Mapping[str, Any]) -> str | None:
    found = summary.get("robust")
    return found and (
        f"loses {found['median_loss']:.1%} (median) to {found['worst_loss']:.1%} (worst) under "
        f"{counted(found['demands'], 'demand')} of {', '.join(found['family'])} that it was not "
        "made with"
    )


def _phases(summary: Mapping[str, Any]) -> str | None:
    phases = summary.get("phases")
    return phases and ", ".join(f"{key} {line_of(value)}" for key, value in phases.items())


ANSWER: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "topology": lambda summary: (
        f"{summary['topology']}: {summary['terminals']} terminals, {summary['nodes']} nodes, "
        f"{summary['links']} links"
    ),
    "time": _time,
    "bound": lambda summary: f"{summary['bound']:.9g}, certified",
    "gap": lambda summary: (
        f"{beyond_rounding(summary['gap']):.2e} ({status_in_words(summary['status'])})"
    ),
    "bottleneck": lambda summary: summary["bottleneck"].replace("; ", "\n"),
    "routes": _routes,
    "layers": _layers,
    "fractional": _fractional,
    "chunks": _chunks,
    "trade-off": _tradeoff,
    "jobs": _jobs,
    "levels": _levels,
    "notes": lambda summary: "\n".join(summary["notes"]) or None,
    "link": link_in_words,
    "throughput": _throughput,
    "transfer": _transfer,
    "phases": _phases,
    "robust": _robust,
    "last routes": _last,
    "last schedule": _last_schedule,
    "method": lambda summary: f"{summary['method']}, {summary['seconds']:.2f} s",
}
"""The label of each line about an answer, in order, and what it says, if anything."""
