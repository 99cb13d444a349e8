"""`python -m a2aflow`."""

from a2aflow.cli import main

if __name__ == "__main__":
    main()
