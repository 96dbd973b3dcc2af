"""Saved states whose header and checksum are right but whose content is not: one clear line each."""

import shutil

import pytest
import torch
from runs import TINY, Fault, lrn, refusal

from lrn import cli
from lrn.training import checkpoint

WEIGHT = "embedding.weight"


@pytest.fixture(scope="module")
def stopped(text, tmp_path_factory):
    """A run that stands in its second epoch, with averaged weights. Not to be changed: copy it."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    command = ["train", "lm", "--data", text, "--out", run, *TINY, "--ema", 0.9]
    assert lrn(*command, fault=Fault("int", 25)).code == 130
    return run


def model(change):
    return lambda state: state | {"model": change(dict(state["model"]))}


def weight(change):
    return model(lambda weights: weights | {WEIGHT: change(weights[WEIGHT].clone())})


def progress(**values):
    return lambda state: state | {"progress": state["progress"] | values}


def gathered(change):
    """What the optimizer has gathered for its first weight."""
    return lambda state: (
        state
        | {
            "optimizer": state["optimizer"]
            | {"state": state["optimizer"]["state"] | {0: change(dict(state["optimizer"]["state"][0]))}}
        }
    )


def extra(**values):
    return lambda state: state | {"extra": [state["extra"][0] | values]}


def without(name):
    return lambda state: {key: value for key, value in state.items() if key != name}


def put(name, value):
    return lambda state: state | {name: value}


def spoilt(value):
    def change(tensor):
        tensor.view(-1)[-1] = value
        return tensor

    return change


WEIGHTS = {
    "no model": without("model"),
    "a model that is a list": put("model", [1, 2]),
    "a model that is a tensor": put("model", torch.ones(3)),
    "an empty model": put("model", {}),
    "a weight that is a number": weight(lambda w: 1.0),
    "a weight that is a text": weight(lambda w: "weights"),
    "a weight that is None": weight(lambda w: None),
    "a weight named by a number": model(lambda weights: weights | {3: torch.ones(2)}),
    "a sparse weight": weight(lambda w: w.to_sparse()),
    "a weight without numbers": weight(lambda w: w.to("meta")),
    "a quantized weight": weight(lambda w: torch.quantize_per_tensor(w, 0.1, 0, torch.qint8)),
    "a complex weight": weight(lambda w: w.to(torch.complex64)),
    "a whole-number weight": weight(lambda w: w.to(torch.int64)),
    "a boolean weight": weight(lambda w: w > 0),
    "a NaN": weight(spoilt(torch.nan)),
    "an infinity": weight(spoilt(torch.inf)),
    "a weight of another shape": weight(lambda w: w[:-1]),
    "a scalar weight": weight(lambda w: w.sum()),
    "a weight too few": model(lambda weights: {k: v for k, v in weights.items() if k != WEIGHT}),
    "a weight too many": model(lambda weights: weights | {"more": torch.ones(2)}),
}

LAST = WEIGHTS | {
    "no optimizer": without("optimizer"),
    "no progress": without("progress"),
    "no average": without("average"),
    "no extra state": without("extra"),
    "no precision": without("precision"),
    "a progress that is a list": put("progress", [1]),
    "a progress without its step": lambda s: s | {"progress": without("step")(s["progress"])},
    "a progress with more": progress(speed=3),
    "a step that is a text": progress(step="7"),
    "a step that is a float": progress(step=7.0),
    "a negative step": progress(step=-1),
    "an epoch that is None": progress(epoch=None),
    "an epoch that is true": progress(epoch=True),
    "an epoch beyond the last": progress(epoch=99),
    "an index beyond the epoch": progress(index=10_000),
    "seconds that are NaN": progress(seconds=float("nan")),
    "losses that are texts": progress(losses=["low"]),
    "losses that are a number": progress(losses=3.0),
    "a best that is NaN": progress(best=float("nan")),
    "an unfinished end": progress(epoch=3, index=0),
    "finished as a number": progress(finished=1),
    "an optimizer that is a list": put("optimizer", []),
    "an optimizer without state": put("optimizer", {"param_groups": []}),
    "an optimizer whose state is a list": put("optimizer", {"state": [1], "param_groups": []}),
    "an optimizer by names": put("optimizer", {"state": {"first": {}}, "param_groups": []}),
    "an optimizer of more weights": lambda s: s | {"optimizer": {"state": {99: s["optimizer"]["state"][0]}}},
    "an optimizer that gathered nothing": gathered(lambda entry: {}),
    "an optimizer that gathered other things": gathered(lambda entry: {"momentum": entry["exp_avg"]}),
    "an optimizer that gathered numbers": gathered(lambda entry: entry | {"exp_avg": 3.0}),
    "an optimizer with a NaN": gathered(lambda entry: entry | {"exp_avg": entry["exp_avg"] * torch.nan}),
    "an optimizer of another shape": gathered(lambda entry: entry | {"exp_avg": entry["exp_avg"][:-1]}),
    "an average that is a dict": put("average", {}),
    "an average of numbers": put("average", [1.0, 2.0]),
    "a shorter average": lambda s: s | {"average": s["average"][:-1]},
    "an average of another shape": lambda s: s | {"average": [a.flatten() for a in s["average"]]},
    "an average with a NaN": lambda s: s | {"average": [a * torch.nan for a in s["average"]]},
    "a sparse average": lambda s: s | {"average": [a.to_sparse() for a in s["average"]]},
    "extra states of two processes": lambda s: s | {"extra": s["extra"] * 2},
    "an extra state that is a number": put("extra", [3]),
    "losses of validation that are texts": extra(losses=["low"]),
    "a first loss that is a text": extra(first_loss="low"),
    "averaging that is a number": extra(averaging=3),
    "states that are a number": extra(states=3),
    "states of too many groups": extra(states=[None] * 7),
    "states of too few layers": extra(states=[[torch.ones(1, 4, 12)]]),
    "states that are texts": extra(states=[["a", "b"]]),
    "states of another width": extra(states=[[torch.ones(1, 4, 5), torch.ones(1, 4, 8)]]),
    "a precision that is a number": put("precision", 16),
    "a list of things": lambda state: [state],
}

BEST = WEIGHTS | {
    "no figures": without("figures"),
    "figures that are a list": put("figures", [1.0]),
    "figures that are texts": put("figures", {"loss": "low"}),
    "no epoch": without("epoch"),
    "an epoch that is a text": put("epoch", "3"),
}


def damaged(run, tmp_path, name, change):
    """A copy of a run with a saved state that is changed inside, header and checksum as they should be."""
    copy = shutil.copytree(run, tmp_path / "copy")
    path = copy / name
    checkpoint.save(path, "lm", change(checkpoint.load(path, "lm")))
    return copy


def refused(words, copy, capsys):
    before = {path: path.read_bytes() for path in copy.iterdir() if path.name != ".lock"}
    assert cli.main(list(map(str, words))) == 2
    said = capsys.readouterr()
    assert refusal(said.err).startswith("lrn: "), said.err
    assert said.out == ""
    assert {path: path.read_bytes() for path in copy.iterdir() if path.name != ".lock"} == before


@pytest.mark.parametrize("what", LAST)
def test_a_training_does_not_go_on_from_it(what, stopped, tmp_path, capsys):
    copy = damaged(stopped, tmp_path, "last.ckpt", LAST[what])
    refused(["train", "--resume", copy], copy, capsys)


@pytest.mark.parametrize("what", BEST)
def test_nothing_is_evaluated_with_it(what, stopped, tmp_path, capsys):
    copy = damaged(stopped, tmp_path, "best.ckpt", BEST[what])
    refused(["evaluate", copy], copy, capsys)


@pytest.mark.parametrize("what", ["a NaN", "a shorter average", "an average with a NaN", "no average"])
def test_nor_the_last_weights(what, stopped, tmp_path, capsys):
    copy = damaged(stopped, tmp_path, "last.ckpt", LAST[what])
    refused(["evaluate", copy, "--last"], copy, capsys)


def test_as_it_was_it_is_fine(stopped, tmp_path, capsys):
    """Or the tests above show nothing."""
    copy = damaged(stopped, tmp_path, "last.ckpt", lambda state: state)
    assert cli.main(["evaluate", str(copy), "--last"]) == 0
    assert cli.main(["train", "--resume", str(copy)]) == 0
