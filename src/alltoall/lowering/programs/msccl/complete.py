"""MSCCL files of others: what a runtime's parser asks for and they do not say, and how to say it.

msccl-tools writes files for the first of the three parsers; the later ones want more of <algo>.
"""

from collections.abc import Iterator
from dataclasses import replace

from alltoall.errors import UsageError
from alltoall.ir.program import Program
from alltoall.lowering.options import Options
from alltoall.lowering.programs.msccl.emit import msccl_text
from alltoall.lowering.programs.msccl.lexer import attributes_of
from alltoall.lowering.programs.msccl.limits import NEEDED, RUNTIMES, excesses
from alltoall.lowering.programs.msccl.read import read_msccl


def refusals(program: Program, text: str, where: str) -> dict[str, str]:
    """Return why each runtime that rejects a file does; `program` is what the file says."""
    said = attributes_of("algo", text, where)
    found = {runtime: "; ".join(_reasons(program, said, runtime)) for runtime in RUNTIMES}
    return {runtime: reasons for runtime, reasons in found.items() if reasons}


def _reasons(program: Program, said: dict[str, str], runtime: str) -> Iterator[str]:
    missing = [key for key in NEEDED[runtime] if key not in said]
    if missing:
        yield (
            f"its parser requires {', '.join(missing)}, which the file does not have; "
            "`alltoall lower FILE --to msccl` writes it completed"
        )
    yield from (problem for _, problem in excesses(program, runtime))


def complete_msccl(text: str, options: Options, where: str) -> str:
    """Return an MSCCL file with all that any parser requires; what it says itself stays."""
    program, said = read_msccl(text, where), attributes_of("algo", text, where)
    for key, kept, default in (
        ("channels", 1, Options.channels),
        ("protocol", said["proto"], Options.protocol),
    ):
        asked = getattr(options, key)
        if asked not in (kept, default):
            raise UsageError(
                f"{where}: --{key} {asked} for a file that is lowered already; leave it out, or "
                "lower the schedule anew"
            )
    own = replace(
        options,
        protocol=said["proto"],
        min_bytes=int(said.get("minBytes", options.min_bytes)),
        max_bytes=int(said.get("maxBytes", options.max_bytes)),
    )
    return msccl_text(program, own)
