"""Compiled searches that make paths; they know links, not problems."""

from alltoall.paths.kernels import let_threads_fork, pause_limits_while_compiling

let_threads_fork()
pause_limits_while_compiling()
