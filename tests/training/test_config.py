"""The settings that all tasks share: checked, explained when wrong, none too large to be meant."""

import os
from dataclasses import asdict, fields

import pytest
from helpers import says

from lrn import names, tasks
from lrn.tasks.lm.config import LMConfig
from lrn.training.config import MOST, EvaluateConfig, PredictConfig, TrainConfig, from_dict


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("unit", "lrm", "lrn"),
        ("unit", "LSTM", "lstm"),
        ("precision", "bf61", "bf16"),
        ("accelerator", "cdua", "cuda"),
        ("optimizer", "adamw", "adam"),
        ("schedule", "constatn", "constant"),
        ("stage", "fintune", "finetune"),
    ],
)
def test_misspelt(name, value, nearest):
    with pytest.raises(
        ValueError, match=rf"unknown {name} '{value}'; allowed: .*; did you mean '{nearest}'\?"
    ):
        LMConfig(**{name: value})


def test_nothing_is_near():
    with pytest.raises(ValueError, match="unknown unit 'transformer'; allowed: lrn, "):
        TrainConfig(unit="transformer")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epochs", value) for value in (0, -1, float("nan"))),
        *(
            (name, 0)
            for name in (
                "devices",
                "nodes",
                "save_steps",
                "accumulate",
                "hidden",
                "layers",
                "batch_size",
                "bptt",
            )
        ),
        *(
            (name, -1)
            for name in ("seed", "clip", "threads", "max_steps", "delta", "weight_decay", "ar", "tar")
        ),
        *(("lr", value) for value in (0.0, -1.0, float("nan"))),
        *(("ema", value) for value in (-0.1, 1.0, float("nan"))),
        *(("drop_weights", value) for value in (-0.1, 1.0, float("nan"))),
        *(("fraction", value) for value in (0.0, 1.1, float("nan"))),
        ("small_batch", 3),
    ],
)
def test_bad_numbers(name, value):
    with pytest.raises(ValueError, match=f"^{name} must .* got {value}"):
        LMConfig(**{name: value})


def test_half_precision_is_for_gpus():
    assert TrainConfig(precision="16").accelerator == "auto"
    assert TrainConfig(precision="bf16", accelerator="cpu").precision == "bf16"
    with pytest.raises(ValueError, match="precision 16 is for GPUs; with accelerator cpu"):
        TrainConfig(precision="16", accelerator="cpu")


# Too large to be meant ----------------------------------------------------------------------------

EVERY = {
    f"{name}-{kind.__name__}": kind
    for name in names.TASKS
    for task in [tasks.settings(name)]
    for kind in (task.train, task.evaluate, task.predict, *task.commands.values())
}
NEEDED = {"lm-PredictConfig": {"prompt": "a"}, "doc-MemoryConfig": {"text": "a"}}  # by some settings


@pytest.mark.parametrize("kind", EVERY)
def test_every_whole_number_has_a_bound(kind):
    """So that a new setting is not forgotten."""
    sample = EVERY[kind](**NEEDED.get(kind, {}))
    whole = {name for name, value in asdict(sample).items() if type(value) is int}
    assert whole <= MOST.keys(), "MOST in training/config.py has no bound for these"


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, field.name) for kind in EVERY for field in fields(EVERY[kind]) if field.name in MOST],
)
def test_too_large(kind, name):
    for value in (MOST[name] + 1, 2**80, 10**300):
        with pytest.raises(ValueError, match=f"^{name} must be at most {MOST[name]:,}, got {value:,}$"):
            EVERY[kind](**NEEDED.get(kind, {}), **{name: value})


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, field.name) for kind in EVERY for field in fields(EVERY[kind]) if type(field.default) is float],
)
def test_not_finite(kind, name):
    for value in (float("nan"), float("inf"), -float("inf"), 10**400):
        with pytest.raises(ValueError, match=f"^{name} must be a finite number, got "):
            EVERY[kind](**NEEDED.get(kind, {}), **{name: value})


@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        ("lm", "hidden", 10**9),
        ("lm", "layers", 10**9),
        ("lm", "seed", 2**80),
        ("lm", "threads", 10**6),
        ("lm", "lr", 10**400),
        ("ner", "sentences", 10**12),
        ("doc", "documents", 10**12),
        ("doc", "l2", float("inf")),
    ],
)
def test_too_large_in_a_run_folder(task, name, value):
    """One line that says where it stands."""
    with pytest.raises(ValueError, match=f"^config.json: {name} must be .*, got") as error:
        from_dict(tasks.settings(task).train, {name: value})
    assert "\n" not in str(error.value)


def test_large_but_meant():
    """What is large, but runs on large machines."""
    LMConfig(
        hidden=16_384, layers=48, batch_size=65_536, bptt=4_096, seed=2**63 - 1, epochs=10**6, nodes=4_096
    )


# Threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EvaluateConfig, PredictConfig])
def test_threads_of_a_use(kind, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert kind(threads=4).threads == 4
    with pytest.raises(ValueError, match=says("threads must be from 0 to 4", "got 5")):
        kind(threads=5)


def test_a_run_may_come_from_a_larger_machine(monkeypatch):
    """Its settings can be read here; whoever goes on with it is told (see the command line)."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert from_dict(LMConfig, {"threads": 64}).threads == 64


@pytest.mark.parametrize("kind", [EvaluateConfig, PredictConfig])
def test_accelerators_of_a_use(kind):
    assert kind(accelerator="mps").accelerator == "mps"
    with pytest.raises(ValueError, match="unknown accelerator 'gpu'; allowed: auto, cpu, cuda, mps"):
        kind(accelerator="gpu")


@pytest.mark.parametrize("kind", EVERY)
def test_every_use_has_threads_and_an_accelerator(kind):
    assert {"threads", "accelerator"} <= {field.name for field in fields(EVERY[kind])}


@pytest.mark.parametrize("task", names.TASKS)
def test_every_evaluation_takes_the_last_weights(task):
    assert tasks.settings(task).evaluate(last=True).last
