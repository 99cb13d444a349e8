"""Check arguments of public functions by their annotations, with clear messages.

Annotations alone define what an argument may be. Whole numbers may be numpy's. A list may be any
iterable, also a generator, which is consumed once. A text is never a list of its characters, and
0.9 is no node.
"""

import inspect
import math
import os
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, wraps
from numbers import Real
from operator import index
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, ForwardRef, NoReturn, TypeVar, Union, get_args, get_origin

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import frozen

Function = TypeVar("Function", bound=Callable[..., Any])

MOST = 2**63
"""Whole numbers are smaller than this: arrays have 64 bits."""


class Unfit(Exception):  # noqa: N818 (an answer of a reader, which becomes an error of the call)
    """Raised by a reader for a value of another kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of argument: its name in singular and plural, and its reader."""

    one: str
    many: str
    read: Callable[[Any], Any]


def export(function: Function, name: str) -> Function:
    """Return a function that checks its arguments, as the package's own under this name.

    Processes can be sent it, for it is found where it says that it is.
    """
    checked = check_arguments(function)
    checked.__module__, checked.__qualname__ = __name__.partition(".")[0], name
    return checked


def check_arguments(function: Function) -> Function:
    """Wrap a function to check its arguments by their annotations."""
    name = function.__qualname__

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        signature, kinds = _signature_of(function)
        bound = signature.bind(*given, **named)
        for key, value in bound.arguments.items():
            bound.arguments[key] = read_argument(f"{name}: {key}", value, kinds[key])
            _require_usable(f"{name}: {key}", bound.arguments[key])
        return function(*bound.args, **bound.kwargs)

    return checked  # type: ignore[return-value]


def read_fields(record: Any) -> None:
    """Read the fields of a frozen dataclass by their annotations; for its `__post_init__`."""
    for key, kind in _kinds_of_fields(record.__class__).items():
        value = getattr(record, key)
        read = read_argument(f"{type(record).__name__}: {key}", value, kind)
        if read is not value:
            object.__setattr__(record, key, read)


def read_argument(name: str, value: Any, kind: Kind) -> Any:
    """Read a value by its kind; raise if it is of another."""
    try:
        return kind.read(value)
    except Unfit as reason:
        found = f"{reprlib.repr(value)}{reason}, a {type(value).__name__}"
        raise UsageError(f"{name} is {found}; expected {kind.one}") from None


def _require_usable(name: str, value: Any) -> None:
    """Raise for a number that is not finite, and for a text that cannot be part of a path."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name} is {value}; expected a finite number")
    if isinstance(value, str):
        read_argument(name, value, PATH)


@cache
def _signature_of(function: FunctionType) -> tuple[inspect.Signature, dict[str, Kind]]:
    signature = inspect.signature(function)
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return signature, {
        key: ANYTHING if each.kind in several else kind_of(each.annotation, function.__globals__)
        for key, each in signature.parameters.items()
    }


@cache
def _kinds_of_fields(record: type) -> dict[str, Kind]:
    return {each.name: kind_of(each.type) for each in fields(record)}


def kind_of(hint: Any, scope: Mapping[str, Any] | None = None) -> Kind:
    """Return the kind of an annotation; anything, if it cannot be checked."""
    if isinstance(hint, str | ForwardRef):
        hint = _named(hint if isinstance(hint, str) else hint.__forward_arg__, scope or {})
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return _one_of([kind_of(part, scope) for part in parts])
    if origin in SEVERAL and parts:
        some = [kind_of(part, scope) for part in parts if part is not Ellipsis]
        return _row(some) if origin is tuple and Ellipsis not in parts else _several(some[0])
    if origin is Mapping:
        return _table(*(kind_of(part, scope) for part in parts))
    if origin is np.ndarray:
        return _array(get_args(parts[1])[0])
    return PLAIN.get(origin) or _instance(origin)


def _named(text: str, scope: Mapping[str, Any]) -> Any:
    """Return the class named by a text, from a module or the package's exports."""
    first, *rest = re.sub(r"\[.*\]$", "", text).split(".")
    found = scope.get(first) or getattr(sys.modules["alltoall"], first, Any)
    for part in rest:
        found = getattr(found, part, Any)
    return found


def _instance(hint: Any) -> Kind:
    """Return the kind of a class; protocols cannot be checked."""
    vague = hint in (Any, object, inspect.Parameter.empty) or getattr(hint, "_is_protocol", False)
    if vague or not isinstance(hint, type):
        return ANYTHING
    words = f"a {hint.__name__}", f"{hint.__name__} objects"
    return Kind(*words, lambda value: value if isinstance(value, hint) else _refuse())


def _one_of(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of a union; the first kind that accepts a value reads it."""
    if ANYTHING in kinds:
        return ANYTHING

    def read(value: Any) -> Any:
        reasons = ""
        for kind in kinds:
            try:
                return kind.read(value)
            except Unfit as reason:
                reasons = reasons or str(reason)
        return _refuse(reasons)

    return Kind(_either([each.one for each in kinds]), _either([each.many for each in kinds]), read)


def _either(words: Iterable[str]) -> str:
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last


def _several(kind: Kind) -> Kind:
    """Return the kind of a list of any length; a text or a table is none."""
    words = f"a list of {kind.many}", f"lists of {kind.many}"
    return Kind(*words, lambda value: tuple(map(kind.read, _items(value))))


def _row(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of a tuple with one entry of each kind."""

    def read(value: Any) -> tuple[Any, ...]:
        items = _items(value)
        if len(items) != len(kinds):
            return _refuse()
        return tuple(kind.read(item) for kind, item in zip(kinds, items, strict=True))

    words = ", ".join(kind.one for kind in kinds)
    return Kind(f"({words})", f"({words}) each", read)


def _items(value: Any) -> list[Any]:
    if isinstance(value, str | bytes | Mapping):
        return _refuse()
    try:
        return list(value)
    except TypeError:
        return _refuse()


def _table(key: Kind, item: Kind) -> Kind:
    def read(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            return _refuse()
        return {key.read(each): item.read(found) for each, found in value.items()}

    return Kind(f"a dict of {key.many} to {item.many}", "dicts", read)


def _array(dtype: Any) -> Kind:
    def read(value: Any) -> Any:
        try:
            return frozen(value, dtype)
        except InputError as error:
            return _refuse(f": {error}")

    words = "whole numbers" if np.issubdtype(dtype, np.integer) else "numbers"
    return Kind(f"an array of {words}", f"arrays of {words}", read)


def _refuse(reason: str = "") -> NoReturn:
    raise Unfit(reason)


def _read_flag(value: Any) -> bool:
    return bool(value) if isinstance(value, bool | np.bool_) else _refuse()


def _read_whole(value: Any) -> int:
    try:
        found = index(value)
    except TypeError:
        return _refuse()
    return found if not isinstance(value, bool) and -MOST <= found < MOST else _refuse()


def _read_number(value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        return _refuse()
    try:
        return float(value)
    except OverflowError:
        return _refuse()


def _require_path(value: str) -> str:
    """Return a text that may be a path: encodable and without NUL."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return _refuse(", which has no bytes")
    return value if "\0" not in value else _refuse(", with a NUL in it")


def _read_path(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        return _refuse()
    return Path(_require_path(os.fspath(value)))


def _read_anything(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        _require_path(os.fspath(value))
    return value


ANYTHING = Kind("what a file may be called", "names of files", _read_anything)
PATH = Kind("a path", "paths", _read_path)
PLAIN: Mapping[Any, Kind] = {
    None: Kind("None", "None", lambda value: value if value is None else _refuse()),
    NoneType: Kind("None", "None", lambda value: value if value is None else _refuse()),
    bool: Kind("True or False", "True or False", _read_flag),
    int: Kind("a whole number", "whole numbers", _read_whole),
    float: Kind("a number", "numbers", _read_number),
    str: Kind("a text", "texts", lambda it: it if isinstance(it, str) else _refuse()),
    Path: PATH,
    os.PathLike: PATH,
    Callable: Kind("a function", "functions", lambda it: it if callable(it) else _refuse()),
}
"""Kinds that need no more than their name."""

SEVERAL = (tuple, list, Sequence, Iterable)
"""Kinds that any iterable is read as."""
