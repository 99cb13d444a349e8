"""Comparisons of networks, methods and failures."""
