"""HTML pages of flows, routes, schedules, topologies and runs."""
