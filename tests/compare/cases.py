"""Runs and times of a comparison, made up."""

import json
import shutil

from lrn.report.results import Timing


def timed(units):
    """Times that were never measured."""
    return {unit: Timing(0.01, 0.01, 0.01, 7) for unit in units}


def finished(folder, metrics='{"parameters": 7, "test_f1": 80.5}', log="epoch,valid_f1\n1,70.5\n1,\n2,80\n"):
    """A run as far as a comparison reads it."""
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(metrics)
    (folder / "log.csv").write_text(log)
    return folder


class Copied:
    """A training that says nothing and comes to what another came to."""

    stderr = ()

    def __init__(self, run, folder):
        self.run, self.folder = run, folder

    def wait(self):
        shutil.copytree(self.run, self.folder)
        return 0


class Made:
    """A training that says nothing and comes to these figures."""

    stderr = ()

    def __init__(self, folder, **figures):
        self.folder, self.figures = folder, figures

    def wait(self):
        finished(self.folder, json.dumps({"parameters": 7, **self.figures}))
        (self.folder / "about.json").write_text('{"data": {"train": {"sentences": 5}}}')
        return 0


class Diverging:
    """A training whose loss is not finite any more."""

    stderr = ("lrn: the loss at epoch 1, step 2 is nan: training has diverged; try a smaller --lr (now 9)\n",)

    def wait(self):
        return 2
