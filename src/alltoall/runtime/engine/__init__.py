"""The exchange in C, and its build; start reading at `engine.h`."""
