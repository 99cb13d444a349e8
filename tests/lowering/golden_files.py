"""Compare a text with a file in tests/golden, or rewrite the file under `--update-golden`."""

from collections.abc import Mapping
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"


def check_golden(
    request: pytest.FixtureRequest, name: str, content: str | Mapping[str, bytes]
) -> None:
    """Compare a text with the golden file of that name, or files with those of that folder."""
    path = GOLDEN / name
    files = {path: content.encode()} if isinstance(content, str) else {}
    if not isinstance(content, str):
        files = {path / each: data for each, data in content.items()}
    for place, data in files.items():
        if request.config.getoption("--update-golden", default=False):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data)
        said = f"{place.name} has changed; see it, then run with --update-golden"
        assert data == place.read_bytes(), said
