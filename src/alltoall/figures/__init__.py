"""The table of the paper's figures, each a program that anyone can run."""

from alltoall.figures.fft import FFT
from alltoall.figures.figure import Figure
from alltoall.figures.layers import LAYERS
from alltoall.figures.link_schedules import LINK_SCHEDULES
from alltoall.figures.links_disabled import LINKS_DISABLED
from alltoall.figures.methods import METHODS
from alltoall.figures.punctured_torus import PUNCTURED_TORUS
from alltoall.figures.routed_schedules import ROUTED_SCHEDULES
from alltoall.figures.runtime import RUNTIME
from alltoall.figures.sharing import SHARING
from alltoall.figures.topologies import TOPOLOGIES

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        *(LINK_SCHEDULES, ROUTED_SCHEDULES, PUNCTURED_TORUS, FFT, RUNTIME),
        *(METHODS, LINKS_DISABLED, TOPOLOGIES, LAYERS, SHARING),
    )
}
"""All figures by name, in the order of the paper."""
