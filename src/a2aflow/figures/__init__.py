"""The figures of the paper, each a program that anyone can run again: the table of them."""

from a2aflow.figures.fft import FFT
from a2aflow.figures.figure import Figure
from a2aflow.figures.layers import LAYERS
from a2aflow.figures.link_schedules import LINK_SCHEDULES
from a2aflow.figures.links_disabled import LINKS_DISABLED
from a2aflow.figures.methods import METHODS
from a2aflow.figures.punctured_torus import PUNCTURED_TORUS
from a2aflow.figures.routed_schedules import ROUTED_SCHEDULES
from a2aflow.figures.runtime import RUNTIME
from a2aflow.figures.sharing import SHARING
from a2aflow.figures.topologies import TOPOLOGIES

FIGURES: dict[str, Figure] = {
    each.name: each
    for each in (
        LINK_SCHEDULES,
        ROUTED_SCHEDULES,
        PUNCTURED_TORUS,
        FFT,
        RUNTIME,
        METHODS,
        LINKS_DISABLED,
        TOPOLOGIES,
        LAYERS,
        SHARING,
    )
}
"""All figures by name, in the order of the paper."""
