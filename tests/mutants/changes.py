"""Single changes to a module's source, found in its syntax tree and made in its text."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Every operator that is changed, and into which."""

SILENT_KEYWORDS = ("strict", "cache", "nogil", "frozen", "eq", "stacklevel", "dtype")
"""Arguments that guard against mistakes of ours or set types, whose change no result shows."""


@dataclass(frozen=True)
class Change:
    """One change: the bytes of a source from `begin` to `end` become `after`."""

    line: int
    begin: int
    end: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What becomes what, on one line."""
        return f"{' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    def apply(self, source: str) -> str:
        """Return the changed source."""
        data = source.encode()
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()


def changes_of(source: str) -> list[Change]:
    """Return every change of a module, in the order of its text."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = [
        Change(node.lineno, begin, end, source.encode()[begin:end].decode(), after)
        for node, after in _variants(ast.parse(source))
        if (begin := starts[node.lineno - 1] + node.col_offset)
        < (end := starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0))
    ]
    return sorted(set(found), key=lambda each: (each.begin, each.end, each.after))


def _variants(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield nodes and what to write in their place."""
    for node in _reached(tree):
        if isinstance(node, ast.expr):
            yield from ((node, f"({ast.unparse(each)})") for each in _expressions(node))
        elif isinstance(node, ast.stmt):
            yield from ((node, text) for text in _statements(node))


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that do something: no docstrings, types, decorators or messages."""
    yield node
    skipped = {"annotation", "returns", "decorator_list", "type_params"}
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in skipped or _is_silent(node, child):
                continue
            yield from _reached(child)


def _is_silent(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a change below `child` could not, or need not, be seen."""
    if isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True  # a docstring
    if isinstance(parent, ast.Raise):
        return True
    return isinstance(child, ast.keyword) and child.arg in SILENT_KEYWORDS


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression's variants, each different in one operator or constant."""
    match node:
        case ast.Compare(left=left, ops=[op, *rest], comparators=right) if type(op) in SWAPS:
            yield ast.Compare(left, [_swapped(op), *rest], right)
        case ast.BinOp(left=one, op=op, right=other) if type(op) in SWAPS:
            yield ast.BinOp(one, _swapped(op), other)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(_swapped(op), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=other):
            yield ast.IfExp(test, other, body)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)


def _swapped(op: ast.AST) -> Any:  # the type of an operator depends on where it stands
    return SWAPS[type(op)]()


def _statements(node: ast.stmt) -> Iterator[str]:
    """Yield what a statement may become: nothing, its opposite, or the other way to go on."""
    match node:
        case ast.AugAssign(target=target, op=op, value=value):
            if type(op) in SWAPS:
                yield ast.unparse(ast.AugAssign(target, _swapped(op), value))
            yield "pass"
        case ast.Expr() | ast.Raise() | ast.Assert():
            yield "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "continue"
