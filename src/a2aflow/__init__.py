"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer."""
