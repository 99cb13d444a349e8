"""The whole pipeline by the command line: schedule, lower to every target, verify, run."""

from pathlib import Path

import pytest

from alltoall.ir.schedule import Schedule
from alltoall.lowering import targets_for
from command_line import Run
from lowered_files import EXECUTED

FABRICS = {
    "3-cube": ("hypercube:3",),
    "twisted 3-cube": ("twisted-hypercube:3",),
    "K4,4": ("bipartite:4x4",),
    "torus": ("torus:3x3x3",),
    "hosted torus": ("torus:3x3x3", "--host-bandwidth", "4"),
    "genkautz": ("genkautz:n=16,d=4",),
    "punctured torus": ("torus:3x3x3", "--drop-links", "3", "--seed", "6"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_from_topology_to_bytes(run: Run, tmp_path: Path, name: str) -> None:
    """Every file on the way is verified, and the schedule's own bytes arrive."""
    schedule, topology = tmp_path / "schedule.json", tmp_path / "topology.json"
    assert run("topology", *FABRICS[name], "-o", topology).code == 0
    time = run("schedule", *FABRICS[name], "-o", schedule, "--json").json["time"]
    assert run("verify", schedule, "--json").json["time"] == pytest.approx(time)
    for target, entry in targets_for(Schedule).items():
        file = tmp_path / f"alltoall{entry.suffix}"
        lowered = run("lower", schedule, "--to", target, "-o", file, "--json")
        assert lowered.code == 0, lowered.err
        if target in EXECUTED:
            found = run("verify", file, "--topology", topology, "--json").json
            assert found["correct"]
            assert found["time"] >= found["bound"] * (1 - 1e-9)
    ran = run("run", schedule, "--on", "reference", "--bytes", "1K", "--json")
    assert ran.code == 0, ran.err
