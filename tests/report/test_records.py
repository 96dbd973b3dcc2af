"""Dataclasses go to JSON and come back; what does not fit is named with its place."""

import json
import math
from dataclasses import dataclass, field

import pytest

from lrn.report import records


@dataclass(frozen=True)
class Part:
    name: str
    size: float
    count: int = 1


@dataclass(frozen=True)
class Whole:
    parts: dict[str, Part]
    pairs: tuple[tuple[int, float], ...]
    right: bool
    note: str | None
    anything: dict[str, object]
    total: float = field(init=False)

    def __post_init__(self):
        if not self.parts:
            raise ValueError("there must be a part")
        object.__setattr__(self, "total", sum(part.size for part in self.parts.values()))


WHOLE = Whole(
    {"a": Part("x", 1.5), "b": Part("y", 2, 3)}, ((1, 2.0), (3, 4.5)), True, None, {"deep": [1, {}]}
)


def test_there_and_back():
    plain = json.loads(json.dumps(records.to_json(WHOLE)))
    assert plain["total"] == 3.5
    assert plain["pairs"] == [[1, 2.0], [3, 4.5]]
    assert records.from_json(Whole, plain, "a.json") == WHOLE


@pytest.mark.parametrize("size", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_and_comes_back_as_nan(size):
    plain = json.dumps(records.to_json({"a": Part("x", size)}), allow_nan=False)
    assert json.loads(plain)["a"]["size"] is None
    assert math.isnan(records.from_json(dict[str, Part], json.loads(plain), "a.json")["a"].size)


def test_what_is_worked_out_is_not_believed():
    plain = records.to_json(WHOLE) | {"total": 9.0, "later": "version"}
    assert records.from_json(Whole, plain, "a.json").total == 3.5


def change(place, value):
    plain = json.loads(json.dumps(records.to_json(WHOLE)))
    *way, last = place
    inner = plain
    for name in way:
        inner = inner[name]
    if value is KeyError:
        del inner[last]
    else:
        inner[last] = value
    return plain


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("right",), KeyError, "right is missing"),
        (("parts", "a", "size"), KeyError, "parts.a.size is missing"),
        (("parts", "a", "size"), "big", "parts.a.size must be a number, got 'big'"),
        (("parts", "a", "size"), True, "parts.a.size must be a number, got True"),
        (("parts", "b", "count"), 1.5, "parts.b.count must be a whole number, got 1.5"),
        (("parts", "b", "count"), True, "parts.b.count must be a whole number, got True"),
        (("parts", "a", "name"), 3, "parts.a.name must be a text, got 3"),
        (("parts",), [], r"parts must be an object, got \[\]"),
        (("parts",), {}, "there must be a part"),
        (("right",), 1, "right must be true or false, got 1"),
        (("pairs", 1), [1], "pairs.1 must have 2 parts, got 1"),
        (("pairs", 0, 0), 1.5, "pairs.0.0 must be a whole number"),
        (("pairs",), {"1": 2}, "pairs must be a list"),
        (("note",), "n" * 100, None),
        (("parts", "a", "count"), KeyError, None),
        (("anything",), {"whatever": None}, None),
    ],
)
def test_what_does_not_fit(place, value, said):
    plain = change(place, value)
    if said is None:
        records.from_json(Whole, plain, "a.json")
        return
    with pytest.raises(ValueError, match=f"^a.json is damaged, or another file: {said}") as caught:
        records.from_json(Whole, plain, "a.json")
    assert "\n" not in str(caught.value)


def test_a_long_value_is_cut():
    with pytest.raises(ValueError, match=r"x…$"):
        records.from_json(int, "x" * 10_000, "a.json")


def test_files(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(FileNotFoundError, match="is missing"):
        records.read(Whole, path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"a\.json is damaged"):
        records.read(Whole, path)
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"a\.json is damaged, or another file: it must be an object"):
        records.read(Whole, path)
    path.write_text(json.dumps(records.to_json(WHOLE)))
    assert records.read(Whole, path) == WHOLE
