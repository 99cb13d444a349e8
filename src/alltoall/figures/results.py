"""The page of results, written from the files of figures in a folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.figures.figure import SIZES, Figure, Verdict
from alltoall.figures.run import stem
from alltoall.ir.files.text import read_bytes, read_text, write_bytes, write_text

HEAD = """# Results

Written by `alltoall reproduce`; do not edit. Every claim of the paper that this tool can check: the
quantity it is about, the band in which we call it reproduced, our measurement, and the verdict.
Bands are stated in the code of each figure, beside the claim, before anything is measured. A claim
is judged by its own quantity only; where we cannot measure that, it is not comparable here. The
rows behind a picture are in the CSV file of its name, which the same command makes anew.
"""

PICTURE = ".svg"


def write_results(page: Path, figures: Sequence[Figure], folder: Path) -> None:
    """Write the page of all figures in a folder, with pictures beside it."""
    found = [each for each in (_newest(figure, folder) for figure in figures) if each]
    if not found:
        raise FormatError(f"{folder}: no figures there; expected what `alltoall reproduce` writes")
    parts = [
        *(HEAD, _summary(found)),
        _others(found, Verdict.NOT_REPRODUCED, "Not reproduced"),
        _others(found, Verdict.NOT_COMPARABLE, "Not comparable here"),
    ]
    for told in found:
        picture = Path(f"{told['stem']}{PICTURE}")
        write_bytes(page.parent / page.stem / picture.name, read_bytes(folder / picture))
        parts.append(_section(told, f"{page.stem}/{picture.name}"))
    write_text(page, "\n".join(parts))


def _newest(figure: Figure, folder: Path) -> dict[str, Any] | None:
    """Return the findings of a figure in its largest size."""
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
        "| figure | of the paper | size | reproduced | not comparable | date | machine |",
        "|---|---|---|---|---|---|---|",
    ]
    for told in found:
        verdicts = [each["verdict"] for each in told["findings"]]
        other = verdicts.count(Verdict.NOT_COMPARABLE)
        same = f"{verdicts.count(Verdict.REPRODUCED)} of {len(verdicts) - other}"
        size = told["size"] if told["complete"] else f"{told['size']}, not complete"
        lines.append(
            f"| [`{told['figure']}`](#{told['figure']}) | {told['source']} | {size} | {same} | "
            f"{other or ''} | {told['date']} | {told['machine']} |"
        )
    return "\n".join([*lines, ""])


def _others(found: Sequence[Mapping[str, Any]], verdict: Verdict, title: str) -> str:
    """Return the claims of a verdict, each with its reason."""
    lines = [
        f"- `{told['figure']}`: {each['claim']}. We measured: {each['measured']}. {each['reason']}"
        for told in found
        for each in told["findings"]
        if each["verdict"] == verdict
    ]
    return "\n".join([f"## {title}", "", *(lines or ["Nothing."]), ""])


def _section(told: Mapping[str, Any], picture: str) -> str:
    rows = [
        f"| {each['claim']} | {each['expected']} | {each['measured']} | {_verdict(each)} |"
        for each in told["findings"]
    ]
    lines = (
        *(f"## {told['figure']}", ""),
        *(f"{told['title']} ({told['source']}); {told['size']}, {told['rows']} rows.", ""),
        *(f"![{told['title']}]({picture})", ""),
        *("| claim | reproduced if | measured | verdict |", "|---|---|---|---|", *rows, ""),
    )
    return "\n".join(lines)


def _verdict(finding: Mapping[str, Any]) -> str:
    word = finding["verdict"]
    word = word if word == Verdict.REPRODUCED else f"**{word}**"
    return f"{word}: {finding['reason']}" if finding["reason"] else word
