"""The exchange in C, and how it is built; `engine.h` is the page to begin with."""
