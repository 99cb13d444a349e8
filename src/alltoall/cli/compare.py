"""`alltoall compare`: networks and methods side by side."""

from collections.abc import Iterator

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import columns, show
from alltoall.comparing.compare import compare
from alltoall.comparing.comparison import Comparison
from alltoall.ir.words import counted


def _tell(found: Comparison, call: VerbCall) -> None:
    if call.json:
        summary = found.to_json() | {"seconds": call.seconds}
        del summary["points"]
        show(summary, True, {})
    else:
        show({}, False, {"": [*_lines(found, call.given["output"])]})


def _lines(found: Comparison, output: str | None) -> Iterator[str]:
    """Yield the answer, the table, and closing remarks."""
    yield from found.answer().split("; ")
    yield ""
    header, *rows = found.table()
    words = [at for at, name in enumerate(header) if name in ("network", "method", "")]
    yield from columns([header, *rows], words=words)
    if found.missing:
        late = counted(found.missing, "point")
        yield ""
        yield f"{late} not run; the same call with -o FILE.json goes on from the others"
    if output is not None:
        yield ""
        yield f"saved  {output}"


compare_verb = verb_of(compare, _tell, "json")
