"""Pages of the site that the code writes: the start, the reference, and a gallery."""

import contextlib
import inspect
import io
import os
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import alltoall
from alltoall.cli.app import run
from alltoall.cli.verbs import VERBS
from alltoall.ir.files.drawing import draw_svg
from alltoall.lowering import TARGETS
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.spec import build

SPECS = (
    *("ring:12", "mesh:4x5", "torus:5x5", "hypercube:4", "bipartite:4x4", "complete:8"),
    *("genkautz:n=24,d=3", "kautz:d=2,k=3", "circulant:n=16,jumps=1x3", "hyperx:3x3"),
    *("jellyfish:n=24,d=3,seed=1", "xpander:n=20,d=4,seed=1", "dragonfly:a=4,h=1"),
    *("slimfly:q=3", "dgx1", "switch:n=8"),
)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and the pictures of the gallery."""
    pages = {
        "index.md": home(),
        "reference/options.md": options(),
        "reference/families.md": families(),
        "reference/targets.md": targets(),
        "reference/python.md": python(),
    }
    gallery = ["# Gallery", "", "`alltoall topology SPEC --draw FILE.svg` draws any topology.", ""]
    for number, spec in enumerate(SPECS):
        topology = build(spec)
        name = f"gallery/{number:02}.svg"
        pages[name] = draw_svg(topology)
        gallery += [f"## {spec}", "", f"![{escape(topology.name)}]({name}){{ width=480 }}", ""]
    for name, content in {**pages, "gallery.md": "\n".join(gallery)}.items():
        files.append(File.generated(config, name, content=content))
    return files


def home() -> str:
    """Return README as the first page: links to other pages stay, links to other files go."""
    text = (Path(__file__).parents[1] / "README.md").read_text()
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!docs/|https?:)[^)]+\)", r"\1", text).replace(
        "(docs/", "("
    )


def options() -> str:
    """Return the help of every verb."""
    page = ["# Options: every verb with all it takes", ""]
    for verb in VERBS:
        page += [f"## {verb}", "", "```text", _help(verb), "```", ""]
    return "\n".join(page)


def _help(verb: str) -> str:
    """Return what `alltoall VERB --help-all` prints, or `--help` where there is no other."""
    os.environ["COLUMNS"] = "100"
    for option in ("--help-all", "--help"):
        with (
            contextlib.redirect_stdout(io.StringIO()) as printed,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            code = run([verb, option])
        if code == 0:
            return printed.getvalue().strip()
    raise RuntimeError(f"alltoall {verb} has no help")


def families() -> str:
    """Return the table of families."""
    rows = ((name, FAMILIES[name].example, FAMILIES[name].summary) for name in FAMILIES)
    return _table("# Families: SPECs of topologies", ("family", "such as", "description"), rows)


def targets() -> str:
    """Return the table of targets."""
    rows = ((name, TARGETS[name].takes.__name__, TARGETS[name].summary) for name in TARGETS)
    return _table("# Targets: what `lower` writes", ("target", "takes", "file"), rows)


def _table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for name, *rest in rows:
        lines.append(" | ".join([f"`{name}`", *(cell.replace("|", "\\|") for cell in rest)]))
    return "\n".join([title, "", *(f"| {line} |" for line in lines), ""])


def python() -> str:
    """Return the page from which mkdocstrings writes the public names."""
    page = ["# Functions and classes: what `import alltoall` offers", ""]
    for name in sorted(alltoall.__all__, key=lambda name: (not name[0].islower(), name)):
        if not inspect.ismodule(found := getattr(alltoall, name)):
            page.append(f"::: {inspect.unwrap(found).__module__}.{name}")
    return "\n".join(page)
