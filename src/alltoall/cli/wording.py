"""Results in words for people; the JSON has the names of the fields.

`lines_of_answer` is for flows, routes and schedules, `lines_of` for results of checks: a line per
number.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from alltoall.cli.show import Lines, columns, line_of
from alltoall.ir.noun import Provenance
from alltoall.ir.summaries import SAME, headline, link_in_words, proof_in_words
from alltoall.ir.words import beyond_rounding, counted, percent, seconds_in_words
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
"""Label and format of each field; the others are labelled by name."""


def lines_of(found: Mapping[str, Any]) -> Lines:
    """Return the lines for people, in the order of the fields."""
    return dict(_line(key, value) for key, value in found.items())


def _line(key: str, value: Any) -> tuple[str, str | list[str]]:
    if key == "correct":
        return "bytes", "each arrives where it must" if value else "wrong"
    if key == "gap":
        return "above bound", percent(value)
    if key == "provenance":
        return "made by", str(Provenance(**value))
    if key == "layers":
        return "layers", "not assigned" if value is None else str(value)
    label, form = WORDING.get(key, (key.replace("_", " "), "{}"))
    if isinstance(value, dict):
        return label, [f"{each}: {line_of(found)}" for each, found in value.items()]
    simple = isinstance(value, int | float) and not isinstance(value, bool)
    text = form.format(value if simple else line_of(value))
    return label, re.sub(r"^1 (\w+)s\b", r"1 \1", text) if simple else text


def lines_of_answer(summary: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return the lines about a flow, routes or a schedule: the answer first, notes last."""
    return {
        "": [*headline(summary), ""],
        "proof": proof_in_words(summary),
        **dict(_about_routing(summary)),
        **dict(_about_search(summary)),
        "network": _network(summary),
        "saturated": summary["saturated"],
        "took": f"{summary['seconds']:.2g} s by {summary['method']}",
        **({"notes": summary["notes"]} if summary["notes"] else {}),
    }


def _network(summary: Mapping[str, Any]) -> str:
    nodes, links = counted(summary["nodes"], "node"), summary["links"]
    if summary["terminals"] < summary["nodes"]:
        nodes += f" ({counted(summary['terminals'], 'terminal')})"
    both = summary["bidirectional"]
    sort = counted(links // 2, "cable") if both else counted(links, "link")
    rate = link_in_words(summary)
    of_rate = " of " + re.sub(r"(\w)bps", r" \1bit/s", rate) if rate else ""
    return f"{summary['topology']}: {nodes}, {sort}{of_rate}"


def _about_routing(summary: Mapping[str, Any]) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the lines about the routes, steps and chunks of an answer."""
    if "routes" in summary:
        layers, most = summary["layers"], summary["max_routes_per_pair"]
        channels = "no virtual channels assigned"
        if layers is not None:
            channels = counted(layers, "virtual channel")
        yield "routes", f"{summary['routes']:,}, at most {most} per pair, {channels}"
    if "steps" in summary:
        yield "steps", f"{counted(summary['steps'], 'step')}, {summary['sends']:,} sends"
    if "common_factor_chunks" in summary:
        common, none = summary["common_factor_chunks"], f"no common factor up to {MOST_CHUNKS}"
        yield "chunks", f"{common} per shard" if common else f"{none}; --chunks C makes one"
    elif "chunks_per_shard" in summary:
        yield "chunks", _chunks_of_schedule(summary)
    if "fractional_time" in summary and beyond_rounding(summary["loss"]) >= SAME:
        yield "fractional", f"optimum {summary['fractional_time']:.6g} with as many steps"
    if summary.get("tradeoff"):
        table = [["", "relays", "steps", "chunks", "operations", "time", "total"]]
        for row in summary["tradeoff"]:
            numbers = (row["relays"], row["steps"], row["chunks_per_shard"], row["operations"])
            times = (f"{row['time']:.6g}", f"{row['total']:.6g}")
            table.append(["*" if row["chosen"] else "", *map(str, numbers), *times])
        yield "trade-off", columns(table)


def _chunks_of_schedule(summary: Mapping[str, Any]) -> str:
    """Return the loss of this number of chunks, and the least loss of fewer."""
    chunks, loss = summary["chunks_per_shard"], beyond_rounding(summary["loss"])
    text = f"{chunks} per shard"
    if loss >= SAME:
        text += f", {percent(loss)} above the fractional optimum"
    floor = {float(each): least for each, least in summary["least_loss_by_chunks"].items()}
    fewer = {each: least for each, least in floor.items() if each < chunks and least >= SAME}
    if not fewer:
        return text
    best = min(fewer, key=lambda each: (fewer[each], each))
    return f"{text}; {best:g} would cost at least {percent(fewer[best])} more"


def _about_search(summary: Mapping[str, Any]) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the lines about jobs, times in seconds, other demands and failures."""
    if "levels" in summary:
        table = [["level", "rate", "time", "weight", "job"]]
        for job in sorted(summary["jobs"], key=lambda each: (each["level"], each["name"])):
            numbers = (f"{job[key]:.6g}" for key in ("rate", "time", "weight"))
            table.append([str(job["level"]), *numbers, job["name"]])
        yield "jobs", columns(table, words=[-1])
        gaps = ((each["level"], percent(each["gap"]), each["bound"]) for each in summary["levels"])
        bounds = [f"{at}: {gap} below the proven limit {bound:.6g}" for at, gap, bound in gaps]
        yield "levels", bounds
    if "transfer_seconds" in summary:
        keys = ("transfer_seconds", "bound_seconds")
        time, bound = (seconds_in_words(summary[key]) for key in keys)
        size, rate = counted(summary["bytes"], "byte"), f"{summary['transfer_GBps']:.3f} GB/s"
        yield "transfer", f"{time} for shards of {size}, at least {bound}; {rate} per node"
    if found := summary.get("robust"):
        losses = f"{percent(found['median_loss'])} (median) to {percent(found['worst_loss'])}"
        demands = f"{counted(found['demands'], 'other demand')} of {', '.join(found['family'])}"
        yield "robust", f"loses {losses} (worst) under {demands}"
    if found := summary.get("last"):
        old, noun = ("schedule loses", "chunk") if "steps" in summary else ("routes lose", "route")
        lost, repaired = percent(found["unserved"]), percent(found["repaired_gap"])
        kept = f"the old {old} {lost} of the traffic; minimal repair is {repaired} above the bound"
        yield "failure", [kept, f"{counted(found['moved'], noun)} moved"]
