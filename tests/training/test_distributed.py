"""Several processes, from the real console script: the same result, and nobody is left behind."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from runs import NO_DROPOUT, TINY, flags, leftovers, logged, lrn, refusal, same, state, trained

SCRIPT = Path(sys.executable).with_name("lrn")
LONG = flags(epochs=8, save_steps=5)

pytestmark = pytest.mark.slow


def start(*words, log, program=(SCRIPT,)):
    """In a process group of its own, so that what is left of it can be found."""
    command = [*map(str, program), "train", *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    with log.open("a") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)


def left_behind(process):
    """Processes of the group that still run, after they have had some time to go."""
    for _ in range(200):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    return True


def ended(process):
    try:
        code = process.wait(90)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun's workers are in groups of their own; it ends them when asked to
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(40)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    assert not left_behind(process)
    return code


def wait_for(run, steps, process):
    for _ in range(900):
        if (run / "last.ckpt").exists() and state(run)["progress"]["step"] >= steps:
            return
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError(f"{steps} steps take too long")


@pytest.fixture(scope="module")
def two(text, tmp_path_factory):
    """A run of two processes that was not disturbed, and what they said."""
    folder = tmp_path_factory.mktemp("two")
    command = ["lm", "--data", text, "--out", folder / "run", *TINY, *LONG, *NO_DROPOUT, "--devices", 2]
    process = start(*command, log=folder / "said")
    assert ended(process) == 0, (folder / "said").read_text()
    return folder / "run", (folder / "said").read_text()


def close(ours, theirs):
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=0, atol=1e-5)


def test_the_same_weights_as_one_process(two, text, tmp_path):
    trained("lm", "--data", text, "--out", tmp_path / "one", *TINY, *LONG, *NO_DROPOUT)
    for name in ("last", "best"):
        close(state(two[0], name)["model"], state(tmp_path / "one", name)["model"])
    for ours, theirs in zip(logged(two[0]), logged(tmp_path / "one"), strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert float(ours[name] or 0) == pytest.approx(float(theirs[name] or 0), abs=1e-5)


def test_only_one_speaks(two):
    run, said = two
    assert said.count(f"{run}: lrn, preset") == 1
    assert said.count("epoch   8: ") == 1
    assert "GLOBAL_RANK" not in said


def test_resumed_bit_for_bit(two, text, tmp_path):
    """Ctrl-C, which all processes get, then kill -9 of the first, which the other has to notice."""
    run, log = tmp_path / "run", tmp_path / "said"
    process = start("lm", "--data", text, "--out", run, *TINY, *LONG, *NO_DROPOUT, "--devices", 2, log=log)
    wait_for(run, 20, process)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == 130, log.read_text()
    assert log.read_text().count(f"to go on: lrn train --resume {run}\n") == 1
    refuse_one_process(run, tmp_path / "copy")

    process = start("--resume", run, log=log)
    wait_for(run, state(run)["progress"]["step"] + 10, process)
    process.kill()
    assert ended(process) == -9
    assert not state(run)["progress"]["finished"]

    assert ended(start("--resume", run, log=log)) == 0, log.read_text()
    for name in ("last", "best"):
        same(state(run, name), state(two[0], name), name)
    assert logged(run) == logged(two[0])
    assert not [*leftovers(run)]


def refuse_one_process(run, copy):
    """Each process carries a state of its own; one alone cannot go on with two."""
    shutil.copytree(run, copy)
    config = (copy / "config.json").read_text()
    (copy / "config.json").write_text(config.replace('"devices": 2', '"devices": 1'))
    done = lrn("train", "--resume", copy)
    assert done.code == 2
    assert done.err.splitlines()[-1] == "lrn: the saved state is that of 2 processes, not of 1"


def test_columns_that_cannot_be_shared(text, tmp_path):
    log = tmp_path / "said"
    words = ["lm", "--data", text, "--out", tmp_path / "run", *TINY, *flags(devices=2, batch_size=5)]
    assert ended(start(*words, log=log)) == 2
    said = log.read_text()
    assert said.count("batch_size 5 cannot be shared equally by 2 processes") == 1
    assert "Traceback" not in said


def test_torchrun(two, text, tmp_path):
    program = [SCRIPT.with_name("torchrun"), "--standalone", "--nproc_per_node", "2", "-m", "lrn"]
    words = ["lm", "--data", text, "--out", tmp_path / "run", *TINY, *LONG, *NO_DROPOUT, "--devices", 2]
    assert ended(start(*words, log=tmp_path / "said", program=program)) == 0, (tmp_path / "said").read_text()
    same(state(tmp_path / "run"), state(two[0]))


def free_port():
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        return there.getsockname()[1]


def on_two_machines(tmp_path, *words):
    """The same command on each, as two machines that share a disk would run it."""
    port = free_port()
    processes = []
    for rank in (0, 1):
        place = ["--nnodes", 2, "--node_rank", rank, "--nproc_per_node", 1]
        place += ["--master_addr", "127.0.0.1", "--master_port", port]
        program = [SCRIPT.with_name("torchrun"), *map(str, place), "-m", "lrn"]
        processes.append(start(*words, log=tmp_path / f"said{rank}", program=program))
    return processes


def test_two_machines(two, text, tmp_path):
    """Interrupted and resumed, bit for bit what two processes on one machine give; one alone speaks."""
    run = tmp_path / "run"
    words = ["lm", "--data", text, "--out", run, *TINY, *LONG, *NO_DROPOUT, "--nodes", 2]
    processes = on_two_machines(tmp_path, *words)
    wait_for(run, 20, processes[0])
    os.killpg(processes[0].pid, signal.SIGINT)
    for process in processes:
        ended(process)
    said = [(tmp_path / f"said{rank}").read_text() for rank in (0, 1)]
    assert 20 <= state(run)["progress"]["step"] < state(two[0])["progress"]["step"], said
    assert said[0].count(f"{run}: lrn, preset") == 1
    assert f"{run}: lrn, preset" not in said[1]

    for process in on_two_machines(tmp_path, "--resume", run):
        assert ended(process) == 0, [(tmp_path / f"said{rank}").read_text() for rank in (0, 1)]
    same(state(run), state(two[0]))
    assert logged(run) == logged(two[0])


def test_machines_need_torchrun(text, tmp_path):
    done = lrn("train", "lm", "--data", text, "--out", tmp_path / "run", *TINY, "--nodes", 2)
    said = "lrn: --nodes 2: start the command on each machine with torchrun"
    assert (done.code, refusal(done.err)) == (2, said)
