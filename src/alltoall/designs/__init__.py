"""Which network to build: searches for wirings, and what is found at a size."""
