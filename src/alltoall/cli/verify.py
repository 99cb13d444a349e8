"""`alltoall verify`: an independent check of any artefact."""

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import show
from alltoall.cli.wording import lines_of
from alltoall.verification import Verified, verify


def _tell(report: Verified, call: VerbCall) -> None:
    show(report.summary(), call.json, {"valid": report.kind, **lines_of(report.facts)})


verify_verb = verb_of(verify, _tell, "json")
