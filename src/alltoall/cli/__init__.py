"""The command line: one thin file per verb, and the exit codes.

0 done; 2 usage; 3 the input is not a valid problem, or the time limit came before any answer;
4 a verification failed; 5 a needed component is missing; 130 stopped by Ctrl-C; 143 stopped by
SIGTERM.

The process starts here: signal handlers are installed before any slow import.
"""

import os
import sys
from importlib import import_module

from alltoall.cli.signals import listen


def main() -> None:
    """Run the command line and end the process.

    It skips the interpreter's shutdown, which takes 0.1 s in which signals are half handled, and
    which waits forever for a running solver thread.
    """
    listen()
    # Else idle threads of OpenBLAS, numpy's and HiGHS's, spin for 2**26 cycles.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")
    code: int = import_module("alltoall.cli.app").run_or_report(sys.argv[1:])
    os._exit(code)
