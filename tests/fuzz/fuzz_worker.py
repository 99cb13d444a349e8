"""One process that tries inputs: bounded in memory and time, so that its death is a finding.

Called by `fuzz_drive`; says on standard output what it is about to try and what came of it.
"""

import json
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from fuzz_case import Case, FuzzFailureError
from fuzz_table import FUZZERS, Fuzzer, case_of

MEMORY = 2 << 30
"""Bytes of address space that an input may add to what the process has after a first one."""


class HangError(BaseException):
    """The CPU time of an input is up; not an `Exception`, so that nothing takes it for one."""


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise HangError


def limit_memory() -> None:
    """Allow this process 2 GiB more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def attempt(name: str, seed: int, index: int, out: Path) -> tuple[str, str]:
    """Try one input, which stays in `out` unless all is well; say what it was."""
    case = case_of(name, seed, index)
    saved = out / f"{name}-{seed}-{index}.json"
    saved.write_bytes(case.to_bytes())
    kind, message = outcome_of(FUZZERS[name], case)
    if kind == "ok":
        saved.unlink()
    return kind, message


def outcome_of(fuzzer: Fuzzer, case: Case) -> tuple[str, str]:
    """Check one input; return the column that it is counted in, and what was seen."""
    # Time of the CPU, not of the clock: a busy machine is no hang.
    signal.setitimer(signal.ITIMER_PROF, fuzzer.seconds)
    try:
        fuzzer.check(case)
    except FuzzFailureError as error:
        return error.kind, str(error)
    except HangError:
        return "hang", f"still running after {fuzzer.seconds} s of CPU time"
    except MemoryError:
        return "memory", traceback.format_exc()
    except Exception:  # whatever is not raised on purpose is what this is looking for
        return "traceback", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ok", ""


def main() -> None:
    """Try inputs from a first index on, until their number or the time is reached."""
    name, seed, first, inputs, seconds, out = sys.argv[1:]
    say = sys.stdout
    signal.signal(signal.SIGPROF, _hang)
    started = time.monotonic()
    limited = False
    for index in range(int(first), int(first) + int(inputs)):
        if time.monotonic() - started >= float(seconds):
            break
        kind, message = attempt(name, int(seed), index, Path(out))
        say.write(json.dumps([index, kind, message]) + "\n")
        say.flush()
        if not limited:  # kernels are loaded and samples made by now
            limit_memory()
            limited = True


if __name__ == "__main__":
    main()
