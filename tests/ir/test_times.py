"""Times as people write them."""

import pytest

from alltoall.errors import UsageError
from alltoall.ir.quantities import parse_seconds


@pytest.mark.parametrize(
    "text", ["2us", "2 us", "2\u00b5s", "2\u03bcs", "0.002ms", "2000ns", "2e-6", "2e-6s", "2E0us"]
)
def test_two_microseconds(text: str) -> None:
    """With a unit, or as a number of seconds."""
    assert parse_seconds(text) == pytest.approx(2e-6, rel=1e-12)
    assert parse_seconds(2e-6) == 2e-6


@pytest.mark.parametrize("text", ["", "us", "2 seconds", "2US", "2m", "1.2.3us", "two"])
def test_what_is_no_time(text: str) -> None:
    """Minutes are left out on purpose: m is a prefix as well."""
    with pytest.raises(UsageError, match="expected a number with a unit, such as 2us"):
        parse_seconds(text)
