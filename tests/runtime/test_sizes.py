"""Sizes as people write them."""

import pytest

from alltoall.errors import UsageError
from alltoall.ir.quantities import parse_size, parse_sizes


@pytest.mark.parametrize(("letter", "power"), [("K", 1), ("M", 2), ("G", 3)])
def test_powers_of_1024_and_of_1000(letter: str, power: int) -> None:
    """As nccl-tests and OSU have them without a unit; bytes with a decimal prefix are decimal."""
    for text in (f"3{letter}", f"3{letter}iB", f"3{letter}i", f"3 {letter.lower()}"):
        assert parse_sizes(text) == (3 * 1024**power,), text
    for text in (f"3{letter}B", f"3 {letter.lower()}B"):
        assert parse_sizes(text) == (3 * 1000**power,), text


def test_bytes_and_ranges() -> None:
    """A plain number is bytes; a range doubles and ends at or below its end."""
    assert parse_sizes("1000") == parse_sizes("1000B") == (1000,)
    assert parse_sizes("1K:5k") == (1024, 2048, 4096)
    assert parse_size(4096) == parse_size("4K") == 4096


@pytest.mark.parametrize("text", ["1Mb", "1mb", "8b", "1Kib", "1K:1Mb"])
def test_a_small_b_is_a_bit(text: str) -> None:
    """It is refused, with the two ways to say bytes."""
    with pytest.raises(UsageError, match=r"lower-case b stands for bits; expected bytes: .*1000"):
        parse_sizes(text)


@pytest.mark.parametrize("text", ["", "1.5K", "0", "-1", "2T", "1KM", "9" * 5000, "M", "1K:"])
def test_what_is_no_size(text: str) -> None:
    """Nothing, fractions, more than the limit, and digits without end."""
    with pytest.raises(UsageError, match="expected such as 1000, 64K, 1MB or 1K:16M"):
        parse_sizes(text)
