"""Damage to valid files: bytes, lines, tokens, the values of JSON, the members of an archive."""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

DEEP = "@deep@"
"""Stands in JSON for an array nested deeper than any parser recurses."""

NAN = "@nan@"
INFINITE = "@infinite@"

RAW = {DEEP: "[" * 100_000 + "]" * 100_000, NAN: "NaN", INFINITE: "-Infinity"}
"""What json.dumps cannot write, put in its place in the text."""

FORGED = "\nforged: a line"
"""A text that would be a line of its own if it were printed as it is."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63), 10**30),
    *(0.0, -0.0, 0.5, -1.0, 1e-300, 5e-324, 1e300, 1.7e308, 10**400, NAN, INFINITE, DEEP),
    *("", "x", "0", "1/3", "1/0", "-1/2", "9" * 5000, "\ud800", "\x00", "\x1b[31m", "ö", "a" * 300),
    *(FORGED, f"x{FORGED}"),
    *([], {}, [[]], [None], [0, 1, 2], {"format": []}, [[0, 1, 1.0]], {"a": {"b": [1]}}),
)
"""Values of every kind that JSON has, and the edges of each."""

TOKENS = (
    *(b"", b"0", b"-1", b"1", b"7", b"2147483648", b"9007199254740993", b"9" * 400, b"1e999"),
    *(b"nan", b"inf", b"-inf", b"0.5", b"1e-320", b"x", b'"', b"'", b"<", b">", b"&", b"&lt;"),
    *(b"\x00", b"\x1b[2J", b"\xff", b"\xc3\xb6", b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b","),
    *(b"<!DOCTYPE a>", b"<!--", b"]]>", b"\r\n", b"\n\n", b"\t", b"#", b"/", b"..", b"null"),
)
"""What is put in the place of a token."""

Mutation = Callable[[Random, bytes], bytes]


def mutate(rng: Random, name: str, data: bytes) -> bytes:
    """Damage a file once to four times, in ways that its format is open to."""
    ways: list[Mutation] = [*TEXT_WAYS]
    if name.endswith(".npz"):
        ways = [cut, flip, splice, *[archive] * 9]
    elif data.lstrip()[:1] in b"{[":
        ways += [value] * 12
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(ways)(rng, data)
    return data


def cut(rng: Random, data: bytes) -> bytes:
    """Lose the end, or the beginning."""
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.8 else data[at:]


def flip(rng: Random, data: bytes) -> bytes:
    """Change single bytes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 2, 8)) if found else 0):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def splice(rng: Random, data: bytes) -> bytes:
    """Repeat, remove or move a part."""
    begin = rng.randrange(len(data) + 1)
    part = data[begin : begin + rng.choice((1, 8, 100, 5000))]
    rest = data[:begin] + data[begin + len(part) :]
    to = rng.randrange(len(rest) + 1)
    moved = part * rng.choice((0, 1, 2, 50))
    return (rest[:to] + moved + rest[to:]) if rng.random() < 0.5 else data[:begin] + moved + rest


def lines(rng: Random, data: bytes) -> bytes:
    """Repeat, remove or swap lines."""
    rows = data.split(b"\n")
    one, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    rows[one : one + 1] = rng.choice(([], [rows[one]] * 2, [rows[other]], [rows[one], b""]))
    return b"\n".join(rows)


def token(rng: Random, data: bytes) -> bytes:
    """Put something else in the place of a number, a word or what stands between quotes."""
    found = list(re.finditer(rb'"[^"]*"|-?[0-9][0-9.e+-]*|[A-Za-z_]+', data))
    if not found:
        return data + rng.choice(TOKENS)
    at, new = rng.choice(found), rng.choice(TOKENS)
    if at[0].startswith(b'"') and rng.random() < 0.7:
        new = b'"' + new + b'"'
    return data[: at.start()] + new + data[at.end() :]


TEXT_WAYS: tuple[Mutation, ...] = (cut, flip, splice, lines, token, token, token, token)


def value(rng: Random, data: bytes) -> bytes:
    """Change one value in a tree of JSON."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return token(rng, data)
    changed = _changed(rng, tree)
    text = json.dumps(changed)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    return text.encode()


def _changed(rng: Random, tree: Any) -> Any:
    """Go down from the root, and put something else in the place of what is met."""
    holder: Any = [tree]
    key: Any = 0
    root = holder
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.85:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    _strike(rng, holder, key)
    return root[0] if root else None


def _strike(rng: Random, holder: Any, key: Any) -> None:
    """Replace, remove, repeat, shift or swap one value."""
    way = rng.randrange(8)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, list):
        holder.insert(key, holder[rng.randrange(len(holder))])
    elif way == 2:
        other = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
    elif way <= 5 and type(holder[key]) in (int, float) and abs(holder[key]) < 1e200:
        holder[key] = rng.choice((1, -1, 2, 0.5, 1e6)) * holder[key] + rng.choice((-1, 0, 1))
    elif way == 6 and isinstance(holder, dict):
        holder[rng.choice(("", "\x1b[1m", "format", "unknown"))] = rng.choice(VALUES)
    else:
        holder[key] = rng.choice(VALUES)


def archive(rng: Random, data: bytes) -> bytes:
    """Damage one member of a zip archive, or the list of them, and pack it again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            members = {each: found.read(each) for each in found.namelist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, RuntimeError, EOFError, KeyError):
        return flip(rng, data)
    name = rng.choice(sorted(members) or ["format.npy"])
    way = rng.randrange(6)
    if way == 0:
        members.pop(name, None)
    elif way == 1:
        members[rng.choice(("other.npy", "../x.npy", "layer.npy", "demand.npy"))] = members[name]
    elif way == 2:
        members[name] = members[rng.choice(sorted(members))]
    else:
        members[name] = rng.choice((flip, cut, splice, _claim, _claim))(rng, members[name])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((0, zipfile.ZIP_DEFLATED))) as file:
        for each, content in members.items():
            file.writestr(each, content)
    return packed.getvalue()


def _claim(rng: Random, data: bytes) -> bytes:
    """Let the header of an array claim another type or shape."""
    shape = rng.choice(
        (b"(", b"(9", b"(0,", b"(1000000000,", b"(-1,", b"(2,3,", b"(4503599627370496,")
    )
    kind = rng.choice((b"<f8", b"<i8", b"|O", b"<f4", b"|u1", b">i4", b"<U9", b"<c16", b"?"))
    if rng.random() < 0.5:
        return re.sub(rb"'shape': \(", b"'shape': " + shape, data, count=1)
    return re.sub(rb"'descr': '[^']*'", b"'descr': '" + kind + b"'", data, count=1)
