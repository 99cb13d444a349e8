"""From a problem to a certified flow."""
