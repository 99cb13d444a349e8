"""The nouns that stages pass to each other, their file forms, and their checkers."""
