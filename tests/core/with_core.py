"""Run pytest with another build of the compiled core: with_core.py FILE.so PYTEST-ARGUMENTS."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

NAME = "alltoall.core._core"
"""The module that the given file takes the place of."""


def load(path: str) -> None:
    """Load the core from a file."""
    spec = spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])


def main(path: str, arguments: list[str]) -> int:
    """Load the core from `path`, then run pytest in this process."""
    load(path)
    return pytest.main(["-n", "0", "-p", "no:cacheprovider", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
