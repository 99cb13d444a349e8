"""The mixture of experts: its router, its result, and a checker that notices a wrong bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from thread_ranks import ThreadExchange, ThreadRanks, on_threads

from alltoall.errors import UsageError
from alltoall.workloads.moe import Layer, dispatch_and_combine, needed_bytes
from alltoall.workloads.ranks import Turns, Way
from alltoall.workloads.router import (
    MAX_SKEW,
    Router,
    applied,
    rows_between,
    sent_table,
    skew_statistics,
)

ROUTER = Router(ranks=4, tokens=13, hidden=6, experts_per_rank=3, top_k=2, skew=1.0, seed=2)
TURNS = Turns(iterations=2, warmup=1)
LAST = 4
"""The last call of an exchange that goes one way: checked, timed three times, checked."""


def done(router: Router, back: bool = False, **wrong: int) -> dict[str, Any]:
    """Do the layer by two ways, of which the second may lie, there or back."""

    def program(ranks: ThreadRanks) -> dict[str, Any]:
        lying = [ThreadExchange(ranks), ThreadExchange(ranks, **wrong)]
        ways = [
            Way("library", [ThreadExchange(ranks)]),
            Way("template", lying if back else lying[::-1]),
        ]
        return dispatch_and_combine(ranks, ways, router.plain(), TURNS)

    with np.errstate(invalid="ignore"):
        first, *others = on_threads(router.ranks, program)
    assert all(each == first for each in others)
    return dict(first)


CASES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one expert each": {"top_k": 1, "experts_per_rank": 1},
    "all experts": {"top_k": 12},
    "very uneven": {"skew": 5.0, "tokens": 40},
    "even": {"skew": 0.0},
    "two ranks": {"ranks": 2, "hidden": 1},
}


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_as_without_distribution(case: str) -> None:
    """To the bit, whatever the counts; some pairs have nothing to send."""
    found = done(replace(ROUTER, **CASES[case]))
    assert found["violations"] == []
    assert [(row["way"], row["error"]) for row in found["rows"]] == [
        ("library", 0.0),
        ("template", 0.0),
    ]
    for row in found["rows"]:
        assert min(row[step] for step in ("seconds", "dispatch", "experts", "combine")) >= 0


def test_the_result_is_that_of_matrices() -> None:
    """Held against sum over choices of share times W x, with W as a matrix."""

    def program(ranks: ThreadRanks) -> Any:
        layer = Layer(ranks, ROUTER)
        for _, step in layer.steps(Way("it", [ThreadExchange(ranks)])):
            step()
        return layer.result

    for rank, result in enumerate(on_threads(ROUTER.ranks, program)):
        experts, shares = ROUTER.choices(rank)
        tokens = ROUTER.embeddings(rank)
        for token in range(ROUTER.tokens):
            expected = np.zeros(ROUTER.hidden)
            for expert, share in zip(experts[token], shares[token], strict=True):
                a, b, shift = ROUTER.weights(int(expert))
                matrix = np.diag(a) + np.diag(b) @ np.roll(np.eye(ROUTER.hidden), shift, axis=0)
                expected += share * (matrix @ tokens[token])
            np.testing.assert_allclose(result[token], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [0, LAST], ids=["first", "last"])
@pytest.mark.parametrize("back", [False, True], ids=["dispatch", "combine"])
def test_a_wrong_byte_is_noticed(back: bool, call: int) -> None:
    """On the way there or back, in the first call or in the last."""
    found = done(ROUTER, back, wrong_call=call, wrong_byte=3)
    step = "combine" if back else "dispatch"
    told = found["violations"]
    assert f"{step} by template: the" in told[0]
    assert "bytes at rank 1 from rank 0 are not those that were sent" in told[0]
    assert any("by template: the result of rank" in each for each in told)
    assert not any("library" in each for each in told)
    assert bool(found["rows"]) == (call > 0)


def test_a_wrong_bit_is_noticed() -> None:
    """Also where it vanishes in what is computed with it."""
    found = done(ROUTER, wrong_call=0, wrong_byte=0, flip=1)
    assert "dispatch by template" in found["violations"][0]


def test_the_router_draws_different_experts_by_popularity() -> None:
    """No expert twice for a token, shares that add up to one, and the popular ones most."""
    router = replace(ROUTER, tokens=5000, skew=1.5)
    experts, shares = router.choices(1)
    assert experts.shape == shares.shape == (5000, 2)
    assert np.all(experts[:, 0] != experts[:, 1])
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    first = np.bincount(experts[:, 0], minlength=router.experts) / router.tokens
    np.testing.assert_allclose(first, router.popularity, atol=0.03)
    assert router.popularity.sum() == pytest.approx(1)


def test_the_router_follows_from_its_seed() -> None:
    """Any process can say what any rank does; other ranks and seeds do other things."""
    again = Router(**ROUTER.plain())
    for one, other in zip(ROUTER.choices(2), again.choices(2), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(ROUTER.embeddings(0), ROUTER.embeddings(1))
    assert not np.array_equal(ROUTER.choices(0)[0], replace(ROUTER, seed=3).choices(0)[0])


def test_an_expert_is_linear() -> None:
    """W (x + y) = W x + W y, and it is no multiple of the identity."""
    rows = ROUTER.embeddings(0)
    weights = ROUTER.weights(0)
    both = applied(weights, rows[:5] + rows[5:10])
    np.testing.assert_allclose(
        both, applied(weights, rows[:5]) + applied(weights, rows[5:10]), rtol=1e-4, atol=1e-5
    )
    assert not np.allclose(applied(weights, rows), weights[0] * rows)


def test_the_statistics_of_the_skew() -> None:
    """Counted by hand for two ranks with an expert each."""
    router = Router(2, 4, 1, 1, 1, 1.0, 0)
    table = np.array([[1, 3], [2, 2]])
    np.testing.assert_array_equal(rows_between(router, table), table)
    assert skew_statistics(router, table) == pytest.approx(
        {
            "top_expert_share": 5 / 8,
            "expert_max_over_mean": 5 / 4,
            "rank_max_over_mean": 5 / 4,
            "pair_max_over_mean": 3 / 2.5,
            "local_share": 3 / 8,
        }
    )


def test_more_skew_is_more_uneven() -> None:
    """And without skew, all is about even."""
    found = []
    for skew in (0.0, 1.0, 3.0):
        router = replace(ROUTER, tokens=4000, skew=skew)
        table = sent_table(router)
        assert table.sum() == 4 * 4000 * 2
        found.append(skew_statistics(router, table)["expert_max_over_mean"])
    assert found[0] < 1.1 < found[1] < found[2]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"tokens": 0}, "tokens 0; expected 1 to"),
        ({"hidden": 1 << 30}, "hidden 1073741824"),
        ({"experts_per_rank": 0}, "experts per rank 0"),
        ({"top_k": 13}, "13 experts for each token; expected 1 to 12"),
        ({"top_k": 0}, "0 experts for each token"),
        ({"skew": -1.0}, "skew -1; expected 0"),
        ({"skew": float("nan")}, "skew nan"),
        ({"skew": MAX_SKEW * 2}, "skew 20"),
    ],
)
def test_parameters_that_make_no_sense(changed: dict[str, Any], problem: str) -> None:
    """Are refused before anything is drawn."""
    with pytest.raises(UsageError, match=problem):
        replace(ROUTER, **changed)


def test_memory_grows_with_the_rows() -> None:
    """It is at least that of the buffers."""
    assert needed_bytes(replace(ROUTER, tokens=2000)) > needed_bytes(ROUTER)
    assert needed_bytes(ROUTER) >= 4 * 4 * 13 * 2 * 6 * 4
