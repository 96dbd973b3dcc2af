"""Which device, which precision: what is not there is refused in a line."""

import ctypes
import os

import pytest
import torch
from runs import refusal

from lrn import cli
from lrn.training import device
from lrn.training.config import TrainConfig


class FakeAccelerator:
    """As torch.accelerator would be on a machine with two GPUs."""

    is_available = staticmethod(lambda: True)
    current_accelerator = staticmethod(lambda: torch.device("cuda"))
    device_count = staticmethod(lambda: 2)


@pytest.fixture
def gpus(monkeypatch):
    monkeypatch.setattr(torch, "accelerator", FakeAccelerator)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


def test_the_processor_where_there_is_nothing_else(no_gpu):
    assert device.choose("auto") == device.choose("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"--accelerator cuda: there is none here; this machine has cpu$"):
        device.choose("cuda")


def test_a_gpu_where_there_is_one(gpus):
    assert device.choose("auto") == device.choose("cuda") == torch.device("cuda")
    assert device.choose("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"--accelerator mps: there is none here; .* has cpu and cuda"):
        device.choose("mps")


def test_more_devices_than_there_are(gpus):
    device.check(TrainConfig(devices=2))
    with pytest.raises(ValueError, match="--devices 3: this machine has 2 of cuda"):
        device.check(TrainConfig(devices=3))


def test_more_processes_than_cores(no_gpu):
    cores = os.cpu_count()
    device.check(TrainConfig(devices=cores))
    with pytest.raises(ValueError, match=f"--devices {cores + 1}: this machine has {cores} cores"):
        device.check(TrainConfig(devices=cores + 1))


def test_half_precision_needs_a_gpu(no_gpu):
    with pytest.raises(ValueError, match="--precision 16 needs a GPU; on the processor use bf16 or 32"):
        device.check(TrainConfig(precision="16"))


def test_several_machines_need_torchrun(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ValueError, match="--nodes 2: start the command on each machine with torchrun"):
        device.check(TrainConfig(nodes=2))


@pytest.mark.parametrize(("precision", "kind"), [("32", torch.float32), ("bf16", torch.bfloat16)])
def test_autocast(precision, kind):
    x = torch.ones(2, 2)
    with device.autocast(x.device, precision):
        assert (x @ x).dtype == kind


@pytest.mark.parametrize("words", [["--accelerator", "cuda"], ["--precision", "16"]])
def test_refused_before_any_work(words, no_gpu, tmp_path, capsys):
    run = tmp_path / "run"
    assert cli.main(["train", "lm", "--out", str(run), *words]) == 2
    assert refusal(capsys.readouterr().err).startswith("lrn: --")
    assert not run.exists()


# The allocator -----------------------------------------------------------------------------------------


def test_the_c_library_is_told_to_keep_memory(monkeypatch):
    told = {}

    class Library:
        def mallopt(self, what, value):
            told[what] = value
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert device.keep_memory()
    assert told == {-1: 2**31 - 1, -3: 2**25}


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_c_library_that_cannot_be_told(error, monkeypatch):
    def none_here(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", none_here)
    assert not device.keep_memory()
