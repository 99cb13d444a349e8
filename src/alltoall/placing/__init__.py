"""Chunks on paths: the one engine behind every method that places whole chunks."""
