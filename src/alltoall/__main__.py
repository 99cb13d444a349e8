"""`python -m alltoall`."""

from alltoall.cli import main

if __name__ == "__main__":
    main()
