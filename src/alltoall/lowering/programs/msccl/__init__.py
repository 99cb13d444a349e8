"""MSCCL XML: emitter, lexer and reader of its dialect, and three runtimes' limits."""
