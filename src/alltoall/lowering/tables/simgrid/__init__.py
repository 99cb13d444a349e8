"""SimGrid platforms that keep to given routes."""
