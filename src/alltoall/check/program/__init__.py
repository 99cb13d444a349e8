"""Interpreters of lowered programs, which find deadlocks, races, wrong and missing chunks."""
