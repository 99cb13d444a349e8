"""GOAL text: what LogGOPSim and ATLAHS simulate."""
