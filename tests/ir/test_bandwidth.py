"""Bandwidths as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import UsageError
from alltoall.ir.quantities import bytes_per_second, exact_rate, rate_in_words

HUNDRED = ("100G", "100Gbps", "100GbE", "100GE", "100Gb", "100 Gbit/s", "100Gb/s", "100 Gbps",
           "0.1T", "100000M", "12.5GB/s", "12.5 GBps", "100gbit", "1e2G")  # fmt: skip


@pytest.mark.parametrize("text", HUNDRED)
def test_a_hundred_gigabits(text: str) -> None:
    """A switch's data sheet, ethtool, tc and a benchmark write it differently."""
    assert bytes_per_second(text) == pytest.approx(12.5e9, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["", "100", "G", "100GB", "100gbps", "100mbps", "100E", "-1G", "0G", "1..5G", "nanG",
             "1e999G", "100G 5", "100 G bps", "100Gbyte"]
)  # fmt: skip
def test_what_is_no_rate(text: str) -> None:
    """Bytes without a time, small prefixes outside of tc's own word, and numbers of nothing."""
    with pytest.raises(UsageError, match="expected a positive number with a unit, such as 100G"):
        bytes_per_second(text)


@given(rate=st.floats(1e-3, 1e18))
def test_rates_are_read_back(rate: float) -> None:
    """Words for people to six digits, exact ones to the last."""
    assert bytes_per_second(exact_rate(rate)) == rate
    assert bytes_per_second(rate_in_words(rate)) == pytest.approx(rate, rel=1e-5)
