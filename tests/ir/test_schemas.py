"""Saved files are what their published schemas say, and the schemas say something."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from referencing import Registry, Resource

import alltoall

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
LOADED = {path.name.partition(".")[0]: json.loads(path.read_text()) for path in SCHEMAS.iterdir()}
REGISTRY: Any = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema)) for schema in LOADED.values()]
)


def validator(name: str) -> Any:
    """Return the validator of a schema by its name."""
    return jsonschema.Draft202012Validator(LOADED[name], registry=REGISTRY)


def skewed() -> alltoall.Demand:
    """Return a demand in which pairs differ."""
    amounts = np.ones((4, 4)) - np.eye(4)
    amounts[0, 2] = 3.0
    return alltoall.Demand(4, amounts)


MADE: dict[str, tuple[str, Any]] = {
    "topology": ("topology", lambda: alltoall.topology("dgx1")),
    "switched topology": ("topology", lambda: alltoall.topology("switch:n=4")),
    "demand": ("demand", lambda: alltoall.Demand(4)),
    "skewed demand": ("demand", skewed),
    "flow": ("flow", lambda: alltoall.solve("genkautz:n=8,d=2")),
    "flow by symmetry": ("flow", lambda: alltoall.solve("torus:4x4", method="grouped")),
    "routes": ("routes", lambda: alltoall.route("genkautz:n=8,d=2")),
    "routes that change layer": (
        "routes",
        lambda: alltoall.route("ring:5", "deadlock-free:layers=2,change"),
    ),
    "routes without layers": ("routes", lambda: alltoall.route("ring:5", "extp:layering=none")),
    "schedule": ("schedule", lambda: alltoall.schedule("bipartite:2x2")),
    "uneven schedule": ("schedule", lambda: alltoall.schedule("ring:4", demand=skewed())),
}
"""Nouns, and the schemas of their files."""


@pytest.mark.parametrize("name", LOADED)
def test_a_schema_is_one(name: str) -> None:
    """It is valid itself, and every field of it is described or typed."""
    jsonschema.Draft202012Validator.check_schema(LOADED[name])
    assert all(LOADED[name]["properties"].values())


@pytest.mark.parametrize("name", MADE)
def test_what_is_saved_fits_its_schema(name: str, tmp_path: Path) -> None:
    """And no key of the file is unknown to it."""
    schema, make = MADE[name]
    path = tmp_path / "saved.json"
    make().save(path)
    saved = json.loads(path.read_text())
    validator(schema).validate(saved)
    assert saved.keys() <= LOADED[schema]["properties"].keys()


@pytest.mark.parametrize(
    ("schema", "make", "change"),
    [
        ("topology", lambda: alltoall.topology("ring:4"), {"links": [[0, 1]]}),
        ("topology", lambda: alltoall.topology("ring:4"), {"format": "alltoall.flow/1"}),
        ("demand", lambda: alltoall.Demand(4), {"uniform": False}),
        ("flow", lambda: alltoall.solve("ring:4"), {"time": "2"}),
        ("routes", lambda: alltoall.route("ring:4"), {"routes": [{"src": 0, "dst": 1}]}),
        ("schedule", lambda: alltoall.schedule("ring:4"), {"steps": [[[0, 1, 0]]]}),
        ("schedule", lambda: alltoall.schedule("ring:4"), {"format": "alltoall.schedule/2"}),
    ],
)
def test_what_is_wrong_does_not_fit(
    schema: str, make: Any, change: dict[str, Any], tmp_path: Path
) -> None:
    """A schema that takes anything would be none."""
    path = tmp_path / "saved.json"
    make().save(path)
    with pytest.raises(jsonschema.ValidationError):
        validator(schema).validate({**json.loads(path.read_text()), **change})
