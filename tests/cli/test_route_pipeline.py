"""Routes by the command line: route, lower to every target, verify; a refusal has a way out."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from alltoall.ir.routes import Routes
from alltoall.lowering import targets_for
from command_line import Run

FABRICS = {
    "K4,4": ("bipartite:4x4",),
    "3-cube": ("hypercube:3",),
    "twisted 3-cube": ("twisted-hypercube:3",),
    "torus": ("torus:3x3x3",),
    "hosted torus": ("torus:3x3x3", "--host-bandwidth", "4"),
    "genkautz 8": ("genkautz:n=8,d=4",),
    "genkautz 16": ("genkautz:n=16,d=4",),
    "genkautz 32": ("genkautz:n=32,d=4",),
    "genkautz 64": ("genkautz:n=64,d=4",),
    "punctured torus": ("torus:3x3x3", "--drop-links", "3", "--seed", "6"),
    "jellyfish": ("jellyfish:n=20,d=4,seed=1",),
}

ONE_ROUTE = {"opensm", "simgrid"}
STEERED = {name: each for name, each in targets_for(Routes).items() if name not in ONE_ROUTE}
"""Targets that take several routes of a pair; what the others take is tested beside them."""

ADVICE = re.compile(r"route again with ((--[a-z-]+ [a-z0-9-]+)( --[a-z-]+ [a-z0-9-]+)*)")


def lower_all(run: Run, routes: Path, folder: Path) -> list[str]:
    """Lower routes to every target and verify the files; return what to do where one refuses."""
    advice = []
    for target, entry in STEERED.items():
        file = folder / f"file{entry.suffix}"
        lowered = run("lower", routes, "--to", target, "-o", file)
        if lowered.code == 0:
            if entry.read is None:
                continue
            checked = run("verify", file, "--topology", folder / "topology.json", "--json")
            assert checked.code == 0, checked.err
        else:
            found = ADVICE.search(lowered.err)
            assert found, lowered.err
            advice.append(found[1])
    return advice


def walk(run: Run, folder: Path, *words: object) -> list[str]:
    """Route, lower and verify; do as told where a target refuses, which must then work."""
    path = folder / "routes.json"
    routed = run("route", *words, "-o", path)
    assert routed.code == 0, routed.err
    advice = lower_all(run, path, folder)
    for told in advice:
        again = run("route", *words, *told.split(), "-o", path)
        assert again.code == 0, again.err
        assert lower_all(run, path, folder) == []
    return advice


@pytest.mark.parametrize("method", ["extp", "pmcf"])
@pytest.mark.parametrize("name", FABRICS)
def test_from_topology_to_files(run: Run, tmp_path: Path, name: str, method: str) -> None:
    """Without options; only weights that have no common denominator need one, which is named."""
    assert run("topology", *FABRICS[name], "-o", tmp_path / "topology.json").code == 0
    advice = walk(run, tmp_path, *FABRICS[name], "--method", method)
    assert advice == (["--chunks 8"] if (name, method) == ("genkautz 64", "pmcf") else [])


@pytest.mark.parametrize(
    "words",
    [
        ("--method", "pmcf:paths=bounded,slack=2"),
        ("--method", "ewsp"),
        ("--method", "fptas"),
        ("--method", "deadlock-free", "--max-layers", 2),
    ],
)
def test_other_methods_have_a_way_out(run: Run, tmp_path: Path, words: tuple[object, ...]) -> None:
    """Many paths, or weights that are no fractions."""
    assert run("topology", "genkautz:n=12,d=3", "-o", tmp_path / "topology.json").code == 0
    walk(run, tmp_path, "genkautz:n=12,d=3", *words)


def test_all_shards_are_cut_alike(run: Run, tmp_path: Path) -> None:
    """K4,4 in halves: every shard of the file has two chunks, and every weight is a fraction."""
    path, file = tmp_path / "routes.json", tmp_path / "file.ompi.xml"
    found = run("route", "bipartite:4x4", "-o", path, "--json").json
    assert found["common_factor_chunks"] == 2
    weights = {row["weight"] for row in json.loads(path.read_text())["routes"]}
    assert weights <= {"1/2", "2/2"}
    assert run("lower", path, "--to", "ompi", "-o", file).code == 0
    assert set(re.findall(r'<send to="\d+" chunks="(\d+)">', file.read_text())) == {"2"}


def test_huge_demands_are_sent_whole(run: Run, tmp_path: Path) -> None:
    """Where a few chunks per unit of demand are too many for a shard, single routes are named."""
    demand, path = tmp_path / "demand.txt", tmp_path / "routes.json"
    matrix = 1e5 * np.random.default_rng(1).random((6, 6))
    np.fill_diagonal(matrix, 0.0)
    np.savetxt(demand, matrix)
    words = ("route", "genkautz:n=6,d=2", "--demand", demand, "-o", path)
    assert run(*words).code == 0
    refused = run("lower", path, "--to", "ompi", "-o", tmp_path / "file.xml")
    assert refused.code == 3
    assert "route again with --method single" in refused.err
    assert run(*words, "--method", "single").code == 0
    assert run("lower", path, "--to", "ompi", "-o", tmp_path / "file.xml").code == 0
