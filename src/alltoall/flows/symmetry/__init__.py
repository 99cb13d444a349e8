"""Symmetry of a problem: its automorphisms, the orbits that make programs small, translations."""
