"""Puts, signals and waits for the one-sided calls of NCCL."""
