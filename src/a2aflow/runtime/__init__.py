"""Interpreters that move real bytes."""
