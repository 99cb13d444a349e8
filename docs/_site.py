"""What the site has besides its pages: a gallery, drawn by the code that it shows."""

from html import escape
from typing import Any

from mkdocs.structure.files import File, Files

import alltoall
from alltoall.ir.files.drawing import draw_svg

SPECS = (
    *("ring:12", "mesh:4x5", "torus:5x5", "hypercube:4", "bipartite:4x4", "complete:8"),
    *("genkautz:n=24,d=3", "kautz:d=2,k=3", "circulant:n=16,jumps=1x3", "hyperx:3x3"),
    *("jellyfish:n=24,d=3,seed=1", "xpander:n=20,d=4,seed=1", "dragonfly:a=4,h=1"),
    *("slimfly:q=3", "dgx1", "switch:n=8"),
)


def on_files(files: Files, config: Any) -> Files:
    """Add the gallery: a page, and a picture of every topology on it."""
    page = [
        "# Gallery",
        "",
        "Drawn by `alltoall topology SPEC --draw FILE.svg` when this site was built.",
        "",
    ]
    for number, spec in enumerate(SPECS):
        topology = alltoall.topology(spec)
        name = f"gallery/{number:02}.svg"
        files.append(File.generated(config, name, content=draw_svg(topology)))
        page += [f"## {escape(spec)}", "", f"![{escape(topology.name)}]({name}){{ width=480 }}", ""]
    files.append(File.generated(config, "gallery.md", content="\n".join(page)))
    return files
