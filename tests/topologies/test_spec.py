import pytest

from alltoall.errors import TopologyError, UsageError
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.spec import SPEC_KINDS, build


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ("genkautz:64,4", "genkautz:n=64,d=4"),
        ("genkautz:64,d=4,rewire=true", "genkautz:n=64,d=4,rewire=true"),
        ("genkautz:d=4,n=64,rewire=false", "genkautz:n=64,d=4"),
        ("torus:dims=3x3x3", "torus:3x3x3"),
        (" torus:3x3x3 ", "torus:3x3x3"),
        ("genkautz: n = 64 , d = 4", "genkautz:n=64,d=4"),
        ("dragonfly:4,2,9", "dragonfly:a=4,h=2"),
        ("tpuv4:4x4x8,true", "tpuv4:4x4x8,twisted=true"),
        ("jellyfish:n=20,d=3", "jellyfish:n=20,d=3,seed=0"),
        ("dgx1:", "dgx1"),
    ],
)
def test_ways_to_write_a_spec(spec: str, same: str) -> None:
    """Arguments go by position or by name, in any order, with optional ones left out."""
    assert build(spec) == build(same)
    assert build(spec).name == build(same).name


@pytest.mark.parametrize("spec", ["toru:3x3", "tourus:3x3", "Torus:3x3"])
def test_unknown_family_with_a_close_match(spec: str) -> None:
    """A near miss is answered with the family that was probably meant, and all others."""
    with pytest.raises(UsageError, match="did you mean 'torus'") as caught:
        build(spec)
    assert all(name in str(caught.value) for name in FAMILIES)


@pytest.mark.parametrize("spec", ["", ":", "12345", "z" * 10_000])
def test_unknown_family(spec: str) -> None:
    """Anything else is answered with the list of families, in bounded length."""
    with pytest.raises(UsageError, match="unknown topology family") as caught:
        build(spec)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("genkautz:n=64,d=4,k=3", "unknown parameter 'k'"),
        ("genkautz:1,2,true,9", "unknown parameter '9'"),
        ("dgx1:8", "unknown parameter '8'"),
        ("torus:3x3,", "unknown parameter ''"),
        ("ring:=6", "unknown parameter ''"),
        ("genkautz:n=64", "parameter 'd' is missing"),
        ("torus", "parameter 'dims' is missing"),
        ("torus:", "parameter 'dims' is missing"),
        ("genkautz:n=64,n=65,d=4", "parameter 'n' is given twice"),
        ("genkautz:64,4,n=64", "parameter 'n' is given twice"),
        ("ring:six", "parameter 'n' is 'six', expected a whole number"),
        ("ring:6.0", "expected a whole number"),
        ("ring:1_0", "expected a whole number"),
        ("ring:\u0666", "expected a whole number"),
        ("ring:" + "9" * 5000, "expected a whole number"),
        ("genkautz:n=,d=4", "parameter 'n' is '', expected a whole number"),
        ("torus:3x", "expected whole numbers joined by x"),
        ("torus:3*3", "expected whole numbers joined by x"),
        ("genkautz:n=64,d=4,rewire=yes", "expected true or false"),
        ("dragonfly:a=4,h=2,g=none", "expected a whole number"),
    ],
)
def test_misuse(spec: str, problem: str) -> None:
    """A wrong argument is named, with the family's parameters and an example."""
    with pytest.raises(UsageError) as caught:
        build(spec)
    family = FAMILIES[spec.partition(":")[0]]
    assert problem in str(caught.value)
    assert "parameters: " in str(caught.value)
    assert f"(for example {family.example})" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "spec",
    [
        "torus:0x3",
        "torus:100000x100000",
        "hypercube:60",
        "complete:1000000",
        "kautz:d=10,k=30",
        "jellyfish:n=5,d=3",
        "slimfly:q=6",
        "ring:-4",
        "ring:1",
    ],
)
def test_no_such_topology(spec: str) -> None:
    """A SPEC that reads well but has no topology is an error of the topology."""
    with pytest.raises(TopologyError, match=spec.partition(":")[0]):
        build(spec)


def test_numbers_and_words_are_understood() -> None:
    """Besides the kinds that the present families use, numbers and words can be read."""
    assert SPEC_KINDS[float][0]("2.5") == 2.5
    assert SPEC_KINDS[str][0]("fast") == "fast"
