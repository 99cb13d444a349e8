"""Run independent items of work: in this process, on threads, in processes, or on a Dask cluster.

All of them report progress, keep the time limit, and cancel waiting items when they end early. Only
a few items are under way at a time, so that memory does not grow with their number. A worker
process that dies takes only its own item with it, which runs once more. A Dask scheduler keeps
every item until its result has arrived here, and runs it again if its worker is lost.
"""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar, cast

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.ir.words import ProgressMessage
from alltoall.settings import SolveSettings

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_RETRIES = 3
"""Retries of an item that failed on a cluster."""

SCHEDULER_SECONDS = WORKER_SECONDS = 10.0
"""Seconds for a scheduler to answer, and then to have a worker."""

POLL_SECONDS = 0.2
"""Seconds between checks of the time limit while waiting for a result."""

ITEMS_AHEAD = 4
"""Items under way for each concurrent worker: enough that none waits for the next."""

SERVING = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from alltoall.flows.workers import serve; serve(int(sys.argv[1]))"
)
"""The program of a worker. Unlike multiprocessing it never imports the script of the caller, which
would run again where nothing guards it."""


class Local(Enum):
    """How work runs without a cluster."""

    ONE_BY_ONE = "here"
    """Sequentially, in this process."""
    THREADS = "threads"
    """On threads: for compiled code that releases the interpreter's lock."""
    PROCESSES = "processes"
    """In worker processes, one item at a time in each: for solvers."""


@dataclass(frozen=True)
class _Engine:
    """A function that submits items, and the number of concurrent items."""

    submit: Callable[..., Any]
    window: int


def run_all(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    count: int,
    settings: SolveSettings,
    local: Local,
    what: str,
) -> Iterator[Result]:
    """Yield the results of a function of all `count` items, in order; raise TimeoutError when late.

    With `settings.cluster` it runs there, else as `local` says. The function must be importable,
    because it and the items are sent to other processes.
    """
    workers = min(settings.workers, count)
    alone = settings.cluster is None and (workers <= 1 or local is Local.ONE_BY_ONE)
    with ExitStack() as stack:
        if alone:
            results = _one_by_one(function, items, settings)
        else:
            engine = stack.enter_context(_engine(settings, local, workers))
            ended = stack.enter_context(
                closing(_ended(function, items, engine, settings, in_order=True))
            )
            results = (future.result() for _, future in ended)
        for done, result in enumerate(results, start=1):
            settings.report(ProgressMessage.of_count(f"{what}: {done} of {count}", done, count))
            yield result


def run_apart(
    function: Callable[[Item], Result], items: Sequence[Item], settings: SolveSettings
) -> Iterator[tuple[int, Result | MissingComponentError]]:
    """Yield the place and the result of every item as it ends; raise TimeoutError when late.

    If the workers of an item died, the error stands for its result. Running items end when the
    caller stops. The function must be importable, and its first exception ends everything.
    """
    lost = () if settings.cluster is None else (_distributed().KilledWorker,)
    with (
        _engine(settings, Local.PROCESSES, min(settings.workers, len(items))) as engine,
        closing(_ended(function, items, engine, settings, in_order=False)) as ended,
    ):
        for place, future in ended:
            try:
                yield place, future.result()
            except MissingComponentError as error:
                yield place, error
            except lost as error:
                yield place, MissingComponentError(f"its workers died: {error}")


class _Worker:
    """A process of this machine that works on one item at a time."""

    def __init__(self) -> None:
        from multiprocessing.connection import Connection  # noqa: PLC0415 (slow to import)

        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", SERVING, str(theirs.fileno()), *sys.path]
            self.process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the caller, who ends us.
            )
        self.pipe: Any = Connection(ours.detach())

    def end(self) -> int:
        """End the process; return its exit code."""
        self.process.kill()
        self.pipe.close()
        return self.process.wait()


class _Processes:
    """Worker processes, each of which serves one thread at a time."""

    def __init__(self) -> None:
        self.started: list[_Worker] = []
        self.idle: list[_Worker] = []
        self.over, self.lock = False, threading.Lock()

    def run(self, function: Callable[[Item], Result], item: Item) -> Result:
        """Return the result of an item; run it once more if its process dies."""
        code = 0
        for _ in range(2):
            with self.lock:
                if self.over:
                    break
                if not self.idle:
                    self.idle.append(_Worker())
                    self.started.append(self.idle[-1])
                worker = self.idle.pop()
            try:
                worker.pipe.send((function, item))
                found = worker.pipe.recv()
            except (EOFError, OSError):
                code = worker.end()
                continue
            self.idle.append(worker)
            if isinstance(found, _Raised):
                raise found.error
            return cast("Result", found)
        end = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if code == -signal.SIGKILL:
            end = "killed (signal 9): is there enough memory for it?"
        raise MissingComponentError(f"its worker process died twice, {end}")

    def kill(self) -> None:
        """End all processes, which ends the threads that wait for them."""
        with self.lock:
            self.over = True
        for worker in self.started:
            worker.process.kill()


@dataclass(frozen=True)
class _Raised:
    """An exception that a worker sends instead of a result."""

    error: Exception


def serve(descriptor: int) -> None:
    """Serve items from a socket until the other side closes it."""
    from multiprocessing.connection import Connection  # noqa: PLC0415 (slow to import)

    found: object
    with Connection(descriptor) as pipe, suppress(EOFError, OSError):
        while True:
            function, item = pipe.recv()
            try:
                found = function(item)
            except Exception as error:
                found = _Raised(error)
            pipe.send(found)


def until_late(results: Iterable[Result]) -> Iterator[Result]:
    """Yield results until the time limit."""
    with suppress(TimeoutError):
        yield from results


def require_cluster(settings: SolveSettings) -> None:
    """Raise if the cluster cannot be used: better now than after hours of work."""
    if settings.cluster is not None:
        with _cluster(settings.cluster, alone=False):
            pass


def _one_by_one(
    function: Callable[[Item], Result], items: Iterable[Item], settings: SolveSettings
) -> Generator[Result, None, None]:
    """Yield results that are computed in this process."""
    for item in items:
        result = function(item)
        settings.check_time()
        yield result


def _ended(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    engine: _Engine,
    settings: SolveSettings,
    in_order: bool,
) -> Generator[tuple[int, Any], None, None]:
    """Yield the place and the future of each item that ended, with a window of items under way."""
    busy: dict[Any, int] = {}
    waiting = enumerate(items)
    try:
        while True:
            for place, item in islice(waiting, engine.window - len(busy)):
                busy[engine.submit(function, item)] = place
            if not busy:
                return
            first = next(iter(busy))
            left = settings.seconds_left()
            with suppress(TimeoutError):  # Unlike the result, only of the waiting itself.
                first.exception(timeout=POLL_SECONDS if left is None else min(POLL_SECONDS, left))
            settings.check_time()
            for future in [first] if in_order else list(busy):
                if future.done():
                    yield busy[future], future
                    del busy[future]
                    settings.check_time()
    finally:
        for future in busy:
            future.cancel()


@contextmanager
def _engine(settings: SolveSettings, local: Local, workers: int) -> Iterator[_Engine]:
    """Start the engine of the settings, and end it in any case."""
    if settings.cluster is not None:
        with _cluster(settings.cluster, local is Local.PROCESSES) as engine:
            yield engine
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (slow to import)

    processes = _Processes()
    try:
        with ThreadPoolExecutor(workers) as threads:
            submit: Callable[..., Any] = threads.submit
            if local is Local.PROCESSES:
                submit = partial(submit, processes.run)
            try:
                yield _Engine(submit, ITEMS_AHEAD * workers)
            finally:
                processes.kill()
    finally:
        for worker in processes.started:
            worker.end()


@contextmanager
def _cluster(address: str, alone: bool) -> Iterator[_Engine]:
    """Submit to a Dask cluster, whose failures become one kind of error."""
    from concurrent.futures import CancelledError  # noqa: PLC0415 (slow to import)

    distributed = _distributed()
    try:
        with closing(_client(distributed, address)) as client:
            threads = sum(client.nthreads().values())

            def submit(function: Callable[[Any], Any], item: Any) -> Any:
                call = (_alone, function, item) if alone else (function, item)
                return client.submit(*call, pure=False, retries=MOST_RETRIES)

            yield _Engine(submit, ITEMS_AHEAD * max(threads, ITEMS_AHEAD))
    except TimeoutError:
        raise
    except (distributed.KilledWorker, CancelledError, OSError) as error:
        raise MissingComponentError(
            f"the Dask cluster at {address} is gone: {error}; see the logs of its scheduler and "
            "workers, or work without a cluster"
        ) from error
    except RuntimeError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        raise MissingComponentError(
            f"the Dask cluster at {address} cannot run alltoall: {error.__cause__}; install the "
            "same version, with the same Python, on its scheduler and workers"
        ) from error


def _client(distributed: Any, address: str) -> Any:
    """Return a client of a cluster that answers and has a worker."""
    try:
        client = distributed.Client(address, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MissingComponentError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, "
            "or check the address"
        ) from error
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        client.close()
        raise MissingComponentError(
            f"the Dask scheduler at {address} has no workers; start some with "
            f"`dask worker {address}`"
        ) from None
    return client


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingComponentError(
            f"work on a cluster needs Dask, which is not installed; {how_to_install('cluster')}"
        ) from None


_ONE_SOLVER = threading.Lock()
"""HiGHS has one thread pool per process; a Dask worker may have several threads."""


def _alone(function: Callable[[Item], Result], item: Item) -> Result:
    """Call the function, one call at a time in this process."""
    with _ONE_SOLVER:
        return function(item)
