"""bench.json carries everything, and another file is told apart."""

import pytest
from bench.cases import MACHINE, bench

from lrn.bench.results import Bench


@pytest.mark.parametrize("given", [bench(), Bench(MACHINE, 1)])
def test_everything_is_there_after_writing_and_reading(given, tmp_path):
    given.write(tmp_path / "bench.json")
    assert Bench.read(tmp_path / "bench.json") == given


def test_another_file(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text('{"machine": {"processor": "x"}, "seed": 1}')
    with pytest.raises(ValueError, match=rf"^{path} is damaged, or another file: machine.cores is missing$"):
        Bench.read(path)
