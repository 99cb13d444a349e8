"""Schedules become programs for ranks: passes, then one folder per file format."""
