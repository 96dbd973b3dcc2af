"""Going on with a text, and scoring texts."""

import math

import pytest
import torch
from helpers import says
from tasks.lm.cases import WORDS, model, train_run, write_corpus
from tasks.trainings import lrn

from lrn.tasks.lm.config import PredictConfig
from lrn.tasks.lm.data import encode_file
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.predict import continue_text, score_file
from lrn.tasks.lm.task import TASK
from lrn.text.vocabulary import Vocabulary
from lrn.training.run import Run

PROMPT = [3, 1, 4]


def likeliest(made, prompt, words, banned=()):
    """By running the model over the whole text again for every word."""
    all_words = list(prompt)
    for _ in range(words):
        features, _ = made(torch.tensor(all_words).unsqueeze(1))
        scores = made.log_probabilities(features)[-1, 0]
        scores[list(banned)] = -math.inf
        all_words.append(int(scores.argmax()))
    return all_words[len(prompt) :]


def drawn(made=None, prompt=PROMPT, words=20, **options):
    return list(continue_text(made or model(), prompt, words=words, **options))


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
@pytest.mark.parametrize("options", [{"temperature": 0}, {"top_k": 1}, {"temperature": 1e-300}])
def test_likeliest(unit, options):
    made = model(unit=unit, experts=2).float()
    with torch.no_grad():
        assert drawn(made, **options) == likeliest(made, PROMPT, 20)


def test_same_seed_same_text():
    assert drawn(seed=5) == drawn(seed=5)
    assert drawn(seed=5) != drawn(seed=6)


def test_the_seed_is_its_own():
    made = model()
    state = torch.get_rng_state()
    drawn(made)
    assert torch.equal(torch.get_rng_state(), state)


def without_memory():
    """A model whose prediction is the same whatever it has read, and that prediction."""
    made = model()
    for parameter in made.layers.parameters():
        torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        return made, made.log_probabilities(made(torch.tensor([[0]]))[0])[0, 0].exp()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_drawn_as_often_as_likely(temperature):
    made, likely = without_memory()
    expected = likely ** (1 / temperature) / (likely ** (1 / temperature)).sum()
    words = torch.tensor(drawn(made, words=2000, temperature=temperature))
    share = torch.bincount(words, minlength=WORDS) / 2000
    assert (share - expected).abs().max() < 4 * math.sqrt(0.25 / 2000)


def test_top_k_draws_from_the_likeliest():
    made, likely = without_memory()
    allowed = set(likely.topk(3).indices.tolist())
    assert set(drawn(made, words=200, top_k=3, temperature=5.0)) == allowed


def test_top_k_beyond_the_vocabulary():
    assert drawn(top_k=1000) == drawn()


def test_top_k_of_equals():
    """Where all words are equally likely, it is k still that are drawn from."""
    made = model()
    for parameter in made.parameters():
        torch.nn.init.zeros_(parameter)
    assert len(set(drawn(made, words=50, top_k=2))) == 2


@pytest.mark.parametrize("options", [{"temperature": 0}, {"top_k": 2}, {"temperature": 100.0}, {"top_k": 1}])
def test_banned_words_are_not_written(options):
    made = model()
    free = drawn(made, words=100, **options)
    assert free[0] not in drawn(made, words=100, banned=(free[0],), **options)


def test_leaves_the_caller_alone_between_words():
    """Neither gradients nor the model's mode change while a text is under way."""
    made = model(drop_output=0.5).train()
    words = continue_text(made, PROMPT, words=3)
    next(words)
    assert torch.is_grad_enabled()
    assert made.training
    assert drawn(made) == drawn(model())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"words": -1}, "words"),
        ({"prompt": []}, "prompt"),
    ],
)
def test_bad_values(options, said):
    """At once, not when the first word is asked for."""
    with pytest.raises(ValueError, match=said):
        continue_text(model(), **{"prompt": PROMPT, "words": 3} | options)


def test_no_words():
    assert drawn(words=0) == []


# Scoring ---------------------------------------------------------------------------------------------

VOCABULARY = Vocabulary(["<eos>", *(f"w{n}" for n in range(WORDS - 1))])


def test_score_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("w0 w3 w4\n\nw1 w1 w2\n")
    stream = torch.tensor([1, 4, 5, 0, 0, 2, 2, 3, 0])
    words, perplexity, unknown = score_file(model(), VOCABULARY, path)
    assert (words, unknown) == (8, 0)
    assert perplexity == pytest.approx(math.exp(mean_loss(model(), stream, 1)), rel=1e-12)


def test_score_unknown_words(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("w0 w3\nw1 new\n")
    with pytest.raises(ValueError, match=says("text.txt", "line 2", "'new'", "<unk>")):
        score_file(model(), VOCABULARY, path)
    known = Vocabulary(["<eos>", *VOCABULARY.words[1:-1], "<unk>"])
    stream = torch.tensor([1, 4, 0, 2, WORDS - 1, 0])
    _, perplexity, unknown = score_file(model(), known, path)
    assert unknown == 0.25
    assert perplexity == pytest.approx(math.exp(mean_loss(model(), stream, 1)), rel=1e-12)


def test_score_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=says("nothing.txt")):
        score_file(model(), VOCABULARY, tmp_path / "nothing.txt")


# `lrn predict` ---------------------------------------------------------------------------------------


def predicted(capsys, run, *words):
    capsys.readouterr()
    assert lrn("predict", run, *words) == 0
    return capsys.readouterr().out


def test_prompt(run, capsys):
    said = predicted(capsys, run, "--prompt", "a b", "--words", 40, "--seed", 3)
    loaded = TASK.load(Run.open(run))
    vocabulary = loaded.kept.vocabulary
    prompt, unknown = vocabulary.encode(["a", "b"]), vocabulary.encode(["<unk>"])[0]
    written = continue_text(loaded.model, prompt, words=40, seed=3, banned=(unknown,))
    lines = " ".join(vocabulary.decode(written)).replace("<eos>", "\n")
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
    return train_run(data, folder / "run", "--epochs", 1)


def test_unknown_words_where_there_is_no_unk(without_unknown, tmp_path, capsys):
    assert predicted(capsys, without_unknown, "--prompt", "a b", "--words", 3).startswith("a b")
    assert lrn("predict", without_unknown, "--prompt", "a zebra") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "'zebra' is not in the vocabulary of 4 words" in captured.err
    (tmp_path / "text.txt").write_text("a b\nb zebra\n")
    assert lrn("predict", without_unknown, "--files", tmp_path / "text.txt") == 2
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
def test_bad_words(run, words, said, capsys):
    assert lrn("predict", run, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def scores(said):
    return {line.split()[-1]: float(line.split()[0]) for line in said.splitlines()}


def expected_scores(run, files):
    loaded = TASK.load(Run.open(run))
    streams = {str(file): encode_file(file, loaded.kept.vocabulary) for file in files}
    return {file: math.exp(mean_loss(loaded.model, stream, 1)) for file, stream in streams.items()}


def test_files(run, data, capsys):
    files = [data / "train.txt", data / "test.txt"]
    said = predicted(capsys, run, *(f"--files={file}" for file in files))
    assert scores(said) == pytest.approx(expected_scores(run, files), abs=1e-3)
    assert "419 words" not in said
    assert "418 words" in said


def test_files_one_after_the_other(run, data, capsys):
    files = [data / "train.txt", data / "test.txt"]
    said = predicted(capsys, run, "--files", *files)
    assert scores(said) == pytest.approx(expected_scores(run, files), abs=1e-3)


def test_unknown_words_are_said(run, data, tmp_path, capsys):
    """A foreign text is all <unk>, and may be foreseen better than the test text."""
    foreign, mixed, known = (tmp_path / name for name in ("foreign.txt", "mixed.txt", "known.txt"))
    foreign.write_text("ein ganz fremder satz\n")
    mixed.write_text("a b c d\n" * 5 + "a\nzebra\n")
    known.write_text("a b c d\n")
    assert lrn("predict", run, "--files", foreign, mixed, known) == 0
    foreign_said, mixed_said = capsys.readouterr().err.splitlines()
    assert foreign_said.startswith(
        f"{foreign}: 100.0% of its words are unknown to the model, and easy to foresee"
    )
    assert mixed_said == f"{mixed}: 4.5% of its words are unknown to the model"
    assert lrn("predict", run, "--prompt", "a zebra b zebra") == 0
    assert capsys.readouterr().err == "2 of 4 words of the prompt are unknown to the model: zebra\n"
    assert lrn("predict", run, "--prompt", "a b") == 0
    assert capsys.readouterr().err == ""


def test_unknown_words_of_an_answer(run):
    loaded = TASK.load(Run.open(run))
    known, unknown = TASK.answers(
        loaded, [["a b"], ["a zebra <unk>"]], PredictConfig(prompt=""), details=True
    )
    assert (known["unknown"], unknown["unknown"]) == (0, 2)
    notes = [TASK.views(answer)[-1].note for answer in (known, unknown)]
    assert [note.endswith("2 of 3 words are unknown to it.") for note in notes] == [False, True]


def test_missing_file(run, tmp_path, capsys):
    assert lrn("predict", run, "--files", tmp_path / "nothing.txt") == 2
    assert "nothing.txt" in capsys.readouterr().err
