"""A run folder has one writer: a second one is refused in a line, and a dead one is not waited for."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from runs import TINY, Fault, flags, lrn, state

from lrn import cli
from lrn.training.lock import NAME, Lock

HOLD = """
import sys, time
from pathlib import Path
from lrn.training.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_one_is_refused_by_name(holder, tmp_path):
    said = f"is being written by process {holder.pid} on {socket.gethostname()}; wait for it, or stop it"
    with pytest.raises(ValueError, match=said):
        Lock(tmp_path)
    with pytest.raises(ValueError, match=said):
        Lock(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_holder(number, holder, tmp_path):
    holder.send_signal(number)
    holder.wait()
    Lock(tmp_path)


def test_what_is_written_down_does_not_hold(tmp_path):
    """A lock file that was copied, or whose holder died: nobody has it."""
    (tmp_path / NAME).write_text(json.dumps({"pid": 1, "host": socket.gethostname()}))
    lock = Lock(tmp_path)
    assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    lock.release()
    lock.release()
    Lock(tmp_path).release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "\0\0"])
def test_a_damaged_lock_file_does_not_matter(text, tmp_path):
    (tmp_path / NAME).write_text(text)
    Lock(tmp_path).release()


@pytest.mark.parametrize(
    ("holder", "held"),
    [
        ({}, False),
        ({"pid": 2**22 + 1, "host": socket.gethostname()}, False),
        ({"pid": os.getppid(), "host": socket.gethostname()}, True),
        ({"pid": 1, "host": "elsewhere"}, True),
        ({"pid": "none", "host": socket.gethostname()}, False),
    ],
)
def test_without_locks_of_the_system_the_name_decides(holder, held, tmp_path, monkeypatch):
    monkeypatch.setattr("lrn.training.lock.fcntl", None)
    if holder:
        (tmp_path / NAME).write_text(json.dumps(holder))
    if not held:
        Lock(tmp_path).release()
        return
    with pytest.raises(ValueError, match=f"by process {holder['pid']} on {holder['host']}"):
        Lock(tmp_path)


# Runs and comparisons -----------------------------------------------------------------------------


@pytest.fixture
def training(text, tmp_path):
    """A training that goes on for long enough."""
    run = tmp_path / "run"
    words = ["lm", "--data", text, "--out", run, *TINY, *flags(epochs=2000, save_steps=1)]
    process = subprocess.Popen(
        [sys.executable, "-m", "lrn", "train", *map(str, words)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    for _ in range(600):
        if (run / "last.ckpt").exists() and state(run)["progress"]["step"] > 2:
            break
        assert process.poll() is None
        time.sleep(0.1)
    yield process, run
    process.kill()
    process.wait()


def test_a_run_that_is_training_is_left_alone(training, text, exported_weights, capsys):
    process, run = training
    again = ["train", "lm", "--data", str(text), "--out", str(run), "--overwrite", *TINY]
    for words in (
        ["train", "--resume", str(run)],
        again,
        ["import", str(run), str(exported_weights), "--overwrite"],
    ):
        assert cli.main(words) == 2
        said = capsys.readouterr().err
        assert said == (
            f"lrn: {run} is being written by process {process.pid} on {socket.gethostname()}; "
            "wait for it, or stop it\n"
        )
    assert process.poll() is None
    assert cli.main(["evaluate", str(run)]) in (0, 2), "to read it is allowed"
    process.kill()
    process.wait()
    before = state(run)["progress"]["step"]
    done = lrn("train", "--resume", run, fault=Fault("int", 3))
    assert done.code == 130, done.err
    assert state(run)["progress"]["step"] > before


@pytest.fixture
def exported_weights(finished, tmp_path):
    file = tmp_path / "weights.safetensors"
    assert cli.main(["export", str(finished), str(file)]) == 0
    return file


def test_a_comparison_has_one_writer(tmp_path, capsys):
    out = tmp_path / "comparison"
    out.mkdir()
    lock = Lock(out)
    assert cli.main(["compare", "ner", "--out", str(out)]) == 2
    assert f"{out} is being written by process {os.getpid()}" in capsys.readouterr().err
    lock.release()


def test_a_copy_of_a_run_is_free(training, tmp_path):
    _, run = training
    half_written = shutil.ignore_patterns(".*.part")  # which may be gone before it is copied
    copy = shutil.copytree(run, tmp_path / "copy", ignore=half_written)
    Lock(copy).release()
