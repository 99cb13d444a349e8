"""Artefacts as JSON: exact round trips for nouns, clear errors for other content."""
