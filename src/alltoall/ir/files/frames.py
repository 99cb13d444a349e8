"""Rows of nouns as pandas DataFrames: the one file that knows pandas."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from alltoall.errors import MissingComponentError, how_to_install


def frame_of(columns: Mapping[str, Iterable[object]]) -> Any:
    """Return columns of equal length as a DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingComponentError(
            f"to_frame() needs pandas, which is not installed; {how_to_install('frames')}"
        ) from None
    return pandas.DataFrame(dict(columns))
