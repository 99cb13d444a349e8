"""Figures of the paper: every one can be made, goes on where it was, and says what came out."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

import alltoall
from alltoall.errors import FormatError, MissingComponentError
from alltoall.figures import FIGURES, drawing
from alltoall.figures.figure import Asked, Claim, Measurement, Point, Verdict, claims_of
from alltoall.figures.picture import Panel, Picture, Series
from alltoall.figures.results import write_results
from alltoall.figures.run import STORED, compare, measure_figure
from alltoall.figures.table import header, read_rows, write_rows
from alltoall.ir.words import ProgressMessage
from command_line import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which figures of this file are made."""
    return tmp_path_factory.mktemp("figures")


@pytest.mark.parametrize("name", FIGURES)
def test_a_sample_has_rows_a_picture_and_sentences(name: str, folder: Path, run: Run) -> None:
    """The files are what they claim to be, and every finding has a claim and a measurement."""
    words = ("reproduce", name, "--size", "sample", "--no-testbed", "-o", folder, "--json")
    outcome = run(*words)
    assert outcome.code == 0, outcome.err
    (made,) = outcome.json["figures"]
    assert made["complete"]
    assert made["rows"] > 0
    assert all(each["claim"] and each["measured"] for each in made["findings"])
    table, svg, png, sentences = map(Path, made["files"])
    assert next(csv.reader(table.read_text().splitlines())) == header(FIGURES[name])
    assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert json.loads(sentences.read_text())["figure"] == name
    again = run(*words).json["figures"][0]
    assert again["measured"] == 0
    assert again["findings"] == made["findings"]


def test_what_a_figure_claims_to_hold_is_in_its_rows(folder: Path, run: Run) -> None:
    """A row that says otherwise makes the sentence say so, too."""
    run("reproduce", "methods", "--size", "sample", "--no-testbed", "-o", folder)
    figure = FIGURES["methods"]
    rows = read_rows(figure, folder / "methods-sample.csv")
    assert all(each.verdict != Verdict.NOT_REPRODUCED for each in figure.judge(rows))
    forged = [{**row, "ratio": 1.5} if row["method"] == "extp" else row for row in rows]
    first = figure.judge(forged)[0]
    assert first.verdict == Verdict.NOT_REPRODUCED
    assert "; not reproduced (it was at its time limit)." in first.sentence


@pytest.mark.parametrize(
    ("value", "verdict", "reason"),
    [
        (0.149, Verdict.NOT_REPRODUCED, "why"),
        (0.15, Verdict.REPRODUCED, ""),
        (0.45, Verdict.REPRODUCED, ""),
        (0.451, Verdict.NOT_REPRODUCED, "why"),
        (None, Verdict.NOT_COMPARABLE, "why"),
    ],
)
def test_a_band_has_two_ends(value: float | None, verdict: Verdict, reason: str) -> None:
    """Too much is not reproduced either; another quantity is not comparable."""
    found = Claim("30 % less", "share", 0.15, 0.45).judge(Measurement(value, "so much", "why"))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.expected == "share: 0.15 to 0.45"


def test_every_claim_has_a_quantity_and_a_band_before_anything_is_measured() -> None:
    """A band contains the paper's number, and each figure measures the quantities of its claims."""
    with (STORED.parent / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["figure"] for row in rows} == set(FIGURES)
    for row in rows:
        claim = claims_of(row["figure"])[row["key"]]
        assert claim.quantity
        assert claim.low <= float(row["paper"] or claim.low) <= claim.high
    for figure in FIGURES.values():
        assert list(figure.quantities) == list(claims_of(figure.name))


@pytest.mark.parametrize("name", FIGURES)
def test_the_stored_rows_are_judged(name: str) -> None:
    """Each claim by its own quantity, with a reason where it is not reproduced or comparable."""
    figure = FIGURES[name]
    findings = figure.judge(read_rows(figure, STORED / f"{name}.csv"))
    assert all(bool(each.reason) == (each.verdict != Verdict.REPRODUCED) for each in findings)


def test_a_claim_is_not_judged_by_another_quantity() -> None:
    """Predicted exchanges, link loads and other methods are not what the paper measured."""
    fft = FIGURES["fft"]
    rows = read_rows(fft, STORED / "fft.csv")
    predicted = [{**row, "kind": "predicted exchange", "alltoall": 9.0} for row in rows]
    assert {each.verdict for each in fft.judge(predicted)} == {Verdict.NOT_COMPARABLE}
    assert fft.judge([*rows, *predicted]) == fft.judge(rows)
    assert len(fft.draw([*rows, *predicted]).panels) == 2 * len(fft.draw(rows).panels)
    routed = FIGURES["routed-schedules"]
    unmeasured = [
        row
        for row in read_rows(routed, STORED / "routed-schedules.csv")
        if row["kind"] == "predicted"
    ]
    verdicts = {each.claim: each.verdict for each in routed.judge(unmeasured)}
    assert verdicts["SSSP is more than 50 % worse on the torus"] == Verdict.NOT_COMPARABLE
    runtime = FIGURES["runtime"]
    quick = [
        {**row, "seconds": 1e-3} if row["algorithm"] == "decomposed" else row
        for row in read_rows(runtime, STORED / "runtime.csv")
    ]
    assert runtime.judge(quick) == runtime.judge(read_rows(runtime, STORED / "runtime.csv"))


def test_a_call_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    """After a time limit the rows so far are there, and only the others are measured."""
    (begun,) = alltoall.reproduce(
        "methods", size="sample", output=tmp_path, testbed=False, time_limit=1e-9
    )
    assert (begun.complete, begun.rows) == (False, 0)
    figure, calls = FIGURES["methods"], []

    def counted(_: object, points: object, asked: object) -> object:
        calls.append(len(points))  # type: ignore[arg-type]
        return iter([[{"time": 1.0, "bound": 1.0, "ratio": 1.0}]] * 3)

    asked = Asked("sample")
    late = iter([True, False, False, False, False])
    rows, new, complete = measure_figure(
        figure,
        asked,
        tmp_path,
        counted,  # type: ignore[arg-type]
        lambda: next(late),
    )
    assert (len(rows), new, complete) == (3, 3, False)
    assert len(read_rows(figure, tmp_path / "methods-sample.csv")) == 3
    measure_figure(figure, asked, tmp_path, counted, lambda: next(late))  # type: ignore[arg-type]
    assert calls[1] == calls[0] - 3


def test_how_much_is_left_is_told(tmp_path: Path) -> None:
    """As a share of the points, where it is known before how many there are."""
    told: list[str] = []
    alltoall.reproduce(
        "layers", size="sample", output=tmp_path, testbed=False, progress=told.append
    )
    shares = [each.share or 0.0 for each in told if isinstance(each, ProgressMessage)]
    assert len(shares) > 1
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert any("(1 point left)" in each for each in told)


def test_a_method_at_its_limit_is_not_asked_again() -> None:
    """The runtime of larger sizes is not measured once a smaller one took too long."""
    figure, asked = FIGURES["runtime"], Asked("quick")
    every = {(point["n"], point["algorithm"]) for point in figure.points(asked, [])}
    slow = {"n": 16, "algorithm": "link", "limit": 4.0, "status": "limit"}
    left = {(point["n"], point["algorithm"]) for point in figure.points(asked, [slow])}
    assert every - left == {(8, "link"), (32, "link"), (64, "link")}


def test_an_algorithm_that_is_sure_to_be_late_is_not_run() -> None:
    """By how its time grew so far: from 5 s to 40 s is to a limit of 60 s before N = 64."""
    figure, asked = FIGURES["runtime"], Asked("full")
    done: list[dict[str, Any]] = [
        {"n": n, "algorithm": "decomposed", "limit": 60.0, "status": "done", "seconds": seconds}
        for n, seconds in ((16, 5.0), (32, 40.0))
    ]
    left = [p["n"] for p in figure.points(asked, done) if p["algorithm"] == "decomposed"]
    assert left == [8, 16, 32, 44]
    quick = [{**row, "seconds": 0.01 * row["seconds"]} for row in done]
    assert max(int(str(p["n"])) for p in figure.points(asked, quick)) == 1000


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"n": 16, "limit": 4.0, "status": "done"}, Verdict.NOT_REPRODUCED),
        ({"n": 8, "limit": 4.0, "status": "limit"}, Verdict.NOT_COMPARABLE),
        ({"n": 8, "limit": 240.0, "status": "limit"}, Verdict.REPRODUCED),
        ({"n": 8, "limit": 240.0, "status": "missing"}, Verdict.NOT_COMPARABLE),
    ],
)
def test_that_sccl_does_not_get_far_takes_patience_to_say(
    row: dict[str, object], verdict: Verdict
) -> None:
    """A short limit says nothing; a schedule refutes at any."""
    common = {"n": 8, "status": "done", "limit": 4.0, "gap": 0.0, "seconds": 1.0}
    others = ("link", "decomposed", "first-order", "fptas 0.05")
    rows = [
        *({**common, "algorithm": name} for name in others),
        {**common, **row, "algorithm": "sccl"},
    ]
    (found,) = (each for each in FIGURES["runtime"].judge(rows) if "SCCL" in each.claim)
    assert found.verdict is verdict


def test_an_algorithm_is_timed_and_its_gap_kept() -> None:
    """One small size: solved to the gap, or said to be at its limit."""
    figure = FIGURES["runtime"]
    point: Point = {"n": 8, "algorithm": "decomposed", "limit": 60.0}
    (row,) = figure.measure(point, Asked("sample"))
    assert row["status"] == "done"
    assert float(str(row["gap"])) < 1e-6
    assert float(str(row["seconds"])) > 0
    (late,) = figure.measure({**point, "algorithm": "sccl", "limit": 1e-3}, Asked("sample"))
    assert late["status"] == "limit"


def test_peers_are_shown_beside_ours(tmp_path: Path) -> None:
    """XML of another tool is verified and timed by the same model, where its ranks fit."""
    path = tmp_path / "peer.xml"
    alltoall.lower(alltoall.schedule("bipartite:4x4", chunks=1), to="msccl").save(path)
    figure = FIGURES["link-schedules"]
    asked = Asked("sample", peers=(path,))
    point: Point = {"fabric": "K4,4", "way": str(path), "kind": "predicted"}
    assert point in list(figure.points(asked, []))
    rows = figure.measure(point, asked)
    same = alltoall.simulate(path, topology="bipartite:4x4", link_bandwidth="25Gbps",
                             bytes=[1 << 14, 1 << 26], latency=2e-6, overhead=1e-6)  # fmt: skip
    expected = [row.throughput / 1e9 for row in same.rows]
    assert [row["predicted"] for row in rows] == pytest.approx(expected)
    assert expected[0] < 0.6 * expected[1]
    (other,) = figure.measure({**point, "fabric": "3x3x3 torus"}, asked)
    assert other["bytes"] == 0
    assert "8 ranks" in other["status"]


def test_sccl_is_asked_for_what_it_can_be_asked_for() -> None:
    """On the torus it fails for want of time, and not because hosts are split from their NICs."""
    point: Point = {"fabric": "3x3x3 torus", "way": "sccl", "kind": "predicted"}
    (row,) = FIGURES["link-schedules"].measure(point, Asked("sample"))
    assert "the time limit of 2 s came before any schedule" in row["status"]


def test_rows_are_compared_with_those_of_another_run(folder: Path, run: Run) -> None:
    """What is exact agrees or does not; what was not stored is not compared."""
    run("reproduce", "layers", "--size", "sample", "--no-testbed", "-o", folder)
    figure = FIGURES["layers"]
    rows = read_rows(figure, folder / "layers-sample.csv")
    count = len(rows)
    same = compare(figure, "sample", rows, folder)
    assert f"{count} rows in common" in same
    assert f"{2 * count} of {2 * count} values agree" in same
    other = [{**row, "layers": row["layers"] + 1} for row in rows]
    assert f"{count} of {2 * count} values" in compare(figure, "sample", other, folder)
    assert compare(figure, "full", rows, folder) == "no stored rows to compare with"


def test_the_page_of_results_lists_what_does_not_hold(tmp_path: Path) -> None:
    """With its numbers; a figure without rows is left out, and what is missing is counted."""
    figure = FIGURES["layers"]
    rows = read_rows(figure, STORED / "layers-quick.csv")
    write_rows(figure, tmp_path / "layers.csv", [{**row, "layers": 7} for row in rows])
    page = tmp_path / "page" / "results.md"
    write_results(page, [figure, FIGURES["sharing"]], tmp_path)
    text = page.read_text()
    assert "any method and topology: at most 7, for extp on K4,4\n" in text
    assert "points not measured" in text
    assert "## sharing" not in text
    assert (page.parent / "results" / "layers.svg").is_file()
    with pytest.raises(FormatError, match="no figures there"):
        write_results(page, [FIGURES["sharing"]], tmp_path)


def test_links_disabled_is_judged_where_links_are_disabled() -> None:
    """What holds of the whole graph is another claim."""
    figure = FIGURES["links-disabled"]
    rows = read_rows(figure, STORED / "links-disabled.csv")
    whole = [row if row["disabled"] else {**row, "ratio": 9.0} for row in rows]
    assert figure.judge(whole) == figure.judge(rows)
    other = [{**row, "ratio": 9.0} if row["disabled"] else row for row in rows]
    assert figure.judge(other) != figure.judge(rows)


def test_a_baseline_that_was_cut_off_did_not_terminate() -> None:
    """Its best schedule so far is drawn as cut off, and is no schedule that it ended with."""
    figure = FIGURES["link-schedules"]
    rows = read_rows(figure, STORED / "link-schedules.csv")
    cut = [panel for panel in figure.draw(rows).panels if any(each.cut for each in panel.series)]
    assert [panel.title.partition(",")[0] for panel in cut] == ["3x3x3 torus"]
    ended = [{**row, "status": "found"} for row in rows]
    verdicts = [
        next(each.verdict for each in figure.judge(given) if "SCCL" in each.claim)
        for given in (rows, ended)
    ]
    assert verdicts == [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED]


def test_without_matplotlib_it_is_said_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is measured."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(drawing, "import_module", missing)
    outcome = run("reproduce", "layers", "--size", "sample", "-o", tmp_path)
    assert outcome.code == MissingComponentError.exit_code
    assert "'.[plots]' in a clone" in outcome.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nine",), "no figure 'nine'"),
        (("layers", "--size", "huge"), "size 'huge'"),
        (("layers", "--quick", "--size", "full"), "'full' and quick; leave one"),
        (("layers", "--peer", "none.xml"), "none.xml: no such file"),
        (("layers", "--against", "none"), "none: no such folder"),
        (("layers", "--results", "x.json"), "expected FILE.md"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], expected: str, run: Run) -> None:
    """With a word on what is expected."""
    outcome = run("reproduce", *words)
    assert outcome.code == 2
    assert expected in outcome.err


def test_what_is_no_peer_is_refused_before_anything_is_measured(tmp_path: Path, run: Run) -> None:
    """A flow is no schedule of another tool, and a file is no folder."""
    flow, into = tmp_path / "flow.json", tmp_path / "into"
    alltoall.solve("ring:4").save(flow)
    outcome = run("reproduce", "layers", "--size", "sample", "--peer", flow, "-o", into)
    assert outcome.code == 2
    assert "flow.json: a flow; expected MSCCL XML" in outcome.err
    assert not into.exists()
    outcome = run("reproduce", "layers", "--size", "sample", "--no-testbed", "-o", flow)
    assert outcome.code == 2
    assert f"{flow}: figures cannot be written there" in outcome.err


def test_a_file_of_other_columns_is_refused(tmp_path: Path, run: Run) -> None:
    """Rows of another version are not mixed with ours."""
    (tmp_path / "layers-sample.csv").write_text("a,b\n1,2\n")
    outcome = run("reproduce", "layers", "--size", "sample", "--no-testbed", "-o", tmp_path)
    assert outcome.code == 3
    assert "not the columns of 'layers'" in outcome.err


def test_the_list_names_all_figures(run: Run) -> None:
    """With their place in the paper and how long they take."""
    assert [each["name"] for each in run("reproduce", "--json").json["figures"]] == list(FIGURES)
    assert "15 minutes" in run("reproduce").out


def test_figures_are_drawn_the_same_every_time(folder: Path, run: Run) -> None:
    """The same rows are the same bytes of SVG."""
    run("reproduce", "layers", "--size", "sample", "--no-testbed", "-o", folder)
    figure = FIGURES["layers"]
    rows = read_rows(figure, folder / "layers-sample.csv")
    first, again = (drawing.render(figure.draw(rows))["svg"] for _ in range(2))
    assert first == again
    other = replace(figure.draw(rows), title="another")
    assert drawing.render(other)["svg"] != first


def test_lines_that_coincide_are_one_with_both_labels() -> None:
    """Within a hundredth of the largest value, unless one was cut off."""
    first, near = Series("one", [1, 2], [1, 2]), Series("two", [1, 2], [1.01, 2])
    panel = Panel("", "x", "y", [first, near, Series("three", [1, 2], [2, 1], cut=True)])
    text = drawing.render(Picture("both", [panel]))["svg"].decode()
    assert all(label in text for label in (">one = two<", ">three (cut off)<"))
    far = replace(near, y=[1.1, 2])
    assert len(drawing.merged([first, far])) == len(
        drawing.merged([first, replace(near, cut=True)])
    )
    assert drawing.merged([first, far]) == [first, far]


@pytest.mark.parametrize("name", FIGURES)
def test_no_panel_of_stored_rows_has_too_many_curves(name: str) -> None:
    """At most five beside the bound, once those that coincide are one."""
    figure = FIGURES[name]
    for panel in figure.draw(read_rows(figure, STORED / f"{name}.csv")).panels:
        curves = [each for each in drawing.merged(panel.series) if each.kind != "bound"]
        assert len(curves) <= 5, panel.title


def test_the_page_in_the_documentation_is_that_of_the_stored_rows(tmp_path: Path) -> None:
    """Nobody has edited it, and no verdict is older than the code."""
    page = tmp_path / "results.md"
    write_results(page, list(FIGURES.values()), STORED)
    stored = Path(__file__).parents[2] / "docs" / "results.md"
    assert page.read_text() == stored.read_text()
    pictures = {each.name for each in (stored.parent / "results").iterdir()}
    assert pictures == {f"{name}.svg" for name in FIGURES}
