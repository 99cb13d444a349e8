"""The examples do what they say, and print what a reader is promised."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"moe_torch.py"}
"""Examples that tests of the documentation run."""

Shown = Callable[..., str]


@pytest.fixture
def shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shown:
    """Give a function that runs an example with words, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, *words: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(text: str) -> list[float]:
    """Return the numbers with a decimal point in a text."""
    return [float(each) for each in re.findall(r"\d+\.\d+", text)]


def test_sixty_four_gpus(shown: Shown, tmp_path: Path) -> None:
    """Three fabrics are compared, and the flow of the fastest is saved and verified."""
    text = shown("sixty_four_gpus.py", str(tmp_path))
    rates = numbers(text)
    assert len(rates) == 3
    assert text.splitlines()[rates.index(max(rates))].split()[0] in text.splitlines()[-1]
    assert "alltoall.flow/1, verified" in text
    assert (tmp_path / "gpus.flow.npz").is_file()


def test_hybrid_cluster(shown: Shown) -> None:
    """Inside a host an all-to-all is many times faster than across."""
    everything, inside, across = numbers(shown("hybrid_cluster.py"))
    assert inside > 5 * everything
    assert across < everything


def test_kautz_or_better(shown: Shown) -> None:
    """A better graph is found where ports are wasted, and nothing beats the bound."""
    lines = shown("kautz_or_better.py", "16", "4").splitlines()
    least, kautz, better = (numbers(line)[0] for line in lines[:3])
    assert least <= better < kautz
    assert lines[-1] == "better"


def test_failure_drill(shown: Shown) -> None:
    """A cable less costs time, and no routes are below the proven bound."""
    lines = shown("failure_drill.py", "ring:5").splitlines()
    before, (after, bound), lost = numbers(lines[0])[0], numbers(lines[1]), numbers(lines[2])[0]
    assert before < bound <= after
    assert 0 < lost < 100


def test_fft(shown: Shown) -> None:
    """Both ways are timed band by band, and the result was numpy's."""
    lines = shown("fft.py", "8x6x4", "ring:4").splitlines()
    assert lines[0] == "8x6x4 points on 4 ranks, checked against fftn"
    assert [line.split()[0] for line in lines[1:]] == ["library", "schedule"]
    assert all(len(numbers(line)) == 3 for line in lines[1:])


def test_no_example_goes_untested() -> None:
    """Every program in the folder has a test here, or in the documentation."""
    text = Path(__file__).read_text()
    programs = {path.name for path in EXAMPLES.glob("*.py")} - ELSEWHERE
    assert all(f'"{name}"' in text for name in programs)
