"""Compare a text with a file in tests/golden, or rewrite the file under `--update-golden`."""

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(request: pytest.FixtureRequest, name: str, text: str) -> None:
    """Compare `text` with the golden file of that name."""
    path = GOLDEN / name
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text)
    assert text == path.read_text(), f"{name} has changed; see it, then run with --update-golden"
