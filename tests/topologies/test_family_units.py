"""Families in physical units carry their unit, and no second one is taken beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

import alltoall
from alltoall.designs.fitting import FITTING, build_without_unit, fitting_specs
from alltoall.errors import UsageError
from alltoall.ir.fabric import Fabric, link_rate
from alltoall.ir.quantities import bytes_per_second
from alltoall.ir.topology import Topology
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.family_help import family_help
from alltoall.topologies.formats import read_topology, write_topology
from alltoall.topologies.operators import (
    remove_links,
    remove_nodes,
    scale_capacities,
    set_capacities,
)
from command_line import Run

THROUGHPUT = {
    "dgx1": 7 / (16 / 6) * 25,  # 16 pairs each way over six NVLinks between the quads
    "ndv2": 7 / (16 / 6) * 25,
    "dgx2": 6 * 25.0,
    "nvswitch:n=4": 450.0,
    "tpuv4:2x2x2": 7 / 4 * 50,
    "tpuv5p:2x2x1": 3 / 2 * 100,
    "trainium": 15 / 8 * 128,
    "xgmi": 7 * 64.0,
    "boxes:n=3": 25.0,
    "cluster:hosts=2,gpus=2,nics=2x400": 3 / 2 * 50,
    "dgxh100": 450.0,
    "mi300x": 7 * 64.0,
}
"""What a GPU sends in an all-to-all on each of them, in GB/s, by hand."""

VERBS = ("solve", "route", "schedule")


def family_of(spec: str) -> str:
    """Return the family of a SPEC."""
    return spec.partition(":")[0]


def test_every_family_that_speaks_of_rates_has_a_unit() -> None:
    """And every family that has a unit is in the table above."""
    said = {name: str(family.build.__doc__) for name, family in FAMILIES.items()}
    speaking = {name for name, text in said.items() if "Gbit/s" in text or "GB/s" in text}
    with_unit = {name for name, family in FAMILIES.items() if family.unit is not None}
    assert {"xgmi", "trainium", "cluster", "tpuv4"} <= speaking <= with_unit
    assert with_unit == set(map(family_of, THROUGHPUT))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_family_says_its_unit_in_topology_and_help(name: str) -> None:
    """Both or neither."""
    unit, built = FAMILIES[name].unit, alltoall.topology(FAMILIES[name].example)
    assert built.bytes_per_second == (None if unit is None else bytes_per_second(unit))
    assert ("A link of capacity 1 carries" in family_help(name)) == (unit is not None)


@pytest.mark.parametrize(("spec", "expected"), THROUGHPUT.items())
def test_a_throughput_without_an_option(spec: str, expected: float, run: Run) -> None:
    """In numbers and in words."""
    assert run("solve", spec, "--json").json["throughput_GBps"] == pytest.approx(expected)
    assert f"{expected:.3g} GB/s per node" in run("solve", spec).out


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("spec", THROUGHPUT)
def test_a_second_unit_is_refused_with_both_values(spec: str, verb: str, run: Run) -> None:
    """The one that is there may be said again."""
    found = run(verb, spec, "--link-bandwidth", "0.123GB/s")
    assert found.code == 2
    assert "0.123GB/s" in found.err
    own = Fabric(alltoall.topology(spec), bytes_per_second(str(FAMILIES[family_of(spec)].unit)))
    assert own.links_in_words() in found.err
    assert link_rate(own.topology, f"{own.bytes_per_second}B/s") == own.bytes_per_second


def test_every_place_that_takes_a_link_bandwidth_refuses_a_second(tmp_path: Path) -> None:
    """Simulations, reports, and files of simulators, besides the verbs above."""
    routes = alltoall.route("xgmi:n=3", method="single")
    with pytest.raises(UsageError, match=r"link bandwidth 64GB/s, .* 1Gbps already"):
        alltoall.simulate(routes, link_bandwidth="64GB/s")
    with pytest.raises(UsageError, match=r"link bandwidth 512Gbps, .* 1Gbps already"):
        alltoall.report(routes, link_bandwidth=64e9)
    with pytest.raises(UsageError, match=r"link bandwidth 25Gbps, .* 1Gbps already"):
        alltoall.lower(routes, to="simgrid", link_bandwidth="25Gbps")
    lowered = alltoall.lower(routes, to="simgrid")
    assert 'bandwidth="64000000000.0Bps"' in str(next(iter(lowered.files.values())))
    write_topology(routes.problem.topology, tmp_path / "xgmi.xml")
    assert 'bandwidth="64000000000.0Bps"' in (tmp_path / "xgmi.xml").read_text()


@pytest.mark.parametrize("verb", VERBS)
def test_an_edge_list_in_units_refuses_another(verb: str, run: Run, tmp_path: Path) -> None:
    """Rather than print two different links."""
    path = tmp_path / "rack.edges"
    path.write_text("a b 100Gbps\nb c 100Gbps\nc a 100Gbps\n")
    found = run(verb, path, "--link-bandwidth", "10Gbps")
    assert found.code == 2
    assert "link bandwidth 10Gbps" in found.err
    assert "100Gbps" in found.err


UNITS = ["100Gbps", "12.5GB/s", "0.1Tbps", "100000Mbps", "12500000000B/s"]


@pytest.mark.parametrize("unit", UNITS)
def test_links_in_any_unit_give_one_answer(unit: str, run: Run, tmp_path: Path) -> None:
    """A line of three at 100 Gbit/s, where each end sends half of what its link carries."""
    path = tmp_path / "line.edges"
    path.write_text(f"a b {unit}\nb c {unit}\n")
    found = run("solve", path, "--json").json
    assert found["throughput_GBps"] == pytest.approx(12.5)
    assert found["link_GBps"] == pytest.approx([12.5, 12.5])


@pytest.mark.parametrize("factor", [1e-9, 1 / 7, 1e9])
@pytest.mark.parametrize("spec", THROUGHPUT)
def test_capacities_in_any_unit_give_one_answer(
    spec: str, factor: float, run: Run, tmp_path: Path
) -> None:
    """The same links with other numbers for the same rates, through a file."""
    own = alltoall.topology(spec)
    assert own.bytes_per_second is not None
    other = replace(
        own, capacity=own.capacity * factor, bytes_per_second=own.bytes_per_second / factor
    )
    write_topology(other, tmp_path / "other.json")
    found = run("solve", tmp_path / "other.json", "--json").json
    assert found["throughput_GBps"] == pytest.approx(THROUGHPUT[spec])


CHANGES = {
    "drop_links": lambda topology: alltoall.topology(topology, drop_links=1, seed=1),
    "drop_nodes": lambda topology: alltoall.topology(topology, drop_nodes=1, seed=1),
    "remove_links": lambda topology: remove_links(topology, [(0, 1)]),
    "remove_nodes": lambda topology: remove_nodes(topology, [0]),
    "scale_capacities": lambda topology: scale_capacities(topology, 2.0),
    "set_capacities": lambda topology: set_capacities(topology, {(0, 1): 3.0}),
    "with_host_bandwidth": lambda topology: alltoall.topology(topology, host_bandwidth=600.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_keep_the_unit(change: str) -> None:
    """Every operator that the library offers."""
    changed: Topology = CHANGES[change](alltoall.topology("xgmi:n=4"))
    assert changed.bytes_per_second == 1e9 / 8


def test_a_host_bandwidth_is_told_as_a_rate() -> None:
    """It is in the unit of capacities, whatever that is."""
    note = alltoall.topology(alltoall.topology("xgmi:n=4"), host_bandwidth=600.0).notes[-1]
    assert note.startswith("host bandwidth 600 (600Gbps):")


@pytest.mark.parametrize("name", ["x.json", "x.edges", "x.graphml"])
def test_files_keep_the_unit(name: str, tmp_path: Path) -> None:
    """Every format that can hold it."""
    own = alltoall.topology("dgxh100:hosts=2")
    write_topology(own, tmp_path / name)
    assert read_topology(tmp_path / name).bytes_per_second == own.bytes_per_second


def test_a_cluster_is_in_gbit_whatever_is_in_it(tmp_path: Path) -> None:
    """Insides and outsides that state rates keep them; an inside without any is told of."""
    inside = alltoall.topology("cluster:hosts=2,inside=dgx1,nics=8x400")
    assert inside.capacity[inside.tail < 8][inside.head[inside.tail < 8] < 8].min() == 200.0
    again = alltoall.topology("cluster:hosts=2,inside=dgx1,nics=8x400,link=200")
    assert again == inside
    outside = alltoall.topology("cluster:hosts=2,gpus=2,inside=nvswitch,nics=1x400,outside=boxes")
    assert sorted(set(outside.capacity.tolist())) == [200.0, 400.0, 3600.0]
    bare = alltoall.topology("cluster:hosts=2,gpus=2,inside=complete")
    assert any("complete:2 are taken as 1 Gbit/s; link=RATE" in note for note in bare.notes)
    path = tmp_path / "pod.toml"
    path.write_text('[[hosts]]\ncount = 2\nkind = "mi300x"\n')
    assert read_topology(path).bytes_per_second == 1e9 / 8


def test_a_design_takes_wirings_and_no_units() -> None:
    """A family stands for its wiring there: what a link carries is up to the designer."""
    specs = [spec for name in FITTING for spec in fitting_specs(name, 54, 6)]
    assert "tpuv4:3x3x6,twisted=true" in specs
    assert all(build_without_unit(spec).bytes_per_second is None for spec in specs)


def test_the_throughput_of_a_group_is_that_of_its_members(run: Run) -> None:
    """The pair has all eight NICs of its hosts; who sends nothing is not counted."""
    pair = ("--group", "host0:gpu0,host1:gpu0")
    found = run("solve", "dgxh100:hosts=2", *pair, "--json").json
    assert found["throughput_GBps"] == pytest.approx(8 * 50.0)
