"""The tables that OpenSM's file routing engine loads: emitter, reader."""
