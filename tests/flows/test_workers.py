"""The same work with the same results: here, on threads, in processes, and on a real cluster."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from alltoall.errors import MissingComponentError, UsageError
from alltoall.flows import METHODS, SolveSettings, decompose, solve, workers
from alltoall.flows.workers import ITEMS_AHEAD, Local, require_cluster, run_all
from alltoall.ir.problem import Problem
from alltoall.paths.blocks import thread_count, using_threads
from alltoall.routes.weights import route_extp
from alltoall.settings import RouteSettings, cores
from alltoall.topologies.spec import build
from cluster_tasks import die, double, double_or_die, refuse
from dask_clusters import Cluster, running_cluster

PROBLEM = Problem.all_to_all(build("genkautz:n=10,d=3"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Give a scheduler with two workers."""
    pytest.importorskip("distributed")
    with running_cluster(tmp_path) as found:
        yield found


@pytest.mark.parametrize("local", Local)
@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_order_with_progress(local: Local, count: int) -> None:
    """However the work runs, and with however many workers."""
    messages: list[str] = []
    asked = SolveSettings(workers=count, report=messages.append)
    assert list(run_all(double, range(9), 9, asked, local, "things")) == list(range(0, 18, 2))
    assert messages == [f"things: {done} of 9" for done in range(1, 10)]


@pytest.mark.parametrize("local", [Local.ONE_BY_ONE, Local.THREADS])
def test_only_a_few_items_are_made_at_a_time(local: Local) -> None:
    """Memory does not grow with the number of items."""
    made: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            made.append(item)
            yield item

    results = run_all(double, items(), 1000, SolveSettings(workers=2), local, "things")
    for done, _ in enumerate(results):
        assert len(made) <= done + 2 * ITEMS_AHEAD


@pytest.mark.parametrize("local", [Local.ONE_BY_ONE, Local.THREADS])
def test_errors_of_the_work_come_through(local: Local) -> None:
    """What the function raises, the caller gets."""
    with pytest.raises(ArithmeticError, match="no 0"):
        list(run_all(refuse, range(5), 5, SolveSettings(workers=2), local, "things"))


def test_being_late_raises_and_leaves_nothing_running() -> None:
    """The time limit holds for every item."""
    late = SolveSettings(workers=2, time_limit=1e-9)
    for local in (Local.ONE_BY_ONE, Local.THREADS):
        with pytest.raises(TimeoutError):
            list(run_all(double, range(5), 5, late, local, "things"))


class Recorded(Future[int]):
    """A future that notes when it is cancelled."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self.events = events

    def cancel(self) -> bool:
        """Note it."""
        self.events.append("cancelled")
        return True


@pytest.mark.parametrize("moment", ["while waiting", "between results"])
def test_ctrl_c_cancels_what_is_under_way(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All futures that were submitted, on whatever engine, and before that ends."""
    events: list[str] = []

    def submit(*_: object) -> Recorded:
        future = Recorded(events)
        if moment == "while waiting":
            future.set_exception(KeyboardInterrupt())
        else:
            future.set_result(1)
        return future

    @contextmanager
    def engine(*_: object) -> Iterator[workers._Engine]:
        try:
            yield workers._Engine(submit, window=3)
        finally:
            events.append("ended")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "_engine", engine)
    asked = SolveSettings(report=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(run_all(double, range(9), 9, asked, Local.THREADS, "things"))
    assert events == ["cancelled", "cancelled", "cancelled", "ended"]


def test_a_cluster_gives_what_this_machine_gives(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs and blocks of sources, down to the last bit, and errors."""
    monkeypatch.setattr(decompose, "BLOCK_ENTRIES", 60)
    messages: list[str] = []
    there = SolveSettings(cluster=cluster.address, report=messages.append)
    for method in ("decomposed", "decomposed-lp"):
        near, far = solve(PROBLEM, method), solve(PROBLEM, method, there)
        for key in ("rate", "source", "destination", "start", "link", "amount"):
            assert np.array_equal(getattr(near, key), getattr(far, key))
    near_routes = route_extp(PROBLEM, RouteSettings())
    far_routes = route_extp(PROBLEM, RouteSettings(solve=there))
    assert np.array_equal(near_routes.link, far_routes.link)
    assert np.array_equal(near_routes.weight, far_routes.weight)
    assert "children: 10 of 10" in messages
    assert sum("blocks of sources: 3 of" in message for message in messages) == 2
    # Errors of the work come back as they are, after the retries.
    with pytest.raises(ArithmeticError, match="no 0"):
        list(run_all(refuse, range(2), 2, there, Local.PROCESSES, "things"))


def test_a_worker_killed_at_its_work_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """The item on which a worker dies runs again on the other one."""
    items = [(number, str(tmp_path / "died") if number == 4 else "") for number in range(20)]
    asked = SolveSettings(cluster=cluster.address)
    found = run_all(double_or_die, items, len(items), asked, Local.THREADS, "things")
    assert list(found) == list(range(0, 40, 2))
    assert (tmp_path / "died").exists()
    assert [code for each in cluster.workers if (code := each.poll())] == [-signal.SIGKILL]


def test_results_that_die_with_a_worker_are_computed_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed after the first result has arrived; the flow is complete all the same."""
    monkeypatch.setattr(decompose, "BLOCK_ENTRIES", 60)

    def kill_at_the_first(message: str) -> None:
        if ": 1 of " in message:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    there = SolveSettings(cluster=cluster.address, report=kill_at_the_first)
    flow, expected = solve(PROBLEM, "decomposed", there), solve(PROBLEM, "decomposed")
    assert cluster.workers[0].wait(60) == -signal.SIGKILL
    assert np.array_equal(flow.amount, expected.amount)


def test_work_that_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    """With one clear error, not with silence."""
    pytest.importorskip("distributed")
    with running_cluster(tmp_path, workers=1, failures=0) as cluster:
        asked = SolveSettings(cluster=cluster.address)
        with pytest.raises(MissingComponentError, match=f"cluster at {cluster.address} is gone"):
            list(run_all(die, range(2), 2, asked, Local.PROCESSES, "things"))


def test_a_scheduler_killed_at_work_is_missed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A component that the work needs is not there any more, wherever that is noticed."""
    monkeypatch.setattr(decompose, "BLOCK_ENTRIES", 20)
    monkeypatch.setattr(workers, "SCHEDULER_SECONDS", 3.0)

    def kill_at_the_first(message: str) -> None:
        if ": 1 of " in message:
            cluster.scheduler.kill()

    there = SolveSettings(cluster=cluster.address, report=kill_at_the_first)
    with pytest.raises(MissingComponentError, match=f"at {cluster.address}"):
        solve(PROBLEM, "decomposed", there)


def test_a_cluster_that_lacks_the_package_is_told_so(tmp_path: Path) -> None:
    """Its scheduler and workers need what the work is made of."""
    pytest.importorskip("distributed")
    with running_cluster(tmp_path, workers=1, sources=[]) as cluster:
        asked = SolveSettings(cluster=cluster.address)
        with pytest.raises(MissingComponentError, match="'cluster_tasks'; install the same"):
            list(run_all(double, range(2), 2, asked, Local.THREADS, "things"))


def test_a_scheduler_without_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for a worker that nobody starts helps nobody."""
    pytest.importorskip("distributed")
    with running_cluster(tmp_path, workers=0) as cluster:
        monkeypatch.setattr(workers, "WORKER_SECONDS", 0.1)
        with pytest.raises(MissingComponentError, match="start some with `dask worker tcp"):
            require_cluster(SolveSettings(cluster=cluster.address))


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any solving, with what to do."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "SCHEDULER_SECONDS", 0.1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        asked = SolveSettings(cluster=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
        for method in ("decomposed", "decomposed-lp"):
            with pytest.raises(MissingComponentError, match="no Dask scheduler answers at tcp"):
                solve(PROBLEM, method, asked)
        with pytest.raises(MissingComponentError, match="start one with `dask scheduler`"):
            route_extp(PROBLEM, RouteSettings(solve=asked))


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for every other optional dependency."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(workers, "import_module", missing)
    with pytest.raises(MissingComponentError, match=r"pip install '\.\[cluster\]' in a clone"):
        solve(PROBLEM, "decomposed", SolveSettings(cluster="tcp://127.0.0.1:1"))


@pytest.mark.parametrize("address", ["", "localhost", "localhost:8786", "http://here:1", "tcp://x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    """With an example of one."""
    with pytest.raises(UsageError, match="such as tcp://localhost:8786"):
        SolveSettings(cluster=address)


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_change_the_answer(method: str) -> None:
    """Loops that share out sources or links add up the same numbers in the same order."""
    found = []
    for threads in (1, cores()):
        with using_threads(threads):
            found.append(solve(Problem.all_to_all(build("genkautz:n=20,d=3")), method))
    one, several = found
    assert one.bound == several.bound
    assert np.array_equal(one.link, several.link)
    assert np.array_equal(one.amount, several.amount)


def test_threads_are_bounded_and_restored() -> None:
    """Never fewer than one, nor more than there are; the caller's number survives an error."""
    before = thread_count()
    with using_threads(1) as one:
        assert thread_count() == one == 1
        with using_threads(10_000) as all_of_them:
            assert thread_count() == all_of_them == cores()
        assert thread_count() == 1
    with using_threads(0) as least:
        assert least == 1
    with pytest.raises(ArithmeticError), using_threads(1):
        refuse(0)
    assert thread_count() == before
