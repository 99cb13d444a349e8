"""From flows to timed paths, and from fractions to integer chunks."""
