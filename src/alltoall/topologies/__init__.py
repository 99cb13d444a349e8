"""Topology families, hardware presets, operators, readers and writers."""
