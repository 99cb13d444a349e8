"""Every export of the compiled core has a reference test, and no bad argument makes it crash."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from core_samples import samples

from alltoall.core import _core

FOLDER = Path(__file__).parent

REFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "test_core_paths": {
        "test_distances_are_the_shortest": ("Graph", "distances"),
        "test_flows_down_trees": ("add_tree_flows",),
        "test_disjoint_paths": ("disjoint_paths",),
        "test_simple_paths": ("simple_paths",),
        "test_tree_paths": ("tree_paths",),
        "test_traced_paths_follow_volumes": ("trace_paths",),
        "test_split_flows_deliver_within_the_flows": ("split_flows",),
    },
    "test_core_flows": {
        "test_exact_flows_deliver_and_have_no_cycles": ("make_exact",),
        "test_level": ("find_level",),
        "test_batches_lower_costs_and_keep_deliveries": ("update_batch",),
        "test_steps_are_those_of_plain_arrays": (
            "PrimalDual", "PrimalDual.price", "PrimalDual.set_steps", "PrimalDual.restart",
            "PrimalDual.step_flows", "PrimalDual.step_prices", "PrimalDual.write_flows",
            "PrimalDual.write_potentials",
        ),
    },
    "test_core_placing": {
        "test_most_hops_is_the_longest_shortest_path": ("most_hops",),
        "test_responses_lower_the_potential": ("respond",),
        "test_paths_follow_the_order": ("LinkOrder",),
        "test_rerouting_empties_links_over_their_budget": ("reroute",),
        "test_choices_within_budgets_are_the_cheapest": ("choose_within",),
    },
    "test_core_annealing": {
        "test_moves_keep_ports_and_the_best_is_what_it_costs": (
            "Annealing", "Annealing.run", "Annealing.best", "Annealing.least",
        ),
        "test_a_lift_costs_the_distances_from_one_node": (
            "LiftAnnealing", "LiftAnnealing.run", "LiftAnnealing.best", "LiftAnnealing.least",
            "LiftAnnealing.is_simple",
        ),
    },
    "test_core_fair": {
        "test_fluid_flows": (
            "FluidFlows", "FluidFlows.advance", "FluidFlows.alive", "FluidFlows.ends",
            "FluidFlows.now",
        ),
        "test_fair_messages": ("FairMessages", "FairMessages.advance", "FairMessages.now"),
        "test_list_scheduler": (
            "ListScheduler", "ListScheduler.step", "ListScheduler.done", "ListScheduler.steps",
            "ListScheduler.time", "ListScheduler.step_of_leg",
        ),
    },
    "test_core_routes": {
        "test_a_layer_takes_routes_that_close_no_cycle": (
            "RouteTurns", "LayerFilling", "LayerFilling.offer", "LayerFilling.rank",
        ),
        "test_cycles_are_broken_layer_by_layer": (
            "CycleBreaking", "CycleBreaking.begin_layer", "CycleBreaking.run",
            "CycleBreaking.layer",
        ),
        "test_links_are_sifted_to_better_places": (
            "LinkSifting", "LinkSifting.place", "LinkSifting.renumber", "LinkSifting.rank",
        ),
        "test_distances_forward_in_an_order": ("improve_order",),
        "test_tables_respond_to_prices": (
            "ForwardingTables", "ForwardingTables.respond", "ForwardingTables.table",
            "ForwardingTables.load",
        ),
        "test_lengths_grow_with_flow": ("grow_lengths",),
    },
}  # fmt: skip
"""The exports that each test holds against a plain reference."""

MOST_EXPORTS = 100
"""More than these would be a library of its own."""


def exports() -> list[str]:
    """Return the functions, classes, methods and properties of the typed stub."""
    stub = Path(_core.__file__).with_name("_core.pyi")
    if not stub.exists():  # another build: its stub is that of the sources
        import alltoall.core

        stub = Path(alltoall.core.__file__).with_name("_core.pyi")
    names = []
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            names += [f"{node.name}.{method}" for method in methods if method != "__init__"]
    return names


def test_the_stub_has_what_the_core_exports() -> None:
    """Neither less nor more, and few enough to know them all."""
    found = {name for name in vars(_core) if not name.startswith("_")}
    assert {name for name in exports() if "." not in name} == found
    assert len(exports()) < MOST_EXPORTS


def test_every_export_has_a_reference_test() -> None:
    """A test that is named here and that exists."""
    named = [name for tests in REFERENCES.values() for names in tests.values() for name in names]
    assert sorted(named) == sorted(exports())
    for file, tests in REFERENCES.items():
        tree = ast.parse((FOLDER / f"{file}.py").read_text())
        known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(tests) <= known


def test_every_export_has_a_sample() -> None:
    """Its arguments are those of the stub, and taken."""
    assert sorted(samples()) == sorted(exports())


@pytest.mark.parametrize("name", samples())
def test_samples_are_taken(name: str) -> None:
    """What bad arguments are made of is good."""
    call, arguments = samples()[name]
    call(**arguments)


def test_bad_arguments_never_crash() -> None:
    """Wrong types, shapes, ranges and numbers; what cannot be right is refused."""
    command = [sys.executable, str(FOLDER / "core_samples.py"), str(_core.__file__)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, (lines[-1:], run.stderr[-3000:])
    assert lines[-1] == "done"
    assert [line for line in lines if line.startswith("not refused")] == []
