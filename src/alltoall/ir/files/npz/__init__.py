"""Artefacts as arrays in a .npz file: what JSON says, a tenth of the size and read in no time.

`docs/formats/binary.md` describes the files.
"""

from alltoall.ir.files.npz.nouns import artefact_from_bytes, artefact_to_bytes, is_archive

__all__ = ["artefact_from_bytes", "artefact_to_bytes", "is_archive"]
