"""What `make` installs is pinned: every dependency of the development environment, exactly."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
"""Versions of Python whose dependencies must all be pinned; markers tell them apart."""

PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!]+")


def pins() -> dict[str, str]:
    """Return the pinned version of every package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    rows = [line.partition("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in rows}


def asked() -> list[Requirement]:
    """Return what pyproject.toml asks for: the package, the development extra, the backend."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]["dev"]
    lines = project["build-system"]["requires"] + project["project"]["dependencies"] + extras
    return [Requirement(line) for line in lines]


def needed(python: str) -> dict[str, Requirement]:
    """Return every package that is needed, directly or not, by its name."""
    found: dict[str, Requirement] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(each, extra) for each in asked() for extra in ("", *each.extras)]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        found.setdefault(name, requirement)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        scope = {"python_version": python, "python_full_version": f"{python}.0", "extra": extra}
        for each in map(Requirement, _requires(name)):
            if each.marker is None or each.marker.evaluate(scope):
                waiting += [(each, own) for own in ("", *each.extras)]
    return found


def _requires(name: str) -> list[str]:
    """Return what an installed package needs; what another version of Python needs is not here."""
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def test_every_line_is_one_exact_version() -> None:
    """No address, no path and no range: the file means the same on every machine."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(PIN.fullmatch(line) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned(python: str) -> None:
    """What is asked for, and what that needs in turn, has a line in constraints.txt."""
    missing = sorted(set(needed(python)) - set(pins()) - {"alltoall"})
    assert not missing, f"not pinned: {', '.join(missing)}; run `make lock`"


def test_the_pins_are_what_is_asked_for() -> None:
    """Every pinned version lies in the range of pyproject.toml."""
    for each in asked():
        version = pins()[canonicalize_name(each.name)]
        assert each.specifier.contains(version), f"{each} is pinned to {version}; run `make lock`"
