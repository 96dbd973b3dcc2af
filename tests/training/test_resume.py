"""A training that is interrupted, however and wherever, goes on to the same result, bit for bit."""

import json
import shutil

import pytest
from runs import TINY, Fault, flags, leftovers, logged, lrn, same, state, trained, without_times, write_text

LEARNING = {
    "lrn-adam-dropout": flags(unit="lrn", drop_words=0.1),
    "lstm-adam-weight-drop-ema": flags(unit="lstm", drop_weights=0.3, ema=0.9),
    "lrn-weight-drop-experts": flags(
        unit="lrn", drop_weights=0.3, experts=2, drop_latent=0.2, small_batch=2, ar=2, tar=1
    ),
    "lstm-averaged-sgd": flags(
        unit="lstm", optimizer="sgd", schedule="constant", lr=15, nonmono=1, epochs=5, drop_weights=0.1
    ),
    "lrn-bf16": flags(precision="bf16"),
    "lrn-adadelta-plateau": flags(
        optimizer="adadelta", schedule="plateau", lr=40, patience=1, drop_words=0.1, epochs=4
    ),
}


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory):
    """By the name of the learning: a run from start to end without interruption."""
    runs = {}

    def run(name):
        if name not in runs:
            runs[name] = tmp_path_factory.mktemp("undisturbed") / name
            trained("lm", "--data", text, "--out", runs[name], *TINY, *LEARNING[name])
        return runs[name]

    return run


def agree(run, reference):
    """All that two runs leave behind, but for times."""
    for name in ("last", "best"):
        same(state(run, name), state(reference, name), name)
    assert logged(run) == logged(reference)
    ours, theirs = (json.loads((folder / "metrics.json").read_text()) for folder in (run, reference))
    assert without_times(ours) == without_times(theirs)
    assert not [*leftovers(run)]


CODES = {"kill": -9, "full": 2, "int": 130, "term": 130, "twice": 130}


def interrupted(run, text, learning, faults):
    """Train into ``run`` with one fault after the other, then to the end; returns what was said at each."""
    said = []
    command = ["train", "lm", "--data", text, "--out", run, *TINY, *learning]
    for fault in faults:
        done = lrn(*command, fault=fault)
        assert done.code == CODES[fault.kind], (fault, done)
        assert "Traceback" not in done.err
        said.append(done.err)
        command = ["train", "--resume", run]
    trained("--resume", run)
    return said


@pytest.mark.parametrize("learning", LEARNING)
def test_killed_with_a_file_half_written(learning, undisturbed, text, tmp_path):
    """Three times: before an epoch is done, in a later one, and near the end."""
    faults = [Fault("kill", number) for number in (7, 9, 6)]
    interrupted(tmp_path / "run", text, LEARNING[learning], faults)
    agree(tmp_path / "run", undisturbed(learning))


def test_averaging_was_under_way(undisturbed):
    """Or the tests with averaged SGD show nothing."""
    saved = state(undisturbed("lstm-averaged-sgd"))
    assert saved["extra"][0]["averaging"]
    assert all("ax" in entry for entry in saved["optimizer"]["state"].values())
    assert saved["progress"]["best_epoch"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("place", range(5, 28, 2))
def test_killed_at_any_file(place, undisturbed, text, tmp_path):
    interrupted(tmp_path / "run", text, LEARNING["lrn-adam-dropout"], [Fault("kill", place)])
    agree(tmp_path / "run", undisturbed("lrn-adam-dropout"))


@pytest.mark.parametrize("kind", ["int", "term", "twice"])
def test_stopped_by_a_signal(kind, undisturbed, text, tmp_path):
    """In the middle of an epoch, in its last step (6 + 9), in the first of the next."""
    run = tmp_path / "run"
    faults = [Fault(kind, number) for number in (6, 9, 1)]
    for said in interrupted(run, text, LEARNING["lrn-adam-dropout"], faults):
        assert f"lrn train --resume {run}" in said
    agree(run, undisturbed("lrn-adam-dropout"))


def test_full_disk(undisturbed, text, tmp_path):
    run = tmp_path / "run"
    for said in interrupted(run, text, LEARNING["lrn-adam-dropout"], [Fault("full", n) for n in (6, 9, 7)]):
        assert said.splitlines()[-1].startswith("lrn: cannot write")
        assert "No space left on device" in said
        assert not [*leftovers(run)]
    agree(run, undisturbed("lrn-adam-dropout"))


@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_killed_before_it_is_a_run(place, undisturbed, text, tmp_path):
    """While one of its first files is written: there is no run, and the same command makes one."""
    run = tmp_path / "run"
    command = ["lm", "--data", text, "--out", run, *TINY, *LEARNING["lrn-adam-dropout"]]
    assert lrn("train", *command, fault=Fault("kill", place)).code == -9
    done = lrn("train", "--resume", run)
    assert (done.code, done.err) == (2, f"lrn: there is no run folder {run}\n")
    if place == 4:
        trained(*command)
        agree(run, undisturbed("lrn-adam-dropout"))
        assert [path.name for path in tmp_path.iterdir()] == ["run"], "what the killed one left is gone"


def test_files_that_cannot_grow(undisturbed, text, tmp_path):
    """The system's own limit instead of a made-up error: the state does not fit, its predecessor stays."""
    run = tmp_path / "run"
    command = ["train", "lm", "--data", text, "--out", run, *TINY, *LEARNING["lrn-adam-dropout"]]
    done = lrn(*command, fault=Fault("int", 6))
    assert done.code == 130
    before = (run / "last.ckpt").read_bytes()
    done = lrn("train", "--resume", run, limit=10_000)
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"lrn: cannot write {run}/last.ckpt: File too large"
    assert (run / "last.ckpt").read_bytes() == before
    assert not [*leftovers(run)]
    trained("--resume", run)
    agree(run, undisturbed("lrn-adam-dropout"))


def test_the_log_is_that_of_the_steps(finished):
    rows = logged(finished)
    assert [int(row["step"]) for row in rows if row["train_loss"]] == [20, 40]
    assert [int(row["epoch"]) for row in rows if row["valid_loss"]] == [1, 2, 3]
    assert [int(row["step"]) for row in rows] == sorted(int(row["step"]) for row in rows)


def contents(folder):
    files = [path for path in folder.iterdir() if path.name != ".lock"]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_finished_run_stays_as_it_is(finished):
    before = contents(finished)
    done = trained("--resume", finished)
    assert done.err.splitlines()[1:] == [f"{finished} is finished"]
    assert contents(finished) == before


def test_a_run_can_be_moved(undisturbed, text, tmp_path):
    """Resumed from another place, in another working directory, with its data named relatively."""
    learning = LEARNING["lrn-adam-dropout"]
    command = ["train", "lm", "--data", text.name, "--out", tmp_path / "run", *TINY, *learning]
    assert lrn(*command, fault=Fault("int", 6), cwd=text.parent).code == 130
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(tmp_path / "run", moved)
    trained("--resume", "moved", cwd=moved.parent)
    agree(moved, undisturbed("lrn-adam-dropout"))


@pytest.fixture(scope="module")
def stopped(text, tmp_path_factory):
    """A run that can be resumed. Not to be changed: copy it."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    done = lrn("train", "lm", "--data", text, "--out", run, *TINY, fault=Fault("int", 25))
    assert done.code == 130
    return run


def refused(run, *words):
    before = contents(run)
    done = lrn("train", "--resume", run, *words)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert contents(run) == before
    return done.err


def test_with_other_data(stopped, text, tmp_path):
    other = write_text(tmp_path / "other", seed=1)
    assert "the data is not what" in refused(stopped, "--data", other)


def test_data_that_has_moved(stopped, finished, text, tmp_path):
    run, moved = tmp_path / "run", tmp_path / "text"
    shutil.copytree(stopped, run)
    shutil.copytree(text, moved)
    trained("--resume", run, "--data", moved)
    agree(run, finished)


def test_data_that_is_gone(text, tmp_path):
    data, run = tmp_path / "text", tmp_path / "run"
    shutil.copytree(text, data)
    assert lrn("train", "lm", "--data", data, "--out", run, *TINY, fault=Fault("int", 2)).code == 130
    shutil.rmtree(data)
    assert str(data) in refused(run)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / "last.ckpt").write_bytes((run / "last.ckpt").read_bytes()[:-1]), "damaged"),
        (
            lambda run: shutil.copy(run / "best.ckpt", run / "last.ckpt"),
            "last.ckpt is damaged: it has no optimizer",
        ),
        (lambda run: (run / "log.csv").write_text("a,b\n1,2\n"), "log.csv is damaged"),
        (lambda run: (run / "about.json").unlink(), "about.json is missing"),
        (lambda run: (run / "about.json").write_text("[]"), "about.json is damaged"),
        (
            lambda run: (run / "config.json").write_text('{"task": "lm", "format": 2, "speed": 3}'),
            "does not know: speed",
        ),
        (
            lambda run: (run / "config.json").write_text('{"task": "lm", "format": 2, "epochs": "3"}'),
            "epochs",
        ),
        (lambda run: (run / "config.json").write_text('{"task": "lmm", "format": 2}'), "did you mean 'lm'?"),
        (lambda run: (run / "config.json").write_text("{"), "config.json is damaged"),
        (lambda run: (run / "config.json").unlink(), "is not a run folder"),
    ],
)
def test_damage(damage, says, stopped, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    damage(run)
    assert says in refused(run)


def test_metrics_are_made_up_for(finished, tmp_path):
    """Killed after the last step, before the results were written."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "metrics.json").unlink()
    trained("--resume", run)
    agree(run, finished)


def test_further_than_it_was_told(text, tmp_path):
    """With a rate that does not depend on the last epoch: the same as if it had been told at once."""
    learning = flags(schedule="constant", ema=0.9)
    run, reference = tmp_path / "run", tmp_path / "reference"
    trained("lm", "--data", text, "--out", reference, *TINY, *learning, "--epochs", 5)
    trained("lm", "--data", text, "--out", run, *TINY, *learning, "--epochs", 2)
    trained("--resume", run, "--epochs", 5)
    agree(run, reference)
    assert json.loads((run / "config.json").read_text())["epochs"] == 5
    assert trained("--resume", run).err.endswith(f"{run} is finished\n")
    assert "can only go further" in refused(run, "--epochs", 4)


def test_finetuning(finished, text, tmp_path):
    """Its best weights are those it starts from, until they are not: killed right after they changed."""
    learning = flags(stage="finetune", start=finished, lr=0.5, save_steps=1000)
    reference = tmp_path / "reference"
    trained("lm", "--data", text, "--out", reference, *TINY, *learning)
    assert state(reference)["progress"]["best_epoch"] == 3
    # written: about, vocabulary, best, last, config; after the first epoch: best, log, last
    interrupted(tmp_path / "run", text, learning, [Fault("kill", 7)])
    agree(tmp_path / "run", reference)
