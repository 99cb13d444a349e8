"""A fabric of network namespaces on this machine: real ranks, real TCP, links with real limits."""
