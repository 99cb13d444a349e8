"""SRv6 segment lists."""
