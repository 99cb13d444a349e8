"""Network design: families of a size, and searches for wirings."""
