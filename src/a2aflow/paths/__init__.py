"""Compiled searches that make paths; they know links, not problems."""
