"""The one style of tables: cells below each other, numbers to the right, words to the left."""

from collections.abc import Collection, Sequence

GAP = "  "
"""What stands between two columns."""


def columns(
    rows: Sequence[Sequence[str]], words: Collection[int] = (), bar: int | None = None
) -> list[str]:
    """Return rows, the first of which is the header, with their cells below each other.

    Columns in `words` are aligned to the left, all others to the right; a negative number counts
    from the end. A bar stands before the column `bar`, if there is one and it has columns.
    """
    count = len(rows[0])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {each % count for each in words}
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        if bar is not None and bar < count:
            cells.insert(bar, "|")
        lines.append(GAP.join(cells).rstrip())
    return lines
