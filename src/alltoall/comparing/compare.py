"""`alltoall.compare`: networks, methods, saved answers and measured runs in one table.

A point is a network under a method. Points are independent, so they run in processes or on a Dask
cluster, and an error becomes the reason in the point's row. The proven maximum of a network is the
best bound of all its points; one extra point proves a sharp bound. Saved answers are verified,
never trusted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from alltoall.comparing.comparison import COLUMNS, FORMAT, Comparison, Row, fill, writer_of
from alltoall.comparing.points import (
    ACROSS,
    DEFAULT_METHODS,
    PROOF,
    Measured,
    Point,
    PointTask,
    digest,
    finder,
    measure,
)
from alltoall.errors import (
    AlltoallError,
    InputError,
    MissingComponentError,
    UsageError,
    VerificationError,
)
from alltoall.flows.workers import require_cluster, run_apart
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import is_file, read_text, write_text
from alltoall.ir.names import short_names
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import parse_size
from alltoall.ir.topology import Topology
from alltoall.ir.words import ProgressMessage, kind_in_words
from alltoall.loading import load
from alltoall.lp.settings import never, silent
from alltoall.reports.runs import Run, read_run
from alltoall.settings import SolveSettings, now, search_settings
from alltoall.topologies.families import FAMILIES, names_file, unknown_family
from alltoall.topologies.given import Answer, Given, GivenDemand, problem_of
from alltoall.topologies.groups import GivenGroups

COMPARE_GAP = 1e-3
"""Default certified gap."""

APART_VARIABLES = 4_000
"""Flow variables, of all points together, from which on processes pay for their start."""

SAVE_SECONDS = 0.5
"""Seconds between two times that finished rows are saved."""

MOST_VALUES = 10_000
"""Values of one key, and points of one comparison, at most."""

KEY = re.compile(r"\{([A-Za-z_]\w*)\}")
"""Placeholder of a value of `over` in a SPEC or method."""

Over: TypeAlias = Mapping[str, Any] | Sequence[str] | None
"""Values by key: a list, a range, or a text such as `"16,32"` or `"1..5"`; or texts `"n=16,32"`."""


def compare(
    given: Given | Sequence[Given],
    methods: str | Sequence[str] | None = None,
    *,
    over: Over = None,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    link_bandwidth: Rate | None = None,
    bytes: str | int | None = None,
    gap: float = COMPARE_GAP,
    time_limit: str | float | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    output: str | PathLike[str] | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Comparison:
    """Compare networks, methods, saved answers and measured runs, best first.

    One network is compared by shortest paths, ECMP, one route per pair and ours; several are
    compared by ours and shortest paths. Each row has its share of the proven maximum. A point that
    fails is a row with its reason. Rows that differ only by `seed` share a line of the table, with
    median and range. Ctrl-C ends with the finished rows; a second call with the same JSON file as
    output continues from them.

    >>> import alltoall
    >>> found = alltoall.compare("torus:3x3", ["sssp", "extp"])
    >>> [(row.method, round(row.time, 6), round(row.share, 6)) for row in found.rows]
    [('extp', 3.0, 1.0), ('sssp', 4.0, 0.75)]

    """
    words = {"cluster": cluster}
    settings = search_settings(words, gap, time_limit, threads, progress, stop)
    size = None if bytes is None else parse_size(bytes)
    where = None if output is None else Path(output)
    if where is not None:
        writer_of(where)
    points, runs = _points(given, methods, values_of(over), demand, groups)
    asked = _Comparing(points, runs, link_bandwidth, size, settings, where)
    return asked.run()


def values_of(over: Over) -> dict[str, tuple[Any, ...]]:
    """Return the values of each key, with texts of integers as integers."""
    found: dict[str, tuple[Any, ...]] = {}
    given = over if isinstance(over, Mapping) else dict(map(_key_and_values, over or ()))
    for key, values in given.items():
        if not KEY.fullmatch(f"{{{key}}}") or key in COLUMNS.values():
            raise UsageError(f"over {key!r}; expected another name, such as n or seed")
        texts = values.split(",") if isinstance(values, str) else values
        if not isinstance(texts, Iterable):
            texts = [texts]
        found[key] = tuple(each for text in texts for each in _each_value(key, text))
        if not 1 <= len(found[key]) <= MOST_VALUES:
            count = len(found[key])
            raise UsageError(f"over {key}: {count:,} values; expected 1 to {MOST_VALUES:,}")
    return found


def _key_and_values(text: str) -> tuple[str, str]:
    key, equals, values = text.partition("=")
    if not equals:
        raise UsageError(f"--over {text}; expected KEY=VALUES, such as n=16,32 or seed=1..5")
    return key.strip(), values


def _each_value(key: str, value: Any) -> Sequence[Any]:
    """Return the values that one word of a list stands for."""
    word = value.strip() if isinstance(value, str) else value
    if not isinstance(word, str):
        return (word,)
    if bounds := re.fullmatch(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})", word):
        return range(int(bounds[1]), int(bounds[2]) + 1)
    if not word or ".." in word:
        raise UsageError(
            f"over {key}: {value!r}; expected values with commas between them, such as 16,32,64 "
            "or 1..5"
        )
    return (int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else word,)


def _points(
    given: Any,
    methods: str | Sequence[str] | None,
    over: Mapping[str, Sequence[Any]],
    demand: GivenDemand,
    groups: GivenGroups,
) -> tuple[list[Point], list[tuple[str, Run]]]:
    """Return the points, with a proof for every network, and the measured runs."""
    subjects = _several(given)
    if not subjects:
        raise UsageError("nothing to compare; expected a SPEC, a file, a network or an answer")
    networks: list[tuple[str, Any, Mapping[str, Any]]] = []
    points: list[Point] = []
    runs: list[tuple[str, Run]] = []
    names = _names(subjects)
    for name, each in zip(names, subjects, strict=True):
        try:
            found = _opened(each, over)
        except VerificationError as error:
            points.append(Point(name, name, "saved", reason="; ".join(error.violations)))
            continue
        if isinstance(found, Answer):
            kind = type(found).__name__.lower()
            points.append(Point(name, name, f"{kind}, {found.method}", subject=found))
        elif isinstance(found, Run):
            runs.append((name, found))
        else:
            networks += [(name, found, values) for values in _filled(name, over)]
    if not networks and (methods is not None or demand is not None or groups is not None):
        raise UsageError(
            "methods, a demand or groups without a network; saved answers have their own, so "
            "leave them out"
        )
    chosen = [methods] if isinstance(methods, str) else methods
    if chosen is None:
        chosen = DEFAULT_METHODS if len(networks) == 1 else ACROSS
    _refuse_unused(over, [*names, *chosen])
    for name, found, values in networks:
        points += _of_network(name, found, values, chosen, over, demand, groups)
    if len(points) > MOST_VALUES:
        raise UsageError(f"{len(points):,} points; expected at most {MOST_VALUES:,}")
    return points, runs


def _several(given: Any) -> list[Any]:
    """Return the subjects as a list; a graph is one subject, though it can be iterated over."""
    if isinstance(given, str | PathLike) or hasattr(given, "nodes") or isinstance(given, Answer):
        return [given]
    if isinstance(given, Sequence | Iterator | set):
        return list(given)
    return [given]


def _names(subjects: Sequence[Any]) -> list[str]:
    """Return the name of each subject: file names without folders, unless two would be equal."""
    names = [_name(each) for each in subjects]
    return [
        short if isinstance(each, str | PathLike) and is_file(name) else name
        for each, name, short in zip(subjects, names, short_names(names), strict=True)
    ]


def _name(subject: Any) -> str:
    if isinstance(subject, str | PathLike):
        return str(subject)
    of = subject.problem if isinstance(subject, Answer) else subject
    of = of.topology if isinstance(of, Problem) else of
    return str(getattr(of, "name", "") or type(subject).__name__)


def _opened(each: Any, over: Mapping[str, Any]) -> Any:
    """Return an answer, a run, a network, or the SPEC of one."""
    if not isinstance(each, str | PathLike):
        return each
    text = str(each)
    family = text.strip().partition(":")[0]
    if isinstance(each, str) and (family in FAMILIES or not names_file(text)):
        if family not in FAMILIES:
            raise UsageError(unknown_family(family))
        return text
    if any(key in over for key in KEY.findall(text)):
        return text
    path = Path(each)
    found = read_run(path) or load(path)
    if not isinstance(found, Answer | Topology | Problem | Run):
        raise UsageError(
            f"{path}: {kind_in_words(found)}; expected a network, a flow, routes, a schedule, or "
            "the JSON of `alltoall run`"
        )
    return found


def _filled(
    template: str, over: Mapping[str, Sequence[Any]], known: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield all combinations of values for the keys in a text, beside the known values."""
    known = known or {}
    keys = [key for key in over if f"{{{key}}}" in template and key not in known]
    for values in product(*(over[key] for key in keys)):
        yield {**known, **dict(zip(keys, values, strict=True))}


def _refuse_unused(over: Mapping[str, Any], texts: Sequence[str]) -> None:
    """Refuse keys without values, and values without a key."""
    there = {key for text in texts for key in KEY.findall(text)}
    for key in over:
        if key not in there:
            raise UsageError(f"over {key}, but no SPEC has {{{key}}}; write it where it varies")
    for key in there - set(over):
        raise UsageError(f"{{{key}}} without values; say which (over, --over {key}=…)")


def _of_network(
    name: str,
    given: Any,
    values: Mapping[str, Any],
    methods: Sequence[str],
    over: Mapping[str, Sequence[Any]],
    demand: GivenDemand,
    groups: GivenGroups,
) -> Iterator[Point]:
    """Yield the points of one network, or why it is no problem."""
    network, reason, problem = fill(name, values), None, None
    try:
        posed = fill(given, values) if isinstance(given, str) else given
        problem = problem_of(posed, demand, groups=groups)
    except (AlltoallError, MemoryError) as error:
        if not values:
            raise
        reason = str(error) or "not enough memory"
    for method in methods:
        for every in _filled(method, over, values):
            chosen = fill(method, every)
            finder(chosen)
            yield Point(network, name, chosen, every, problem, reason)
    if PROOF not in methods and problem is not None:
        yield Point(network, name, PROOF, values, problem, proof=True)


@dataclass(eq=False)
class _Comparing:
    """A running comparison."""

    points: Sequence[Point]
    runs: Sequence[tuple[str, Run]]
    link_bandwidth: Rate | None
    shard_bytes: int | None
    settings: SolveSettings
    output: Path | None

    def __post_init__(self) -> None:
        self.rates = {
            index: link_rate(each.problem.topology, self.link_bandwidth)
            for index, each in enumerate(self.points)
            if each.problem is not None
        }
        self.keys = [each.key(self.settings.gap) for each in self.points]
        self.done: dict[int, Measured] = {}
        self.saved = now()
        for name, run in self.runs:
            if self.shard_bytes not in (None, *run.bytes):
                raise UsageError(
                    f"{name}: not measured with shards of {self.shard_bytes} bytes, but of "
                    f"{', '.join(map(str, run.bytes))}"
                )

    def run(self) -> Comparison:
        """Measure the remaining points and return all rows."""
        require_cluster(self.settings)
        self._go_on()
        try:
            self._measure()
        except (KeyboardInterrupt, TimeoutError):
            pass  # Stopped: what is done is returned.
        finally:
            found = self._compared()
            self._save(found)
        if found.rows and not found.missing and all(each.failed for each in found.rows):
            raise InputError(f"no point has an answer; the first: {found.rows[0].reason}")
        return found

    def _go_on(self) -> None:
        """Read the finished points of a file; refuse a file of another comparison."""
        path = self.output
        if path is None or path.suffix.lower() != ".json" or not is_file(path):
            return
        value = parse_json(read_text(path), str(path))
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise UsageError(f"{path} exists and is no comparison; name another file")
        before = value.get("points")
        if not isinstance(before, dict) or not set(before) <= set(self.keys):
            raise UsageError(
                f"{path} is of another comparison: other networks, methods, demand or gap; name "
                "another file, or remove it"
            )
        for index, key in enumerate(self.keys):
            if key in before and (found := _measured(before[key])) is not None:
                self.done[index] = found

    def _measure(self) -> None:
        """Measure each distinct point once, and save the results as they arrive."""
        waiting: dict[str | int, list[int]] = {}
        for index, point in enumerate(self.points):
            if point.subject is None:
                self.done[index] = Measured(reason=point.reason)
            elif index not in self.done:
                waiting.setdefault(self.keys[index] or index, []).append(index)
        places = list(waiting.values())
        self._report()
        try:
            for at, found in self._measured([self.points[each[0]] for each in places]):
                for index in places[at]:
                    self.done[index] = found
                self._report()
        except MissingComponentError as error:
            if not self.done:
                raise
            for index in (index for group in places for index in group if index not in self.done):
                self.done[index] = Measured(reason=str(error))

    def _measured(self, points: Sequence[Point]) -> Iterator[tuple[int, Measured]]:
        """Yield the index and measurement of each point, from this process or others."""
        problems = [each.problem for each in points if each.problem is not None]
        size = sum(len(each.sources) * each.topology.links for each in problems)
        apart = replace(self.settings, time_limit=None)
        if self.settings.cluster is None and (
            min(self.settings.workers, len(points)) < 2 or size < APART_VARIABLES
        ):
            for place, each in enumerate(points):
                assert each.subject is not None
                found = measure(PointTask(each.subject, each.method, self.settings))
                apart.check_time()  # Stopped: what it has by then is not its answer.
                yield place, found
            return
        alone = SolveSettings(self.settings.gap, time_limit=self.settings.time_limit, workers=1)
        tasks = [PointTask(each.subject, each.method, alone) for each in points if each.subject]
        for place, result in run_apart(measure, tasks, apart):
            if isinstance(result, MissingComponentError):
                yield place, Measured(reason=str(result))
            else:
                yield place, result

    def _report(self) -> None:
        """Report the number of finished points, and save them regularly."""
        done, count = len(self.done), len(self.points)
        self.settings.report(ProgressMessage.of_count(f"compare: {done} of {count}", done, count))
        saving = self.output is not None and self.output.suffix.lower() == ".json"
        if saving and self.done and now() - self.saved >= SAVE_SECONDS:
            self.saved = now()
            self._save(self._compared())

    def _save(self, found: Comparison) -> None:
        if self.output is not None:
            write_text(self.output, found.text(self.output))

    def _compared(self) -> Comparison:
        """Return the rows of all finished points."""
        best: dict[str, float] = {}
        for index, found in self.done.items():
            problem = self.points[index].problem
            if problem is not None and found.bound:
                key = digest(problem)
                best[key] = max(best.get(key, 0.0), found.bound)
        shown = [index for index in sorted(self.done) if not self.points[index].proof]
        rows = [self._row(index, best) for index in shown]
        runs = [self._measured_rows(*each, rows) for each in self.runs]
        points = {
            key: vars(self.done[index])
            for index, key in enumerate(self.keys)
            if key is not None and index in self.done
        }
        missing = sum(not each.proof for each in self.points) - len(shown)
        return Comparison((*rows, *chain.from_iterable(runs)), missing, points)

    def _row(self, index: int, best: Mapping[str, float]) -> Row:
        point, found = self.points[index], self.done[index]
        row = Row(point.network, point.method, point.over, reason=found.reason, given=point.given)
        problem = point.problem
        if problem is None:
            return row
        topology, demand = problem.topology, problem.demand
        row = replace(row, nodes=topology.nodes, links=topology.links, seconds=found.seconds)
        bound, rate = best.get(digest(problem)), self.rates[index]
        row = replace(row, bound=bound, shards=demand.total / len(demand.sources()))
        if found.time is None:
            return row
        share = None if bound is None else min(1.0, bound / found.time)
        row = replace(row, time=found.time, share=share, gap=1 / share - 1 if share else None)
        if rate is None:
            return row
        fabric = Fabric(topology, rate)
        shard = self.shard_bytes
        return replace(
            row,
            throughput=fabric.throughput(demand, found.time) / 1e9,
            transfer=None if shard is None else fabric.seconds(found.time, shard),
        )

    def _measured_rows(self, name: str, run: Run, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows measured at the requested size, or at the largest.

        The maximum is that of a compared network of the same name; the file's own claim is not
        trusted.
        """
        size = max(run.bytes) if self.shard_bytes is None else self.shard_bytes
        at = run.bytes.index(size)
        beside = (
            row.throughput / row.share
            for row in rows
            if row.network == run.topology and row.throughput and row.share
        )
        most = next(beside, None)
        for curve, method in MEASURED.items():
            value = run.curves.get(curve, ())[at : at + 1]
            if value and value[0] is not None:
                found = value[0] / 1e9
                share = None if most is None else found / most
                yield Row(name, method, throughput=found, share=share, given=name)


MEASURED = {"throughput": "measured", "the library's own": "measured, the library's own"}
"""Names of the rows of a run, by curve."""


def _measured(value: Any) -> Measured | None:
    """Return a finished point of a file, or None if it failed or is damaged."""
    if not isinstance(value, dict) or value.get("reason") is not None:
        return None
    time, bound, seconds = (value.get(key) for key in ("time", "bound", "seconds"))
    if not all(isinstance(each, float) and each >= 0 for each in (time, bound, seconds)):
        return None
    return Measured(time, bound, float(seconds or 0.0))
