"""The command line: one thin file per verb, and the exit codes.

0 done; 2 usage; 3 the input is not a valid problem, or the time limit came before any answer;
4 a verification failed; 5 a needed component is missing; 130 stopped by Ctrl-C; 143 stopped by
SIGTERM.

This file is where the process begins: it hears signals before it imports anything of weight.
"""

import os
import sys
from importlib import import_module

from alltoall.cli.signals import listen


def main() -> None:
    """Run the command line and end the process.

    It ends without the interpreter's own shutdown: that takes a tenth of a second in which a
    signal would be met by half of Python, and never ends while a solver's thread is running.
    """
    listen()
    code: int = import_module("alltoall.cli.app").run_or_report(sys.argv[1:])
    os._exit(code)
