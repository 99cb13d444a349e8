"""Virtual layers without cyclic dependencies for routes that exist."""
