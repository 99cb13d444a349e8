"""Run independent items of work: in this process, on threads, in processes, or on a Dask cluster.

All of them yield results in the order of the items, report progress, keep the time limit, and
cancel waiting items when they end early. Only a few items are under way at a time, so that memory
does not grow with their number. A Dask scheduler keeps every item until its result has arrived
here, and runs it again if its worker is lost.

`run_apart` is for independent items: results come as they end, and a worker that dies takes only
its own item with it.
"""

import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

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
            results = _in_order(function, items, engine, settings)
        stack.enter_context(closing(results))
        for done, result in enumerate(results, start=1):
            settings.report(ProgressMessage.of_count(f"{what}: {done} of {count}", done, count))
            yield result


def run_apart(
    function: Callable[[Item], Result], items: Sequence[Item], settings: SolveSettings
) -> Generator[tuple[int, Result | MissingComponentError], None, None]:
    """Yield the place and the result of every item as it ends; raise TimeoutError when late.

    An item whose worker died runs once more; if that dies too, the error stands for its result.
    Running items end when the caller stops. The function must be importable, and its first
    exception ends everything.
    """
    run = _in_own_processes if settings.cluster is None else _apart_on_cluster
    return run(function, items, settings)


def _in_own_processes(
    function: Callable[[Item], Result], items: Sequence[Item], settings: SolveSettings
) -> Generator[tuple[int, Result | MissingComponentError], None, None]:
    from multiprocessing.connection import wait  # noqa: PLC0415 (slow to import)

    waiting = deque((place, False) for place in range(len(items)))
    idle: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, int, bool]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < settings.workers:
                worker = idle.pop() if idle else _Worker()
                worker.send(function, items[waiting[0][0]])
                busy[worker.pipe] = (worker, *waiting.popleft())
            settings.check_time()
            for pipe in wait(list(busy), POLL_SECONDS):
                worker, place, again = busy.pop(pipe)
                try:
                    found = worker.pipe.recv()
                    idle.append(worker)
                except (EOFError, OSError):
                    code = worker.end()
                    if not again:
                        waiting.append((place, True))
                        continue
                    found = MissingComponentError(f"its worker process died twice, {_death(code)}")
                if isinstance(found, _Raised):
                    raise found.error
                yield place, found
    finally:
        for worker in (*idle, *(each for each, _, _ in busy.values())):
            worker.end()


class _Worker:
    """A process of this machine that works on one item at a time."""

    def __init__(self) -> None:
        from multiprocessing.connection import Connection  # noqa: PLC0415 (slow to import)

        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", SERVING, str(theirs.fileno()), *sys.path]
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the caller, who ends us.
            )
        self.pipe: Any = Connection(ours.detach())

    def send(self, function: Callable[..., Any], item: object) -> None:
        """Send an item; a dead process is noticed when its result is read."""
        with suppress(OSError):
            self.pipe.send((function, item))

    def end(self) -> int:
        """End the process; return its exit code."""
        self.pipe.close()
        self._process.kill()
        return self._process.wait()


@dataclass(frozen=True)
class _Raised:
    """An exception that a worker sends instead of a result."""

    error: Exception


def _death(code: int) -> str:
    """Return the end of a process in words."""
    if code == -signal.SIGKILL:
        return "killed (signal 9): is there enough memory for it?"
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


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


def _apart_on_cluster(
    function: Callable[[Item], Result], items: Sequence[Item], settings: SolveSettings
) -> Generator[tuple[int, Result | MissingComponentError], None, None]:
    assert settings.cluster is not None
    killed = _distributed().KilledWorker
    with _cluster(settings.cluster, alone=True) as engine:
        waiting, busy = deque(range(len(items))), dict[Any, int]()
        try:
            while waiting or busy:
                while waiting and len(busy) < engine.window:
                    place = waiting.popleft()
                    busy[engine.submit(function, items[place])] = place
                settings.check_time()
                ended = [future for future in busy if future.done()]
                if not ended:
                    with suppress(TimeoutError):  # Unlike done(), this notices a lost scheduler.
                        next(iter(busy)).exception(timeout=POLL_SECONDS)
                for future in ended:
                    place = busy.pop(future)
                    try:
                        yield place, future.result()
                    except killed as error:
                        yield place, MissingComponentError(f"its workers died: {error}")
        finally:
            for future in busy:
                future.cancel()


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


def _in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    engine: _Engine,
    settings: SolveSettings,
) -> Generator[Result, None, None]:
    """Yield results in order, with a window of items under way; cancel the rest at the end."""
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(engine.submit(function, item))
            if len(waiting) >= engine.window:
                yield _result(waiting[0], settings)
                waiting.popleft()
        while waiting:
            yield _result(waiting[0], settings)
            waiting.popleft()
    finally:
        for future in waiting:
            future.cancel()


def _result(future: Any, settings: SolveSettings) -> Any:
    while not future.done():
        left = settings.seconds_left()
        try:
            # Unlike the result, this raises only for the waiting itself.
            future.exception(timeout=POLL_SECONDS if left is None else min(POLL_SECONDS, left))
        except TimeoutError:
            if settings.out_of_time():
                raise
    result = future.result()
    settings.check_time()
    return result


@contextmanager
def _engine(settings: SolveSettings, local: Local, workers: int) -> Iterator[_Engine]:
    """Start the engine of the settings, and end it in any case."""
    if settings.cluster is not None:
        with _cluster(settings.cluster, local is Local.PROCESSES) as engine:
            yield engine
    elif local is Local.THREADS:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (slow to import)

        with ThreadPoolExecutor(workers) as threads:
            yield _Engine(threads.submit, ITEMS_AHEAD * workers)
    else:
        with _processes(workers) as engine:
            yield engine


@contextmanager
def _processes(workers: int) -> Iterator[_Engine]:
    import multiprocessing  # noqa: PLC0415 (both are slow to import)
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    # Forking a process that has run compiled threads can deadlock; spawned workers cannot.
    context = multiprocessing.get_context("spawn")
    ignored = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent.
    with ProcessPoolExecutor(workers, context, signal.signal, ignored) as pool:
        try:
            yield _Engine(pool.submit, ITEMS_AHEAD * workers)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _cluster(address: str, alone: bool) -> Iterator[_Engine]:
    """Submit to a Dask cluster, whose failures become one kind of error."""
    from concurrent.futures import CancelledError  # noqa: PLC0415 (slow to import)

    distributed = _distributed()
    try:
        with _client(distributed, address) as client:
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


@contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    """Connect a client to a cluster that answers and has a worker."""
    try:
        client = distributed.Client(address, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MissingComponentError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, "
            "or check the address"
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise MissingComponentError(
                f"the Dask scheduler at {address} has no workers; start some with "
                f"`dask worker {address}`"
            ) from None
        yield client
    finally:
        client.close()


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
