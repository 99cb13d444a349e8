"""What there is to choose from: families of topologies and formats of files."""

from alltoall.cli.show import show
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.formats import FORMATS


def show_choices(as_json: bool) -> None:
    """Print every family and every file format."""
    families = {
        name: {"example": family.example, "summary": family.summary}
        for name, family in FAMILIES.items()
    }
    formats = {
        name: {
            "summary": each.summary,
            "reads": each.reads,
            "suffixes": list(each.suffixes),
        }
        for name, each in FORMATS.items()
    }
    lines = {family["example"]: family["summary"] for family in families.values()}
    show({"families": families, "formats": formats}, as_json, {"SPEC": "what it is", **lines})
    if not as_json:
        files = {name: each.summary for name, each in FORMATS.items()}
        show({}, False, {"": "", "file": "", **files})
