"""Chakra execution traces: what ASTRA-sim takes as a custom collective."""
