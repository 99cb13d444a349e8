"""The charting library that goes into every page: the one file that knows Plotly."""

from importlib import import_module

from a2aflow.errors import MissingComponentError, how_to_install


def charting_library() -> str:
    """Return the JavaScript of Plotly, as its package has it."""
    try:
        plotly = import_module("plotly.offline")
    except ImportError:
        raise MissingComponentError(
            f"a report needs plotly, which is not installed; {how_to_install('report')}"
        ) from None
    script: str = plotly.get_plotlyjs()
    return script
