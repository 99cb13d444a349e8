"""Artefacts as JSON: exact round trips for our nouns, clear errors for everything else."""
