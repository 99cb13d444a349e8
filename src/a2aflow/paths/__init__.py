"""Compiled searches that make paths; they know links, not problems."""

from a2aflow.paths.kernels import pause_limits_while_compiling

pause_limits_while_compiling()
