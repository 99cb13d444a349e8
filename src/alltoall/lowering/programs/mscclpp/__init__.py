"""MSCCL++ execution plans: emitter, reader and what operations mean."""
