"""`Comparison`: rows, best first, and their table, chart and files."""

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from alltoall.comparing import chart
from alltoall.comparing.points import BASELINE, OURS, PROOF
from alltoall.errors import UsageError
from alltoall.ir.files.artefacts import frame_of
from alltoall.ir.files.json.values import json_text
from alltoall.ir.files.text import write_text
from alltoall.ir.words import PROVEN, counted, one_line

FORMAT = "alltoall.comparison/1"

SEED = "seed"
"""The key of `over` whose values are repetitions: they share a line of the table."""

NAMES = {
    BASELINE: "shortest paths (sssp)",
    "ewsp": "ECMP (ewsp)",
    "single": "one route per pair (single)",
    OURS: "ours (extp)",
    PROOF: "ours (solve)",
}
"""Methods in words."""


@dataclass(frozen=True)
class Row:
    """A network under a method, a saved answer, or a measured run.

    Attributes:
        network: the SPEC or the file.
        method: the method; of a saved answer its kind and method.
        over: the values that were filled in.
        nodes: nodes of the network.
        links: links of the network.
        time: the verified all-to-all time, in shards over a link of capacity 1.
        bound: the best lower bound on it that any row of this problem proves.
        gap: `time / bound - 1`.
        throughput: GB/s per node, if links have a rate.
        share: the throughput as a share of the proven maximum.
        seconds: how long it took to compute.
        transfer: seconds for shards of the requested size.
        reason: why there is no time, or why it might be better.
        given: `network` before values were filled in.
        shards: shards per node, on average.

    """

    network: str
    method: str
    over: Mapping[str, Any] = field(default_factory=dict)
    nodes: int | None = None
    links: int | None = None
    time: float | None = None
    bound: float | None = None
    gap: float | None = None
    throughput: float | None = None
    share: float | None = None
    seconds: float | None = None
    transfer: float | None = None
    reason: str | None = None
    given: str = ""
    shards: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return self.time is None and self.throughput is None

    @property
    def worth(self) -> float | None:
        """Throughput per node in units of a capacity-1 link."""
        if self.time is None or self.shards is None:
            return None
        return self.shards / self.time

    def values(self) -> dict[str, Any]:
        """Return the columns of the row, the values of `over` after the method."""
        found = {COLUMNS[name]: getattr(self, name) for name in COLUMNS}
        names = list(found)
        return {name: found[name] for name in names[:2]} | dict(self.over) | found


COLUMNS = {
    each.name: {"throughput": "throughput_GBps", "transfer": "transfer_seconds"}.get(
        each.name, each.name
    )
    for each in fields(Row)
    if each.name not in ("over", "given", "shards")
}
"""Column names in files, by field."""


@dataclass(frozen=True)
class Entry:
    """Rows that differ by their seed only: the median and the range of their value."""

    rows: tuple[Row, ...]
    value: float | None
    least: float | None = None
    most: float | None = None

    @property
    def network(self) -> str:
        """The network, with all its seeds in one word."""
        if len(self.rows) == 1:
            return self.rows[0].network
        row = self.rows[0]
        return fill(row.given, {**row.over, SEED: spanned([each.over[SEED] for each in self.rows])})

    @property
    def method(self) -> str:
        """The method in words."""
        return NAMES.get(self.rows[0].method, self.rows[0].method)

    @property
    def share(self) -> float | None:
        """The median share of the proven maximum."""
        return _median([each.share for each in self.rows])

    def reasons(self) -> str:
        """Return the first reason of the rows, and count the others."""
        found = [one_line(each.reason) for each in self.rows if each.reason]
        return found[0] + f" (and {len(found) - 1} more)" * (len(found) > 1) if found else ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Networks, methods, saved answers and measured runs, best first.

    `missing` counts the points left out when stopped. `save` writes CSV, JSON, SVG or HTML.
    """

    rows: tuple[Row, ...]
    missing: int = 0
    points: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        best = sorted(self.rows, key=lambda row: (self._place(row), _rank(self.value(row))))
        object.__setattr__(self, "rows", tuple(best))

    @property
    def physical(self) -> bool:
        """Whether all rows with a time have a throughput in GB/s."""
        return all(each.throughput is not None for each in self.rows if not each.failed)

    @property
    def unit(self) -> str:
        """The unit of the values that rows are ranked by."""
        return "GB/s per node" if self.physical else "throughput per node, in links"

    def value(self, row: Row) -> float | None:
        """Return the value that rows are ranked by: GB/s per node, or links."""
        return row.throughput if self.physical else row.worth

    def entries(self) -> list[Entry]:
        """Return the lines of the table, best first: seeds of a network share one."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            groups.setdefault(_group(row), []).append(row)
        found = [self._entry(rows) for rows in groups.values()]
        return sorted(found, key=lambda each: (self._place(each.rows[0]), _rank(each.value)))

    def to_json(self) -> dict[str, Any]:
        """Return all as plain values."""
        summary = [
            {
                "network": each.network,
                "method": each.rows[0].method,
                "seeds": len(each.rows),
                "median": each.value,
                "least": each.least,
                "most": each.most,
                "share": each.share,
            }
            for each in self.entries()
        ]
        return {
            "format": FORMAT,
            "answer": self.answer(),
            "unit": self.unit,
            "summary": summary,
            "rows": [each.values() for each in self.rows],
            "missing": self.missing,
            "points": dict(self.points),
        }

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame; pandas must be installed."""
        names = self._columns()
        return frame_of({name: [row.values().get(name) for row in self.rows] for name in names})

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file: .csv and .json have the rows, .svg the chart, .html both."""
        where = Path(path)
        write_text(where, self.text(where))

    def plot(self, path: str | PathLike[str]) -> None:
        """Write the chart as an SVG file: bars, or lines over the numbers that vary."""
        where = Path(path)
        if where.suffix.lower() != ".svg":
            raise UsageError(f"{where}: the chart is SVG; expected a file name that ends in .svg")
        write_text(where, self.svg())

    def text(self, path: Path) -> str:
        """Return the content for a file name."""
        return writer_of(path)(self)

    def csv(self) -> str:
        """Return the rows as CSV."""
        text, names = io.StringIO(), self._columns()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.values() for row in self.rows)
        return text.getvalue()

    def svg(self) -> str:
        """Return the chart."""
        entries = [each for each in self.entries() if each.value is not None]
        unit = self.unit
        across = next(iter(self._numbers(entries)), None)
        if across is not None:
            return chart.lines(across, unit, list(self._lines(entries, across)))
        return chart.bars(unit, [self._bar(each) for each in entries])

    def html(self) -> str:
        """Return a self-contained page with the answer, the table and the chart."""
        return chart.page("All-to-all, compared", self._body())

    def answer(self) -> str:
        """Return one or two sentences on the best entry and its lead."""
        entries = [each for each in self.entries() if each.value is not None]
        if not entries:
            return "no answer"
        across = next(iter(self._numbers(entries)), None)
        if across is not None:
            return self._winners(entries, across)
        best, *others = entries
        # Another network, or shortest paths.
        elsewhere = (each for each in others if each.rows[0].given != best.rows[0].given)
        baseline = (each for each in others if each.rows[0].method == BASELINE)
        beside = next(chain(elsewhere, baseline, others), None)
        names = [self.name(each) for each in (best, beside) if each is not None]
        if beside is not None and best.method == beside.method and best.network != beside.network:
            names = [best.network, beside.network]
        said = f"{names[0]} {self._told(best)}"
        if beside is None or not best.value or not beside.value:
            return said
        return f"{said}; {_more(best.value / beside.value - 1)} than {names[1]}"

    def name(self, entry: Entry) -> str:
        """Return a distinguishing name: the method, the network, or both."""
        rows = [each for each in self.rows if not each.failed]
        if len({row.given for row in rows}) == 1 and len(rows) > 1:
            return entry.method
        one_method = len({row.method for row in rows}) == 1
        saved = entry.rows[0].time is None or ", " in entry.rows[0].method
        return entry.network if one_method or saved else f"{entry.network}, {entry.method}"

    def table(self) -> list[list[str]]:
        """Return the rows of the table, header first, without empty columns."""
        header = ["network", "method", "seeds", "GB/s per node", "time", "of maximum", "took", ""]
        cells = [list(self._cells(each)) for each in self.entries()]
        used = [any(column) for column in zip(*cells, strict=True)] or [True] * len(header)
        used[0] = used[0] and len({row[0] for row in cells}) > 1
        rows = [[cell or "-" for cell in row[:-1]] + [row[-1] or ""] for row in cells]
        return [
            [cell for cell, keep in zip(row, used, strict=True) if keep] for row in [header, *rows]
        ]

    def __repr__(self) -> str:
        return one_line(f"<Comparison of {counted(len(self.rows), 'row')}: {self.answer()}>")

    def _repr_html_(self) -> str:
        return f"<div>{self._body()}</div>"

    def _body(self) -> str:
        header, *rows = ([f"{escape(cell)}" for cell in row] for row in self.table())
        lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        head = "".join(f"<th>{cell}</th>" for cell in header)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        return f"<p>{escape(self.answer())}</p>{self.svg()}<div class=scroll>{table}</div>"

    def _place(self, row: Row) -> tuple[bool, tuple[Any, ...]]:
        """Return the group of a row: its varied values except the seed."""
        varied = ((key, value) for key, value in row.over.items() if key != SEED)
        return row.failed, tuple((key, *_sortable(value)) for key, value in varied)

    def _entry(self, rows: Sequence[Row]) -> Entry:
        values = [value for row in rows if (value := self.value(row)) is not None]
        if not values:
            return Entry(tuple(rows), None)
        return Entry(tuple(rows), statistics.median(values), min(values), max(values))

    def _cells(self, entry: Entry) -> Iterator[str | None]:
        several = len(entry.rows) > 1
        yield entry.network
        yield entry.method
        yield str(len(entry.rows)) if several else None
        yield _spread([row.throughput for row in entry.rows])
        yield _spread([row.time for row in entry.rows])
        yield None if entry.share is None else percent(entry.share)
        seconds = _median([row.seconds for row in entry.rows])
        yield None if seconds is None else f"{seconds:.2f} s"
        yield entry.reasons() or None

    def _told(self, entry: Entry) -> str:
        """Return the result of an entry in words: GB/s, or its time if all nodes send equally."""
        unit, end = "GB/s per node", "maximum"
        said = f"reaches {short(entry.value or 0.0)} {unit}"
        if not self.physical:
            said = f"reaches the rate of {short(entry.value or 0.0)} links per node"
            if len({row.shards for row in self.rows if not row.failed}) == 1:
                time, end = _median([row.time for row in entry.rows]) or 0.0, "minimum"
                said = f"takes {short(time)} shard times"
        return said if entry.share is None else f"{said}, {of_proven(entry.share, end)}"

    def _bar(self, entry: Entry) -> chart.Bar:
        share = entry.share
        limit = None if not share or entry.value is None else entry.value / share
        told = f"{short(entry.value or 0.0)}" + (f", {percent(share)} of maximum" if share else "")
        spread = (entry.least, entry.most) if len(entry.rows) > 1 else None
        return chart.Bar(self.name(entry), entry.value or 0.0, told, limit, spread)

    def _numbers(self, entries: Sequence[Entry]) -> list[str]:
        """Return the keys with several numeric values, except the seed."""
        values: dict[str, set[Any]] = {}
        for key, value in (item for each in entries for item in each.rows[0].over.items()):
            values.setdefault(key, set()).add(value)
        return [
            key
            for key, found in values.items()
            if key != SEED and len(found) > 1 and all(isinstance(each, int) for each in found)
        ]

    def _lines(self, entries: Sequence[Entry], across: str) -> Iterator[chart.Curve]:
        """Yield a line per network and method, each point a value of the number that varies."""
        groups: dict[str, list[Entry]] = {}
        for each in entries:
            if across in each.rows[0].over:
                groups.setdefault(self._along(each, across), []).append(each)
        for name, along in groups.items():
            along.sort(key=lambda each: each.rows[0].over[across])
            yield chart.Curve(
                name,
                [float(each.rows[0].over[across]) for each in along],
                [each.value or 0.0 for each in along],
                [(each.least or 0.0, each.most or 0.0) for each in along],
            )

    def _along(self, entry: Entry, across: str) -> str:
        """Return the name of an entry with a placeholder for one number."""
        row = entry.rows[0]
        filled = {key: value for key, value in row.over.items() if key not in (across, SEED)}
        several = len({each.method for each in self.rows}) > 1
        return fill(row.given, filled) + (f", {entry.method}" if several else "")

    def _winners(self, entries: Sequence[Entry], across: str) -> str:
        """Return the best line for each value."""
        best: dict[Any, Entry] = {}
        for each in entries:
            at = each.rows[0].over.get(across)
            if at is not None and (at not in best or _rank(each.value) < _rank(best[at].value)):
                best[at] = each
        wins: dict[str, list[Any]] = {}
        for at, each in best.items():
            wins.setdefault(self._along(each, across), []).append(at)
        return "; ".join(
            f"{name} is best at {across} = {', '.join(map(str, sorted(where)))}"
            for name, where in wins.items()
        )

    def _columns(self) -> list[str]:
        """Return the names of all columns of files."""
        names = dict.fromkeys(name for row in self.rows for name in row.values())
        head = list(COLUMNS.values())[:2]
        over = [name for name in names if name not in COLUMNS.values()]
        return [*head, *over, *list(COLUMNS.values())[2:]]


WRITERS: dict[str, Callable[[Comparison], str]] = {
    ".csv": Comparison.csv,
    ".json": lambda found: json_text(found.to_json()),
    ".svg": Comparison.svg,
    ".html": Comparison.html,
}
"""Writers by file suffix."""


def writer_of(path: Path) -> Callable[[Comparison], str]:
    """Return the writer for a file name."""
    found = WRITERS.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"{path}: expected a file name that ends in {', '.join(WRITERS)}")
    return found


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a text with the known of its {keys} filled in."""
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", str(value))
    return template


def spanned(values: Iterable[Any]) -> str:
    """Return values as one word: 1..5, or with commas."""
    found = sorted(set(values), key=_sortable)
    whole = all(isinstance(each, int) for each in found)
    if whole and len(found) > 1 and found[-1] - found[0] == len(found) - 1:
        return f"{found[0]}..{found[-1]}"
    return ",".join(map(str, found))


def percent(share: float) -> str:
    """Return a share of the maximum in percent; 100 % only if proven."""
    return "100 %" if share >= 1 - PROVEN else f"{min(100 * share, 99.9):.1f} %"


def of_proven(share: float, end: str) -> str:
    """Return the distance from the proven maximum throughput, or minimum time, in words."""
    if share >= 1 - PROVEN:
        return f"the proven {end}"
    if end == "minimum":
        share = 2 - 1 / share
    missing = 100 * (1 - share)
    if missing < 1:
        return f"within {missing:.1g} % of the proven {end}"
    return f"{missing:.0f} % {'below' if end == 'maximum' else 'above'} the proven {end}"


def short(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _more(share: float) -> str:
    """Return the gain in throughput in words."""
    if abs(share) < 5e-4:
        return "no more"
    text = f"{abs(100 * share):.0f}" if abs(share) >= 0.1 else f"{abs(100 * share):.1f}"
    return f"{text} % more"


def _group(row: Row) -> tuple[Any, ...]:
    if SEED not in row.over:
        return (id(row),)
    return row.given, row.method, *((k, v) for k, v in row.over.items() if k != SEED)


def _rank(value: float | None) -> float:
    """Return a sort key, best first, that ignores rounding noise."""
    return float("inf") if value is None else -float(f"{value:.8g}")


def _sortable(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, str(value)


def _median(values: Iterable[float | None]) -> float | None:
    found = [each for each in values if each is not None]
    return statistics.median(found) if found else None


def _spread(values: Iterable[float | None]) -> str | None:
    found = [each for each in values if each is not None]
    if not found:
        return None
    middle, least, most = (short(f(found)) for f in (statistics.median, min, max))
    return middle if least == most else f"{middle} ({least} to {most})"
