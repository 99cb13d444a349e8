"""Workloads: programs dominated by an all-to-all, which check their own answers.

`fft3d` and `moe` are the programs of a rank; they use the two protocols of `ranks`, so that they
run over MPI, torch, or any other transport. `launch` starts the ranks, and `public` has the
exported functions.
"""
