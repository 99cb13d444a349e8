"""The pages of the documentation: what they tell people to run, and what they say comes of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
SLOW = (
    *("docs/compare.md", "docs/design.md", "docs/testbed.md", "docs/integrations/pytorch.md"),
    *("docs/tutorials/pytorch.md", "docs/tutorials/research.md"),
)
"""Pages whose commands run in continuous integration only (CI=true): each takes many seconds."""

PROMPT = "$ "
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
FENCE = re.compile(r"```(\w*)$")
INLINE = re.compile(r"`(alltoall [a-z0-9][^`]*)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\b[A-Z]\b")
SECONDS = re.compile(r"[0-9]+(\.[0-9]+)? s\b|(?<=seconds)(\s+|\": )[0-9]+(\.[0-9]+)?")

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z")

CHOSEN = re.compile(
    r"[0-9,]+ of [0-9,]+ links( are the fullest.*|, e\.g\. .*)|the bound is proven by .*|[(]cut .*"
)
"""Of several optimal answers, the one that a solver finds is not the same on every machine."""

PACKED = re.compile(r"\b[0-9]{2} KB\b")
"""The size of a page whose data is compressed, which is not the same on every machine."""

NOISE = re.compile(r"\b[0-9](\.[0-9]+)?e-1[0-9]\b|\b0\.00e\+00\b")
"""What is left of sums that should be zero, which is not the same on every machine."""


@dataclass(frozen=True)
class Step:
    """Something to run, at a line of a page, and the lines that hold its output.

    `kind` is console, inline or python; `begin == end` if no output is shown.
    """

    kind: str
    line: int
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Page:
    """A page: its lines, what it runs in order, and what it says is not run, with the reason."""

    path: Path
    lines: list[str]
    steps: list[Step]
    not_run: list[str]

    @property
    def name(self) -> str:
        """The path of the page in the repository."""
        return str(self.path.relative_to(ROOT))


def read_page(path: Path) -> Page:
    """Find what a page runs."""
    lines = path.read_text().splitlines()
    steps: list[Step] = []
    not_run: list[str] = []
    for kind, first, last in _blocks(lines):
        reason = NOT_RUN.fullmatch(lines[first - 2].strip()) if first > 1 else None
        if reason:
            commands = [line for line in lines[first:last] if not line.startswith("#")]
            not_run.append(f"{path.relative_to(ROOT)}:{first + 1}: {commands[0]} ({reason[1]})")
        elif kind == "console":
            steps += _commands(lines, first, last)
        elif kind == "python":
            steps.append(_python(lines, first, last))
    steps += [Step("inline", line, text, 0, 0) for line, text in _inline(lines)]
    return Page(path, lines, steps, not_run)


def _blocks(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the language, the first line and the line after the last of every fenced block."""
    kind, first = "", -1
    for index, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence and first < 0:
            kind, first = fence[1], index + 1
        elif fence:
            yield kind, first, index
            first = -1


def _commands(lines: list[str], first: int, last: int) -> Iterator[Step]:
    prompts = [index for index in range(first, last) if lines[index].startswith(PROMPT)]
    for index, end in zip(prompts, [*prompts[1:], last], strict=True):
        yield Step("console", index, lines[index].removeprefix(PROMPT), index + 1, end)


def _python(lines: list[str], first: int, last: int) -> Step:
    """Return a block of Python; a block of text right after it is what it prints."""
    text = "\n".join(lines[first:last])
    after = last + 2
    if lines[last + 1 : after] != ["```text"]:
        return Step("python", first, text, last, last)
    return Step("python", first, text, after, lines.index("```", after))


def _inline(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the commands in running text that are whole: no word in them stands for another."""
    for index, line in enumerate(lines):
        for found in INLINE.finditer(line):
            if not PLACEHOLDER.search(found[1]) and len(found[1].split()) > 2:
                yield index, found[1]


def needs_torch(page: Page) -> bool:
    """Whether a page runs something that only torch can."""
    return any("torchrun " in step.text or "import torch" in step.text for step in page.steps)


def needs_testbed(page: Page) -> bool:
    """Whether a page runs something on a fabric of network namespaces."""
    return any("testbed " in step.text or "--rate " in step.text for step in page.steps)


def stray_commands(path: Path) -> list[str]:
    """Return commands that no test would see: indented, or in a block but without a prompt."""
    lines = path.read_text().splitlines()
    seen = {index for _, first, last in _blocks(lines) for index in range(first, last)}
    skipped = {
        index
        for _, first, last in _blocks(lines)
        if NOT_RUN.fullmatch(lines[first - 2].strip())
        for index in range(first, last)
    }
    return [
        f"{path.relative_to(ROOT)}:{index + 1}: {line.strip()}"
        for index, line in enumerate(lines)
        if (re.match(r"\s*(\$ )?(\.venv/bin/)?alltoall [a-z]", line) and index in seen - skipped
            and not line.startswith(PROMPT))
        or (re.match(r" {4,}(\$ )?(\.venv/bin/)?alltoall [a-z]", line) and index not in seen)
    ]  # fmt: skip


def plain(text: str) -> str:
    """Return output as it is compared: without when and how long, rounding noise, or blanks."""
    noise = ((DATE, "#"), (SECONDS, "# s"), (CHOSEN, "#"), (PACKED, "#"), (NOISE, "0"))
    for pattern, instead in noise:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
