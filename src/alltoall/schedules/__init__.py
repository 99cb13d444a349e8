"""Schedules: from a problem to whole chunks in steps."""
