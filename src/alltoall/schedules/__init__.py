"""From a problem to whole chunks, step by step."""
