"""Distances, path searches and splitting of flows; they know links, not problems."""
