"""`place_quickly`: chunks on paths in a few rounds, without a goal."""

from alltoall.placing.chunks import Chunks
from alltoall.placing.network import Network
from alltoall.placing.place import Placement, PlacementParams, place


def place_quickly(
    network: Network, chunks: Chunks, steepness: float, rounds: int
) -> Placement | None:
    """Place chunks, sorted by their start, in so many rounds; `steepness` is the last.

    Return None if some chunk has no path.
    """
    params = PlacementParams(last=steepness, rounds=rounds, last_rounds=0)
    return place(network, chunks, 0.0, params)
