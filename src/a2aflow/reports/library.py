"""The charting library that goes into every page: the one file that knows Plotly."""

from importlib import import_module

from a2aflow.errors import MissingComponentError


def charting_library() -> str:
    """Return the JavaScript of Plotly, as its package has it."""
    try:
        plotly = import_module("plotly.offline")
    except ImportError:
        raise MissingComponentError(
            "a report needs plotly, which is not installed; pip install 'a2aflow[report]'"
        ) from None
    script: str = plotly.get_plotlyjs()
    return script
