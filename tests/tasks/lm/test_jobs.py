"""The commands, from a folder of texts to the figures of a trained model."""

import json
import math
import shutil

import pytest
import torch
from helpers import says
from tasks.lm.cases import write_corpus

from lrn import cli
from lrn.tasks.lm import jobs
from lrn.tasks.lm.config import LMConfig
from lrn.tasks.lm.data import encode_file, read_folder
from lrn.tasks.lm.evaluate import Dynamic, dynamic_loss, gradient_statistics, mean_loss
from lrn.tasks.lm.predict import continue_text
from lrn.text.vocabulary import Vocabulary
from lrn.training import checkpoint
from lrn.training.run import Run

SIZES = "--embedding 4 --hidden 6 --last 5 --batch_size 4 --bptt 10 --delta 5 --valid_columns 2 --threads 1"
SGD = "--optimizer sgd --schedule constant --drop_weights 0.2"


def lrn(*words):
    return cli.main([str(word) for word in words])


def train(data, out, *words):
    assert lrn("train", "lm", *SIZES.split(), *SGD.split(), "--data", data, "--out", out, *words) == 0
    return out


def metrics(run):
    return json.loads((run / "metrics.json").read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with texts, and a run that was trained on them."""
    folder = tmp_path_factory.mktemp("lm")
    train(write_corpus(folder / "data"), folder / "run", "--epochs", 2, "--lr", 2)
    return folder


@pytest.fixture
def data(made):
    return made / "data"


@pytest.fixture
def run(made, tmp_path):
    """A copy of one's own."""
    return shutil.copytree(made / "run", tmp_path / "mine")


@pytest.fixture
def other_data(tmp_path):
    return write_corpus(tmp_path / "other", words=("<unk>", "a", "b", "c", "e"))


def best(run):
    return jobs.load(Run.open(run))[0]


# Train -----------------------------------------------------------------------------------------------


def test_what_a_training_writes_down(run, data):
    found, corpus = metrics(run), read_folder(data)
    valid, test = (
        math.exp(mean_loss(best(run), part, n)) for part, n in ((corpus.valid, 2), (corpus.test, 1))
    )
    assert found["unit"] == "lrn"
    assert found["epochs"] == 2
    assert found["parameters"] == sum(p.numel() for p in best(run).parameters())
    assert found["valid_perplexity"] == pytest.approx(valid, abs=1e-3)
    assert found["test_perplexity"] == pytest.approx(test, abs=1e-3)
    assert Vocabulary.load(run / "vocabulary.json") == corpus.vocabulary
    about = Run.open(run).about()["data"]
    assert about["tokens"] == {"train": 419, "valid": 139, "test": 139}
    assert about["types"] == 6
    assert len(about["fingerprint"]) == 64


def test_the_fingerprint_knows_the_text(data, other_data):
    first = jobs.describe(read_folder(data))["data"]["fingerprint"]
    assert jobs.describe(read_folder(data))["data"]["fingerprint"] == first
    assert jobs.describe(read_folder(other_data))["data"]["fingerprint"] != first


def test_without_a_test(data, tmp_path):
    run = train(data, tmp_path / "run", "--test", "false")
    assert "valid_perplexity" in metrics(run)
    assert "test_perplexity" not in metrics(run)


def test_cut_short_it_is_validated_all_the_same(data, tmp_path):
    run = train(data, tmp_path / "run", "--max_steps", 1)
    assert metrics(run)["steps"] == 1
    assert metrics(run)["test_perplexity"] > 1
    assert lrn("evaluate", run) == 0


def test_no_best_weights(data, tmp_path, capsys):
    run = train(data, tmp_path / "run", "--max_steps", 1)
    (run / "best.ckpt").unlink()
    for words in (("evaluate", run), ("predict", run, "--prompt", "a")):
        assert lrn(*words) == 2
        assert "no best.ckpt" in capsys.readouterr().err
    start = ("train", "lm", *SIZES.split(), "--data", data, "--stage", "finetune", "--start", run)
    assert lrn(*start, "--out", tmp_path / "next") == 2
    assert "best.ckpt" in capsys.readouterr().err
    assert not (tmp_path / "next").exists()


def test_a_run_that_lost_its_state_is_left_alone(data, tmp_path, capsys):
    run = train(data, tmp_path / "run")
    best = (run / "best.ckpt").read_bytes()
    (run / "last.ckpt").unlink()
    assert lrn("train", "--resume", run) == 2
    assert "lost its last.ckpt" in capsys.readouterr().err
    assert (run / "best.ckpt").read_bytes() == best


def test_data_that_has_moved(data, tmp_path, capsys):
    import shutil

    here = shutil.copytree(data, tmp_path / "here")
    run = train(here, tmp_path / "run")
    here.rename(tmp_path / "there")
    assert lrn("evaluate", run) == 2
    assert "say where: --data" in capsys.readouterr().err
    assert lrn("evaluate", run, "--data", tmp_path / "there") == 0


@pytest.mark.parametrize("part", ["train", "valid"])
def test_too_little_text_leaves_no_run(tmp_path, part, capsys):
    lines = {"train": (1, 20, 20), "valid": (60, 1, 20)}[part]
    data = write_corpus(tmp_path / "data", lines=lines)
    words = ("--data", data, "--out", tmp_path / "run", "--batch_size", 3, "--valid_columns", 5)
    assert lrn("train", "lm", *words) == 2
    assert "too short" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# Resume ----------------------------------------------------------------------------------------------


def test_resume_with_other_data(run, other_data, capsys):
    assert lrn("train", "--resume", run, "--data", other_data) == 2
    assert "the data is not what" in capsys.readouterr().err


def test_resume_of_a_finished_run(run, capsys):
    assert lrn("train", "--resume", run) == 0
    assert "is finished" in capsys.readouterr().err


# Finetune --------------------------------------------------------------------------------------------


def finetune(data, start, out, *words):
    return train(data, out, "--stage", "finetune", "--start", start, "--epochs", 3, *words)


def test_finetune_improves_on_the_best_weights(run, data, tmp_path):
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 2)
    assert metrics(tuned)["valid_perplexity"] < metrics(run)["valid_perplexity"]
    assert Run.open(tuned).about()["start"] == str(run)
    assert lrn("evaluate", tuned) == 0


def test_finetune_that_does_not_improve_keeps_the_start(run, data, tmp_path):
    """With a learning rate that spoils everything."""
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 500, "--nonmono", 1)
    before, after = best(run).state_dict(), best(tuned).state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert metrics(tuned)["valid_perplexity"] == metrics(run)["valid_perplexity"]
    assert metrics(tuned)["test_perplexity"] == metrics(run)["test_perplexity"]
    assert metrics(tuned)["best_epoch"] == -1


def test_finetune_begins_with_the_best_weights(run, data):
    config = LMConfig(**Run.open(run).config | {"stage": "finetune", "start": str(run), "lr": 1.0})
    trainee, _ = jobs.prepare(config)
    assert all(map(torch.equal, trainee.model.parameters(), best(run).parameters()))
    assert trainee.progress.best == pytest.approx(mean_loss(best(run), read_folder(data).valid, 2))
    assert trainee.averaging


def test_finetune_of_weights_without_figures(run):
    """As `lrn import` makes them."""
    state = checkpoint.load(Run.open(run).best, "lm")
    checkpoint.save(Run.open(run).best, "lm", state | {"figures": {}})
    config = LMConfig(**Run.open(run).config | {"stage": "finetune", "start": str(run)})
    trainee, _ = jobs.prepare(config)
    assert trainee.progress.best == pytest.approx(state["figures"]["loss"])


def test_finetune_resumes_where_nothing_was_saved_yet(run, data, tmp_path):
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 500, "--nonmono", 1)
    trainee = jobs.resume(Run.open(tuned))
    first = trainee.progress.best
    assert first == pytest.approx(checkpoint.load(Run.open(run).best, "lm")["figures"]["loss"])
    (tuned / "last.ckpt").unlink()
    trainee = jobs.resume(Run.open(tuned))
    assert trainee.progress.step == 0
    assert trainee.progress.best == first
    assert all(map(torch.equal, trainee.model.parameters(), best(run).parameters()))


def test_finetune_with_another_vocabulary(run, other_data, tmp_path, capsys):
    words = ("--stage", "finetune", "--start", run, "--data", other_data, "--out", tmp_path / "tuned")
    assert lrn("train", "lm", *SIZES.split(), *words) == 2
    assert "vocabularies differ" in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("own", [("--hidden", 7), ("--unit", "lstm")])
def test_finetune_of_another_shape(run, data, tmp_path, capsys, own):
    words = ("--stage", "finetune", "--start", run, "--data", data, "--out", tmp_path / "tuned")
    assert lrn("train", "lm", *SIZES.split(), *SGD.split(), *words, *own) == 2
    assert "not this model's" in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()


# Evaluate --------------------------------------------------------------------------------------------


def evaluated(capsys, run, *words):
    capsys.readouterr()
    assert lrn("evaluate", run, "--threads", 1, *words) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_evaluate(run, data, capsys, part):
    before = metrics(run)
    figures = evaluated(capsys, run, "--part", part)
    stream = getattr(read_folder(data), part)
    assert figures["loss"] == pytest.approx(mean_loss(best(run), stream, 1))
    assert figures["perplexity"] == pytest.approx(math.exp(figures["loss"]), abs=1e-3)
    assert figures["words"] == len(stream) - 1
    assert metrics(run) == before  # the run's own figures are those of its training


def test_evaluate_in_columns(run, data, capsys):
    figures = evaluated(capsys, run, "--columns", 3)
    stream = read_folder(data).test
    assert figures["loss"] == pytest.approx(mean_loss(best(run), stream, 3))
    assert figures["words"] == len(stream) // 3 * 3 - 3


def test_dynamic_evaluation(run, data, capsys):
    words = ("--dynamic", "--rate", 0.01, "--decay", 0.02, "--epsilon", 0.002)
    figures = evaluated(capsys, run, *words)
    corpus, dynamic = read_folder(data), Dynamic(0.01, 0.02, 0.002)
    statistics = gradient_statistics(best(run), corpus.train, dynamic)
    expected = dynamic_loss(best(run), corpus.test, statistics, dynamic)
    assert figures["loss"] == pytest.approx(expected, rel=1e-6)
    assert figures["dynamic"] == {"rate": 0.01, "decay": 0.02, "epsilon": 0.002}
    assert figures["perplexity"] != metrics(run)["test_perplexity"]


def test_a_part_of_the_text_is_not_its_figure(run, data, capsys):
    """Nor does it go into metrics.json."""
    before = metrics(run)
    figures = evaluated(capsys, run, "--words", 30)
    assert figures["words"] == 30
    assert figures["loss"] == pytest.approx(mean_loss(best(run), read_folder(data).test[:31], 1))
    assert metrics(run) == before


def test_evaluate_where_the_data_is_now(run, data, tmp_path, capsys):
    moved = shutil.copytree(data, tmp_path / "moved")
    assert evaluated(capsys, run, "--data", moved) == evaluated(capsys, run)


def test_evaluate_with_another_vocabulary(run, other_data, capsys):
    before = metrics(run)
    assert lrn("evaluate", run, "--data", other_data) == 2
    assert "another vocabulary" in capsys.readouterr().err
    assert metrics(run) == before


# Predict ---------------------------------------------------------------------------------------------


def predicted(capsys, run, *words):
    capsys.readouterr()
    assert lrn("predict", run, *words) == 0
    return capsys.readouterr().out


def test_prompt(run, capsys):
    said = predicted(capsys, run, "--prompt", "a b", "--words", 40, "--seed", 3)
    model, vocabulary, _ = jobs.load(Run.open(run))
    prompt, unknown = vocabulary.encode(["a", "b"]), vocabulary.encode(["<unk>"])[0]
    drawn = continue_text(model, prompt, words=40, seed=3, banned=(unknown,))
    lines = " ".join(vocabulary.decode(drawn)).replace("<eos>", "\n")
    assert said.startswith("a b ")
    assert not any(line.startswith(" ") for line in said.splitlines())
    assert said.split() == ["a", "b", *lines.split()]
    assert said.count("\n") == lines.count("\n") + 1
    assert said == predicted(capsys, run, "--prompt", "a b", "--words", 40, "--seed", 3)
    assert said != predicted(capsys, run, "--prompt", "a b", "--words", 40, "--seed", 4)


def test_unknown_is_written_only_if_asked_for(run, capsys):
    words = ("--prompt", "a", "--words", 200, "--temperature", 2)
    assert "<unk>" not in predicted(capsys, run, *words)
    assert "<unk>" in predicted(capsys, run, *words, "--unknown")


def test_temperature_and_top_k(run, capsys):
    words = ("--prompt", "a", "--words", 20)
    likeliest = predicted(capsys, run, *words, "--temperature", 0)
    assert predicted(capsys, run, *words, "--top_k", 1, "--seed", 9) == likeliest


def test_unknown_words_in_the_prompt(run, capsys):
    """Words that the model does not know are taken apart; what is left unknown is <unk>."""
    apart = predicted(capsys, run, "--prompt", "A b,", "--temperature", 0).removeprefix("A b,")
    assert apart == predicted(capsys, run, "--prompt", "a b <unk>", "--temperature", 0).removeprefix(
        "a b <unk>"
    )


@pytest.fixture(scope="module")
def without_unknown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm-known")
    data = write_corpus(folder / "data", words=("a", "b", "c"))
    return train(data, folder / "run", "--epochs", 1)


def test_unknown_words_where_there_is_no_unk(without_unknown, tmp_path, capsys):
    assert predicted(capsys, without_unknown, "--prompt", "a b", "--words", 3).startswith("a b")
    assert lrn("predict", without_unknown, "--prompt", "a zebra") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "'zebra' is not in the vocabulary of 4 words" in captured.err
    (tmp_path / "text.txt").write_text("a b\nb zebra\n")
    assert lrn("predict", without_unknown, f'--files=["{tmp_path / "text.txt"}"]') == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prompt", ""), "at least one word"),
        (("--prompt", "a", "--temperature", "-1"), "temperature"),
        (("--prompt", "a", "--temperature", "inf"), "temperature"),
        (("--prompt", "a", "--top_k", "-1"), "top_k"),
        ((), "--prompt"),
    ],
)
def test_bad_values(run, words, said, capsys):
    assert lrn("predict", run, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def scores(said):
    return {line.split()[-1]: float(line.split()[0]) for line in said.splitlines()}


def expected_scores(run, files):
    model, vocabulary, _ = jobs.load(Run.open(run))
    return {str(file): math.exp(mean_loss(model, encode_file(file, vocabulary), 1)) for file in files}


def test_files(run, data, capsys):
    files = [data / "train.txt", data / "test.txt"]
    said = predicted(capsys, run, f"--files={json.dumps(list(map(str, files)))}")
    assert scores(said) == pytest.approx(expected_scores(run, files), abs=1e-3)
    assert "419 words" not in said
    assert "418 words" in said


def test_files_one_after_the_other(run, data, capsys):
    files = [data / "train.txt", data / "test.txt"]
    said = predicted(capsys, run, "--files", *files)
    assert scores(said) == pytest.approx(expected_scores(run, files), abs=1e-3)


def test_missing_file(run, tmp_path, capsys):
    assert lrn("predict", run, f'--files=["{tmp_path / "nothing.txt"}"]') == 2
    assert "nothing.txt" in capsys.readouterr().err


# Loading ---------------------------------------------------------------------------------------------


def test_load(run):
    model, vocabulary, config = jobs.load(Run.open(run))
    assert not model.training
    assert model.words == len(vocabulary) == 6
    assert config.hidden == 6


def test_weights_of_another_model(run):
    settings = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(settings | {"hidden": 7}))
    with pytest.raises(ValueError, match=says("not this model's", "shape")):
        jobs.load(Run.open(run))
