"""The page of results, written from the files of figures in a folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.figures.figure import SIZES, Figure, Verdict
from alltoall.figures.run import stem
from alltoall.ir.files.text import read_bytes, read_text, write_bytes, write_text

HEAD = """# Results: the claims of the paper, checked

For whoever doubts a claim. `alltoall reproduce` writes this page; do not edit it. Each claim has
the band in which we call it reproduced (`figures/claims.csv`), our measurement, and the verdict.
Where the paper has a number, the band allows half of its difference to no effect, either way. A
claim whose own quantity we cannot measure is not comparable here. Rows are in the CSV files that
the same command writes.
"""

PICTURE = ".svg"


def write_results(page: Path, figures: Sequence[Figure], folder: Path) -> None:
    """Write the page of all figures in a folder, with pictures beside it."""
    found = [each for each in (_newest(figure, folder) for figure in figures) if each]
    if not found:
        raise FormatError(f"{folder}: no figures there; expected what `alltoall reproduce` writes")
    parts = [HEAD, _summary(found), _not_reproduced(found)]
    for made in found:
        picture = Path(f"{made['stem']}{PICTURE}")
        write_bytes(page.parent / page.stem / picture.name, read_bytes(folder / picture))
        parts.append(_section(made, f"{page.stem}/{picture.name}"))
    write_text(page, "\n".join(parts))


def _newest(figure: Figure, folder: Path) -> dict[str, Any] | None:
    """Return the findings of a figure in its largest size."""
    for size in SIZES:
        name = stem(figure, size)
        path = folder / f"{name}.json"
        made: dict[str, Any] = json.loads(read_text(path)) if path.exists() else {"rows": 0}
        if made["rows"]:
            return {**made, "stem": name}
    return None


def _summary(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of figures."""
    lines = [
        "| figure | of the paper | size | reproduced | not comparable | date |",
        "|---|---|---|---|---|---|",
    ]
    for made in found:
        verdicts = [each["verdict"] for each in made["findings"]]
        other = verdicts.count(Verdict.NOT_COMPARABLE)
        same = f"{verdicts.count(Verdict.REPRODUCED)} of {len(verdicts) - other}"
        size = made["size"] if made["complete"] else f"{made['size']}, not complete"
        lines.append(
            f"| [`{made['figure']}`](#{made['figure']}) | {made['source']} | {size} | {same} | "
            f"{other or ''} | {made['date']} |"
        )
    machines = "; ".join(sorted({made["machine"] for made in found}))
    return "\n".join([*lines, "", f"Measured on {machines}.", ""])


def _not_reproduced(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the claims that do not hold; the table of their figure says why."""
    lines = [
        f"- [`{made['figure']}`](#{made['figure']}): {each['claim']}"
        for made in found
        for each in made["findings"]
        if each["verdict"] == Verdict.NOT_REPRODUCED
    ]
    return "\n".join(["## Not reproduced", "", *(lines or ["Nothing."]), ""])


def _section(made: Mapping[str, Any], picture: str) -> str:
    rows = [
        f"| {each['claim']} | {each['expected']} | {each['measured']} | {_verdict(each)} |"
        for each in made["findings"]
    ]
    lines = (
        *(f"## {made['figure']}", ""),
        *(f"{made['title']}: {made['rows']} rows.", ""),
        *(f"![{made['figure']}]({picture})", ""),
        *("| claim | reproduced if | measured | verdict |", "|---|---|---|---|", *rows, ""),
    )
    return "\n".join(lines)


def _verdict(finding: Mapping[str, Any]) -> str:
    word = finding["verdict"]
    word = f"**{word}**" if word == Verdict.NOT_REPRODUCED else word
    return f"{word}: {finding['reason']}" if finding["reason"] else word
