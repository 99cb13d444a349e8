"""`python -m a2aflow`."""

from a2aflow.cli import main

main()
