"""Text from files: no name, key or value makes up a line or reaches the terminal as it is."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from fuzz_case import Case, directory_of, run_case
from fuzz_files import valid_files
from fuzz_mutate import FORGED

from alltoall.errors import InputError, VerificationError

HOSTILE = f"x{FORGED}\x1b[2J\r\u2028{FORGED[1:]}\u2029\x85\u202eforged\u2066\u200b\x9b31m"
"""Every way to end a line, to command a terminal, and to show text in another order."""

Place = tuple[str | int, ...]


def trees() -> dict[str, Any]:
    """Return the files of JSON by name, parsed."""
    texts = {name: data for name, (data, _) in valid_files().items() if data[:1] in b"{["}
    return {name: json.loads(data) for name, data in texts.items() if name.endswith("json")}


def places(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where a tree has a key or a plain value; of a list, only its first entry."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (*place, key)
            yield from places(value, (*place, key))
    elif isinstance(tree, list) and tree:
        yield from places(tree[0], (*place, 0))
    elif place:
        yield place


def spoiled(tree: Any, place: Place, as_key: bool) -> bytes:
    """Return a file with a hostile text as a value, or as the name of one."""
    found = deepcopy(tree)
    holder: Any = found
    for each in place[:-1]:
        holder = holder[each]
    if as_key and isinstance(holder, dict):
        holder[HOSTILE] = holder.pop(place[-1])
    else:
        holder[place[-1]] = HOSTILE
    return json.dumps(found).encode()


@pytest.mark.parametrize("name", trees())
def test_no_text_of_a_file_reaches_the_terminal(name: str) -> None:
    """Every key and every value in turn, each to the next of the verbs that read the file."""
    readers = valid_files()[name][1]
    for turn, place in enumerate(sorted({*places(trees()[name])}, key=str)):
        for as_key in (False, True):
            words = readers[(2 * turn + as_key) % len(readers)].split(" ")
            files = {path: data for path, (data, _) in valid_files().items() if path in words}
            files |= {name: spoiled(trees()[name], place, as_key)}
            with directory_of(Case([], files)):
                run_case(Case([words]))


def test_errors_show_escapes() -> None:
    """For the library, too; only the lines of a program that is quoted are lines."""
    words = (
        r"x\nforged: a line\x1b[2J\r\u2028forged: a line\u2029\x85\u202eforged\u2066\u200b\x9b31m"
    )
    assert str(InputError(HOSTILE)) == words
    assert str(InputError("it said:", "one", HOSTILE)) == f"it said:\n    one\n    {words}"
    error = VerificationError(HOSTILE, [HOSTILE], [HOSTILE])
    assert str(error) == f"{words} fails verification:\n  - {words}\n    {words}"
    assert error.violations == error.quoted == (words,)
