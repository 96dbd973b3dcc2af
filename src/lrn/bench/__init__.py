"""``lrn bench``: speed against peers, measured in one process, one after the other, many times."""

from lrn.bench.run import Settings, run

__all__ = ["Settings", "run"]
