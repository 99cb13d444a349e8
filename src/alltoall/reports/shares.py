"""What links carry in an answer: of its time, the share in which each link is busy."""

from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.reports.drawn import Drawn

BINS = 20
"""Bars of the histogram of link loads: five per cent each."""

FEW = 10
"""The fullest links that are listed by name."""

Answer = Flow | Routes | Schedule


def shares_of(answer: Answer) -> Floats:
    """Return the share of the time in which each link is busy: 1 for one that all wait for."""
    capacity = answer.problem.topology.capacity
    if isinstance(answer, Flow):
        return answer.mean_load() / capacity
    if isinstance(answer, Routes):
        return answer.load() / capacity / answer.time
    load = np.bincount(answer.link, answer.sizes(), answer.problem.topology.links)
    return load / capacity / answer.time


def load_content(answer: Answer, drawn: Drawn) -> dict[str, Any]:
    """Return the histogram of link loads, and the links that are listed by name."""
    share = shares_of(answer)
    # Sums that should be 1 may be a last digit above; they belong to the last bar.
    counts, _ = np.histogram(np.minimum(share, 1.0), bins=BINS, range=(0.0, 1.0))
    order = np.argsort(-np.round(share, 9), kind="stable")[:FEW]
    name = drawn.topology.link_name
    return {
        "histogram": counts.tolist(),
        "mean": float(share.mean()),
        "fullest": [[name(int(link)), float(share[link])] for link in order],
        "idle": int(np.count_nonzero(share == 0)),
    }
