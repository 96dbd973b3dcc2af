"""What the commands do, whatever the task: limits of training, divergence, export and import."""

import json
import re
import shutil
import struct

import pytest
import torch
from runs import TINY, Fault, flags, logged, lrn, refusal, state, trained
from safetensors.torch import load_file, save_file

from lrn import cli
from lrn.training.loop import Loop


@pytest.fixture
def command(text, tmp_path):
    return ["train", "lm", "--data", str(text), "--out", str(tmp_path / "run"), *TINY]


# Training ---------------------------------------------------------------------------------------


def test_it_learns(finished):
    losses = [float(row["valid_loss"]) for row in logged(finished) if row["valid_loss"]]
    assert losses[-1] < losses[0] < 3.5
    metrics = json.loads((finished / "metrics.json").read_text())
    assert metrics["steps"] == state(finished)["progress"]["step"]
    assert metrics["best_epoch"] == 3
    assert metrics["test_perplexity"] < 30


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_precision(precision, command, tmp_path):
    done = lrn(*command, *flags(precision=precision, epochs=4))
    assert done.code == 0, done.err
    losses = [float(row["train_loss"]) for row in logged(tmp_path / "run") if row["train_loss"]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.1
    weights = state(tmp_path / "run")["model"].values()
    assert {weight.dtype for weight in weights} == {torch.float32}


def test_bf16_is_not_float32(text, finished, tmp_path):
    trained("lm", "--data", text, "--out", tmp_path / "run", *TINY, "--precision", "bf16")
    assert state(tmp_path / "run")["progress"]["best"] != state(finished)["progress"]["best"]


@pytest.mark.parametrize("steps", [1, 15, 20])
def test_max_steps(steps, command, tmp_path):
    done = lrn(*command, "--max_steps", steps)
    assert done.code == 0, done.err
    progress = state(tmp_path / "run")["progress"]
    assert (progress["step"], progress["finished"]) == (steps, True)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["steps"] == steps
    cut = [line for line in done.err.splitlines() if "cut short after" in line]
    assert len(cut) == bool(progress["index"])
    if cut:
        begun = int(cut[0].split()[1].rstrip(":"))
        assert begun - 1 < metrics["epochs"] < begun == metrics["best_epoch"] == progress["epoch"] + 1
        assert re.search(rf"training, cut short after {progress['index']} of 1[56] steps\)$", cut[0])
    else:
        assert metrics["epochs"] == progress["epoch"]
    assert "is finished" in trained("--resume", tmp_path / "run").err


@pytest.mark.parametrize(("every", "saved"), [(1, 10), (4, 8), (7, 7), (100, 0)])
def test_save_steps(every, saved, command, tmp_path):
    """Killed in step 11: so much of it is kept."""
    assert lrn(*command, "--save_steps", every, fault=Fault("die", 11)).code == -9
    assert state(tmp_path / "run")["progress"]["step"] == saved


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(threads, command, monkeypatch):
    seen = []
    take = Loop.take

    def spy(self, *args):
        seen.append(torch.get_num_threads())
        return take(self, *args)

    monkeypatch.setattr(Loop, "take", spy)
    before = torch.get_num_threads()
    try:
        assert cli.main([*command, *flags(threads=threads, max_steps=2)]) == 0
    finally:
        torch.set_num_threads(before)
    assert seen == [threads] * 2


def test_divergence(command):
    done = lrn(*command, *flags(optimizer="sgd", lr=1e38, clip=0))
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("lrn: the loss at epoch 1, step ")
    assert "diverged; try a smaller --lr (now 1e+38)" in done.err
    assert "Traceback" not in done.err


def test_divergence_in_the_last_step(command):
    """No loss shows it any more, but validation does."""
    done = lrn(*command, *flags(optimizer="sgd", lr=1e38, clip=0, bptt=300, epochs=1))
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("lrn: the validation loss after epoch 1 is ")


def test_an_existing_run(command, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    for words in ([], ["--overwrite"]):
        done = lrn(*command, *words)
        assert done.code == 2
        assert done.err.startswith(f"lrn: {tmp_path / 'run'} ")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_a_full_disk_from_the_start(command, tmp_path):
    """The first three files that it writes are those of the run folder."""
    for number in (1, 2, 3):
        done = lrn(*command, fault=Fault("full", number))
        assert done.code == 2
        said = refusal(done.err)
        assert said.startswith(f"lrn: cannot make the run folder {tmp_path / 'run'} (cannot write ")
        assert said.endswith("No space left on device); choose another: --out")
    assert lrn(*command, "--max_steps", 1).code == 0


@pytest.mark.parametrize(
    "words",
    [["evaluate"], ["predict", "--prompt", "w1"], ["train", "--resume"], ["export", "file.safetensors"]],
)
@pytest.mark.parametrize("name", ["config.json", "about.json", "vocabulary.json", "best.ckpt", "last.ckpt"])
def test_a_run_that_lacks_a_file(words, name, finished, tmp_path, monkeypatch, capsys):
    """Either the command does without, or one line says what is missing where."""
    monkeypatch.chdir(tmp_path)
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).unlink()
    place = 2 if words[0] == "train" else 1
    code = cli.main([*words[:place], str(run), *words[place:]])
    said = capsys.readouterr()
    needed = {
        "evaluate": ("config.json", "vocabulary.json", "best.ckpt"),
        "predict": ("config.json", "vocabulary.json", "best.ckpt"),
        "export": ("config.json", "vocabulary.json", "best.ckpt"),
        "train": ("config.json", "last.ckpt"),
    }[words[0]]
    assert code == (2 if name in needed else 0), said.err
    if code:
        assert refusal(said.err).startswith(f"lrn: {run} ")
        assert name in refusal(said.err)


@pytest.mark.parametrize("name", ["best.ckpt", "last.ckpt"])
def test_a_truncated_state(name, finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    path = run / name
    path.write_bytes(path.read_bytes()[:-100])
    words = ["evaluate", str(run)] if name == "best.ckpt" else ["train", "--resume", str(run)]
    assert cli.main(words) == 2
    assert refusal(capsys.readouterr().err).startswith(f"lrn: {path} is damaged: ")


def test_resume_takes_no_settings(finished, capsys):
    for words in (["lm", "--resume", str(finished)], ["--resume", str(finished), "--hidden", "5"]):
        assert cli.main(["train", *words]) == 2
        said = capsys.readouterr().err
        assert "a run that is resumed keeps its task and its settings" in said
        assert "did you mean" not in said
        assert said.count("\n") == 1


def test_resume_goes_further(finished, tmp_path):
    """A finished run of three epochs learns for two more, once; the epochs before stay as they were."""
    run = shutil.copytree(finished, tmp_path / "run")
    trained("--resume", run, "--epochs", 5)
    progress = state(run)["progress"]
    assert (progress["epoch"], progress["finished"]) == (5, True)
    assert logged(run)[: len(logged(finished))] == logged(finished)
    assert [row["epoch"] for row in logged(run) if row["valid_loss"]] == ["1", "2", "3", "4", "5"]
    assert json.loads((run / "config.json").read_text())["epochs"] == 5
    assert "is finished" in trained("--resume", run).err


@pytest.mark.parametrize("package", ["lightning", "rich", "yaml", "safetensors", "matplotlib"])
def test_a_model_is_used_without_what_trains_it(package, finished):
    for words in (["evaluate", finished], ["predict", finished, "--prompt", "w1", "--words", 2]):
        done = lrn(*words, hidden=package)
        assert done.code == 0, done.err


def test_a_run_of_an_older_version(finished, tmp_path, capsys):
    """As 0.1.0 left it: no format, and its version in about.json."""
    run = shutil.copytree(finished, tmp_path / "run")
    config, about = (json.loads((run / f"{name}.json").read_text()) for name in ("config", "about"))
    del config["format"]
    about["versions"]["lrn"] = "0.1.0"
    (run / "config.json").write_text(json.dumps(config))
    (run / "about.json").write_text(json.dumps(about))
    for words in (["evaluate", run], ["predict", run, "--prompt", "a"], ["train", "--resume", run]):
        assert cli.main(list(map(str, words))) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"lrn: {run} was made by lrn 0.1.0, whose run folders this version")
        assert said.count("\n") == 1


# Weights out and in -----------------------------------------------------------------------------


def evaluation(run):
    done = lrn("evaluate", run, "--part", "valid")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory):
    file = tmp_path_factory.mktemp("exported") / "weights.safetensors"
    done = lrn("export", finished, file)
    assert done.code == 0, done.err
    return file


@pytest.fixture
def run(finished, tmp_path):
    """A copy without its best weights."""
    shutil.copytree(finished, tmp_path / "copy")
    (tmp_path / "copy" / "best.ckpt").unlink()
    return tmp_path / "copy"


def test_export_and_import(exported, run, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "whole")
    done = lrn("import", run, exported)
    assert done.code == 0
    assert re.fullmatch(rf"{run}/best.ckpt: \d+ tensors, [\d,]+ numbers, from {exported}\n", done.out)
    assert evaluation(run) == evaluation(tmp_path / "whole")


def test_what_is_exported(exported, finished):
    weights = load_file(exported)
    best = state(finished, "best")["model"]
    assert weights.keys() == best.keys()
    assert all(torch.equal(weights[name], best[name]) for name in best)


def test_export_does_not_overwrite(exported, finished):
    before = exported.read_bytes()
    done = lrn("export", finished, exported)
    assert (done.code, done.err) == (2, f"lrn: {exported} exists; choose another name, or add --overwrite\n")
    assert exported.read_bytes() == before


def test_export_overwrites_when_told(exported, finished, tmp_path):
    file = tmp_path / "weights.safetensors"
    file.write_text("mine")
    assert lrn("export", finished, file, "--overwrite").code == 0
    found, expected = load_file(file), load_file(exported)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_import_does_not_overwrite_unless_told(exported, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    weights = load_file(exported)
    save_file({name: value + 1 for name, value in weights.items()}, tmp_path / "other.safetensors")
    best = (run / "best.ckpt").read_bytes()
    done = lrn("import", run, tmp_path / "other.safetensors")
    assert done.code == 2
    assert "best.ckpt exists; --overwrite replaces it" in done.err
    assert (run / "best.ckpt").read_bytes() == best
    assert lrn("import", run, tmp_path / "other.safetensors", "--overwrite").code == 0
    for name, value in state(run, "best")["model"].items():
        assert torch.equal(value, weights[name] + 1)


def damaged(content):
    """The whole file with its length field, header or data spoilt."""
    huge = struct.pack("<Q", 2**62) + content[8:]
    return {
        "empty": b"",
        "seven bytes": content[:7],
        "half the header": content[:100],
        "half": content[: len(content) // 2],
        "one byte less": content[:-1],
        "one byte more": content + b"\0",
        "huge header": huge,
        "foreign": b"PK\x03\x04 something else entirely",
        "text": b"hello\n",
        "no text in the header": content[:8] + b"\xff" * (len(content) - 8),
    }


@pytest.mark.parametrize("kind", damaged(b""))
def test_import_of_a_damaged_file(kind, exported, run, tmp_path, capsys):
    file = tmp_path / "damaged.safetensors"
    file.write_bytes(damaged(exported.read_bytes())[kind])
    assert cli.main(["import", str(run), str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"lrn: {file} is not a safetensors file: ")
    assert not (run / "best.ckpt").exists()


def test_import_of_other_weights(exported, run, tmp_path, capsys):
    """Of another shape, one missing, one too many: the error names the tensor."""
    file = tmp_path / "other.safetensors"
    weights = load_file(exported)
    name = "embedding.weight"
    shape = tuple(weights[name].shape)
    for other, says in [
        (
            weights | {name: torch.zeros(3, 8)},
            f"{name} has shape (3, 8) in the file and {shape} in the model",
        ),
        ({n: w for n, w in weights.items() if n != name}, f"{name} is in the model, not the file"),
        (weights | {"more": torch.zeros(3)}, "more is in the file, not the model"),
    ]:
        save_file(other, file)
        assert cli.main(["import", str(run), str(file)]) == 2
        assert says in capsys.readouterr().err
    assert not (run / "best.ckpt").exists()


@pytest.mark.parametrize("command", [["export", "none", "file.safetensors"], ["import", "none", "file"]])
def test_no_run(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command) == 2
    assert capsys.readouterr().err == "lrn: there is no run folder none\n"


def test_no_file(run, tmp_path, capsys):
    assert cli.main(["import", str(run), str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"lrn: there is no file {tmp_path / 'none'}\n"


def test_nothing_to_export(run, tmp_path, capsys):
    assert cli.main(["export", str(run), str(tmp_path / "file.safetensors")]) == 2
    assert f"{run} has no best.ckpt" in capsys.readouterr().err
    assert not (tmp_path / "file.safetensors").exists()


def test_export_into_no_folder(finished, tmp_path, capsys):
    path = tmp_path / "none" / "file.safetensors"
    assert cli.main(["export", str(finished), str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"lrn: cannot write {path}: No such file")


def test_export_below_a_file(finished, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    path = tmp_path / "file" / "weights.safetensors"
    assert cli.main(["export", str(finished), str(path)]) == 2
    assert capsys.readouterr().err == f"lrn: cannot write {path}: Not a directory; choose another place\n"
