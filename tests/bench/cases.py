"""A benchmark's results, made up, with every table in it."""

from lrn.bench.peers import PEERS
from lrn.bench.results import Bench, ImportSeconds, Length, Machine, Packed
from lrn.report.results import Timing

MACHINE = Machine("AMD EPYC", 2, 2, "3.11.7", "2.13.0+cpu", "0.1.0", ("cpu", "torch"))
SLOWER = dict(zip(PEERS, (1.0, 1.1, 1.3, 1.6, 4.2, 3.9, 45.0, 1.9, 0.9), strict=True))


def timing(median):
    return Timing(median, 0.9 * median, 1.2 * median, 9)


def bench():
    row = {name: timing(0.002 * factor) for name, factor in SLOWER.items()}
    pair = {name: row[name] for name in ("lrn", "nn.LSTM")}
    shapes = ("32,128,300", "400,32,64", "1000,1,256")
    return Bench(
        MACHINE,
        seed=1,
        notes=("a note",),
        training=dict.fromkeys(shapes, row),
        inference=dict.fromkeys(shapes, row),
        streaming={"1,1,256": {name: row[name] for name in ("lrn", "nn.LSTM", "nn.GRU")}},
        packed={"128 sentences": Packed(timing(0.01), timing(0.04), 1_800, 7_680, 14.1)},
        threads={"32,128,300": {"1": pair, "2": pair}},
        long={"B=4, H=128": {"128": Length(2e-7, 2_050.0, 9), "1024": Length(2e-7, 2_050.0, 9)}},
        saved={"H=128": {"lrn": 512.0, "nn.LSTM": 1_024.0}},
        import_seconds=ImportSeconds(1.5, 0.1),
    )
