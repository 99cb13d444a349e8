"""Fabrics: shards and capacities in bytes and seconds, and a word where capacities are not 1."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alltoall.errors import InputError
from alltoall.flows import solve
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.fabric import Fabric
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import bytes_per_second, rate_in_words
from alltoall.ir.summaries import physical
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import scale_capacities, with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

TORUS = build("torus:3x3")
RATE = bytes_per_second("25Gbps")


def test_what_a_time_is_in_seconds() -> None:
    """Three shards of a megabyte over 25 Gbit/s take just under a millisecond."""
    fabric = Fabric(TORUS, RATE)
    assert fabric.seconds(3.0, 1_000_000) == pytest.approx(0.96e-3)
    assert fabric.shard_times(0.96e-3, 1_000_000) == pytest.approx(3.0)
    assert fabric.throughput(Demand(9), 3.0) == pytest.approx(8 / 3 * 3.125e9)
    assert fabric.bound_throughput(1 / 3) == pytest.approx(8 / 3 * 3.125e9)


def test_the_injection_limit() -> None:
    """The terminal with most to send or to receive sets the least time; without a limit none."""
    fabric = Fabric(TORUS, RATE, injection=1e9)
    assert fabric.injection_seconds(Demand(9), 1e6) == pytest.approx(8e-3)
    matrix = np.zeros((9, 9))
    matrix[1:, 0] = 2.0
    assert fabric.injection_seconds(Demand(9, matrix), 1e6) == pytest.approx(16e-3)
    assert fabric.injection_seconds(Demand(9, matrix.T.copy()), 1e6) == pytest.approx(16e-3)
    assert Fabric(TORUS, RATE).injection_seconds(Demand(9), 1e6) == 0.0


def test_one_latency_stands_for_all() -> None:
    """It is there for every link, and cannot be changed."""
    fabric = Fabric(TORUS, RATE, np.array(2e-6))
    assert fabric.latency.tolist() == [2e-6] * 36
    assert fabric == Fabric(TORUS, RATE, np.full(36, 2e-6))
    assert not fabric.latency.flags.writeable


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bytes_per_second": 0.0}, "a rate of 0 bytes per second; expected a positive number"),
        ({"bytes_per_second": np.nan}, "a rate of nan"),
        ({"injection": -1.0}, "an? injection limit of -1"),
        ({"latency": np.zeros(3)}, "3 latencies for the 36 links of torus:3x3"),
        ({"latency": np.array(-1.0)}, "negative or infinite"),
        ({"overhead": np.inf}, "negative or infinite"),
    ],
)
def test_what_is_no_fabric(given: dict[str, Any], words: str) -> None:
    """Rates are positive, and times not negative."""
    with pytest.raises(InputError, match=words):
        replace(Fabric(TORUS, RATE), **given)


def test_no_word_where_capacities_are_one() -> None:
    """What is said of a link is then what was given."""
    assert Fabric(TORUS, RATE).note() is None
    assert Fabric(TORUS, RATE).links_in_words() == "25Gbps"


def test_a_warning_where_no_capacity_is_one() -> None:
    """Capacities in Gbit/s and a rate per link are easily multiplied by mistake."""
    found = Fabric(scale_capacities(TORUS, 100), bytes_per_second("100Gbps")).note()
    assert found == (
        "capacities are 100: a link is 100 x 100Gbps, 10Tbps; "
        "give --link-bandwidth 1Gbps if capacities are in Gbit/s"
    )


def test_capacities_relative_to_one() -> None:
    """Where some links have capacity 1 it is said what the others are, and nothing is asked."""
    found = Fabric(with_host_bandwidth(TORUS, 4), RATE).note()
    assert found == "capacities are 1 to 4: a link is 1 to 4 x 25Gbps, 25Gbps to 100Gbps"


@pytest.mark.parametrize("text", ["25Gbps", "100Mbps", "1.6Tbps", "3.5kbps", "8bps", "0.5bps"])
def test_rates_in_words_are_read_back(text: str) -> None:
    """What is printed can be given again."""
    assert rate_in_words(bytes_per_second(text)) == text


def test_an_answer_in_bytes_and_seconds() -> None:
    """What a terminal sends, and with the size of a shard how long it takes."""
    flow = solve(Problem.all_to_all(TORUS))
    fabric = Fabric(TORUS, RATE)
    assert list(physical(flow, fabric)) == ["link_GBps", "throughput_GBps", "throughput_bound_GBps"]
    found = physical(flow, fabric, 1 << 20)
    assert found["link_GBps"] == [3.125, 3.125]
    assert found["throughput_GBps"] == pytest.approx(8 / 3 * 3.125)
    assert found["transfer_GBps"] == pytest.approx(8 / 3 * 3.125)
    assert found["transfer_seconds"] == pytest.approx(3 * (1 << 20) / 3.125e9)
    assert found["bound_seconds"] == pytest.approx(found["transfer_seconds"])


def test_the_latency_of_steps_takes_time() -> None:
    """A step costs its latency, whatever it moves; a schedule without a bound has none here."""
    pair = Topology.from_edges("pair", 2, [(0, 1)])
    schedule = replace(hop_schedule(pair), certificate=Certificate(np.ones(2), 0.0))
    found = physical(schedule, Fabric(pair, 1e9), 1000, step_latency=0.5)
    assert found["transfer_seconds"] == pytest.approx(1.5e-6)
    assert found["transfer_GBps"] == pytest.approx(1 / 1.5)
    assert found["throughput_GBps"] == pytest.approx(1.0)
    assert "throughput_bound_GBps" not in found
