"""A oneCCL-style XML of our own schema."""
