"""Tables and picture show all that was measured."""

import io

import pytest
from bench.cases import SLOWER, bench, timing
from rich.console import Console

from lrn.bench import show
from lrn.bench.results import Bench


def printed(result):
    out = io.StringIO()
    show.print_tables(result, Console(file=out, width=200))
    return out.getvalue()


def test_ratios_and_means():
    assert show.ratios({"lrn": timing(2.0), "x": timing(5.0)}) == {"lrn": 1.0, "x": 2.5}
    assert show.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_every_table_is_printed():
    said = printed(bench())
    for part in (
        "training: time relative to LRN",
        "inference: time relative to LRN",
        "geometric mean",
        "streaming: one step",
        "1,800 real of 7,680 padded tokens (0.234); time packed/padded 0.250, which is 1.07x its share",
        "threads: training step",
        "long sequences",
        "kept for backward",
        "import torch 1.50 s, import lrn 0.10 s more",
    ):
        assert part in said
    row = next(line for line in said.splitlines() if "400,32,64" in line)
    for factor in list(SLOWER.values())[1:]:
        assert f"{factor:.2f}" in row


def test_what_was_not_measured_is_not_printed():
    assert printed(Bench(bench().machine, 1)) == ""


def test_the_picture(tmp_path):
    path = tmp_path / "bench.png"
    assert show.draw(bench(), path) == path
    assert path.read_bytes().startswith(b"\x89PNG")
