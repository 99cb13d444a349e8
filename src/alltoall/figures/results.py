"""The page of results, written from what figures left in a folder, and never by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.figures.figure import SIZES, Figure
from alltoall.figures.run import stem
from alltoall.ir.files.text import read_bytes, read_text, write_bytes, write_text

HEAD = """# Results

Written by `alltoall reproduce`; do not edit. Every claim of the paper that this tool can check,
what we measured, and whether it holds. The data behind a picture are in the CSV file of its name,
which the same command makes anew; `alltoall reproduce` says how long each takes. How near is
near, and how large is large, is our choice where the paper gives no number: the limits are in
`judge` of each figure.
"""

PICTURE = ".svg"


def write_results(page: Path, figures: Sequence[Figure], folder: Path) -> None:
    """Write the page of all figures that a folder has, and its pictures beside it."""
    found = [each for each in (_newest(figure, folder) for figure in figures) if each]
    if not found:
        raise FormatError(f"{folder}: no figures there; expected what `alltoall reproduce` writes")
    parts = [HEAD, _summary(found), _refuted(found)]
    for told in found:
        picture = Path(f"{told['stem']}{PICTURE}")
        write_bytes(page.parent / page.stem / picture.name, read_bytes(folder / picture))
        parts.append(_section(told, f"{page.stem}/{picture.name}"))
    write_text(page, "\n".join(parts))


def _newest(figure: Figure, folder: Path) -> dict[str, Any] | None:
    """Return what is known of a figure: of the whole, if any of it was made, else of less."""
    for size in SIZES:
        name = stem(figure, size)
        path = folder / f"{name}.json"
        told: dict[str, Any] = json.loads(read_text(path)) if path.exists() else {"rows": 0}
        if told["rows"]:
            return {**told, "stem": name}
    return None


def _summary(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of figures."""
    lines = [
        "| figure | of the paper | size | claims that hold | date | machine |",
        "|---|---|---|---|---|---|",
    ]
    for told in found:
        judged = [each for each in told["findings"] if each["holds"] is not None]
        held = sum(each["holds"] for each in judged)
        size = told["size"] if told["complete"] else f"{told['size']}, not complete"
        lines.append(
            f"| [`{told['figure']}`](#{told['figure']}) | {told['source']} | {size} | "
            f"{held} of {len(judged)} | {told['date']} | {told['machine']} |"
        )
    return "\n".join([*lines, ""])


def _refuted(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the claims that do not hold for us, each with its reason."""
    lines = [
        f"- `{told['figure']}`: {each['claim']}. We measured: {each['measured']}. {each['reason']}"
        for told in found
        for each in told["findings"]
        if each["holds"] is False
    ]
    return "\n".join(["## What does not hold for us", "", *(lines or ["Nothing."]), ""])


def _section(told: Mapping[str, Any], picture: str) -> str:
    rows = [
        f"| {each['claim']} | {each['measured']} | {_verdict(each)} |" for each in told["findings"]
    ]
    return "\n".join(
        [
            f"## {told['figure']}",
            "",
            f"{told['title']} ({told['source']}); {told['size']}, {told['rows']} rows.",
            "",
            f"![{told['title']}]({picture})",
            "",
            "| claim | measured | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _verdict(finding: Mapping[str, Any]) -> str:
    word = {True: "holds", False: "**does not hold**", None: "not measured"}[finding["holds"]]
    return f"{word}: {finding['reason']}" if finding["reason"] else word
