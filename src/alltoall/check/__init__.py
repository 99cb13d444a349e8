"""Independent checkers: they import the nouns, but none of the code that makes them."""
