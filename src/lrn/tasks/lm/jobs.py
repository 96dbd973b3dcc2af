"""What the commands do for language models."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from lrn.names import UNITS
from lrn.tasks.lm.config import PRESETS, EvaluateConfig, LMConfig, PredictConfig
from lrn.tasks.lm.data import Corpus, read_builtin, read_folder
from lrn.tasks.lm.evaluate import Dynamic, dynamic_loss, gradient_statistics, mean_loss
from lrn.tasks.lm.model import LanguageModel, count
from lrn.tasks.lm.predict import continue_text, score_file
from lrn.tasks.lm.task import LMTrainee
from lrn.text.builtin import tokenise
from lrn.text.vocabulary import END, UNKNOWN, Vocabulary
from lrn.training import checkpoint
from lrn.training.config import from_dict
from lrn.training.fit import figures_of
from lrn.training.run import Run
from lrn.training.show import bar, print_figures
from lrn.training.trainee import load_weights

VOCABULARY = "vocabulary.json"
METRIC, LOWER_IS_BETTER = "test_perplexity", True
CURVE = "valid_perplexity"  # in log.csv
WORDS = {"paper-ptb": 10_000, "paper-wt2": 33_278}  # vocabularies of the paper's data


def read_corpus(data: str | None, min_count: int) -> Corpus:
    return read_builtin(min_count) if data is None else read_folder(Path(data).resolve())


def describe(corpus: Corpus) -> dict[str, Any]:
    """For about.json, with a fingerprint to know the text by."""
    digest = hashlib.sha256("\n".join(corpus.vocabulary.words).encode())
    for stream in (corpus.train, corpus.valid, corpus.test):
        digest.update(stream.numpy().tobytes())
    return {"data": corpus.about | {"fingerprint": digest.hexdigest()}}


def prepare(config: LMConfig) -> tuple[LMTrainee, dict[str, Any]]:
    """A training that has not begun, and what about.json should say of its data."""
    corpus = read_corpus(config.data, config.min_count)
    if config.stage == "train":
        return LMTrainee(config, corpus), describe(corpus)
    first = Run.open(config.start or "")
    if first.task != "lm":
        raise ValueError(f"{first.folder} is a run of task {first.task!r}; finetuning needs one of 'lm'")
    known = Vocabulary.load(first.file(VOCABULARY))
    if known.words != corpus.vocabulary.words:
        raise ValueError(f"{first.folder} was trained on other data than this: their vocabularies differ")
    trainee = LMTrainee(config, corpus)
    load_weights(trainee.model, checkpoint.load(first.file("best.ckpt"), "lm")["model"])
    trainee.progress.best = trainee.validate()["loss"]  # what finetuning has to beat
    return trainee, describe(corpus) | {"start": str(first.folder)}


def begin(trainee: LMTrainee, run: Run) -> None:
    """What the run folder holds from the start."""
    trainee.corpus.vocabulary.save(run.folder / VOCABULARY)
    if trainee.config.stage == "finetune":  # the best so far are the weights it starts from
        loss = trainee.progress.best
        state = {"model": trainee.model.state_dict(), "figures": {"loss": loss}, "epoch": 0}
        checkpoint.save(run.best, "lm", state)


def resume(run: Run, data: str | None = None) -> LMTrainee:
    """The training of an interrupted run, where its last saved state left it."""
    config: LMConfig = from_dict(LMConfig, run.config)
    corpus = read_corpus(run.data(data), config.min_count)
    run.check_data(describe(corpus)["data"]["fingerprint"])
    trainee = LMTrainee(config, corpus)
    if run.last.exists():
        trainee.restore(checkpoint.load(run.last, "lm"))
    elif config.stage == "finetune":
        state = checkpoint.load(run.best, "lm")
        load_weights(trainee.model, state["model"])
        trainee.progress.best = state["figures"]["loss"]
    return trainee


def headline(trainee: LMTrainee) -> str:
    """What is about to be trained."""
    corpus, config = trainee.corpus, trainee.config
    train, valid, test = (f"{n:,}" for n in corpus.about["tokens"].values())
    parameters = sum(p.numel() for p in trainee.model.parameters())
    return (
        f"{config.unit}, preset {config.preset}, {parameters:,} parameters; {corpus.about['source']}: "
        f"{train} / {valid} / {test} words, {corpus.about['types']:,} types"
    )


def finish(trainee: LMTrainee, run: Run, console: Console) -> None:
    """After training: test the best weights, and write the results down."""
    figures: dict[str, Any] = {"unit": trainee.config.unit, **figures_of(trainee)}
    if run.best.exists():
        best = checkpoint.load(run.best, "lm")
        load_weights(trainee.model, best["model"])
        if "loss" in best["figures"]:  # weights that were imported have none
            figures["valid_perplexity"] = _perplexity(best["figures"]["loss"])
        if trainee.config.test:
            with bar("testing") as progress:
                loss = mean_loss(trainee.model, trainee.corpus.test, 1, progress=progress)
            figures["test_perplexity"] = _perplexity(loss)
    run.add_metrics(**figures)
    print_figures(console, figures)


def _perplexity(loss: float) -> float:
    return round(math.exp(min(loss, 700)), 4)


def empty_model(run: Run) -> LanguageModel:
    """A model of a run's shape."""
    config: LMConfig = from_dict(LMConfig, run.config)
    return LanguageModel(config, len(Vocabulary.load(run.file(VOCABULARY))))


def load(run: Run, last: bool = False) -> tuple[LanguageModel, Vocabulary, LMConfig]:
    """The best weights of a run, or the last ones, ready for use."""
    config: LMConfig = from_dict(LMConfig, run.config)
    vocabulary = Vocabulary.load(run.file(VOCABULARY))
    model = empty_model(run)
    load_weights(model, checkpoint.load(run.file("last.ckpt" if last else "best.ckpt"), "lm")["model"])
    return model.eval(), vocabulary, config


def evaluate(run: Run, options: EvaluateConfig, console: Console) -> dict[str, Any]:
    """Perplexity on a part of the data."""
    if options.threads:
        torch.set_num_threads(options.threads)
    model, vocabulary, config = load(run, options.last)
    corpus = read_corpus(run.data(options.data), config.min_count)
    if corpus.vocabulary.words != vocabulary.words:
        raise ValueError(
            f"{run.folder} was trained with another vocabulary than this data's; "
            f"for any text file: lrn predict {run.folder} --files FILE"
        )
    stream: Tensor = getattr(corpus, options.part)
    if options.words:
        stream = stream[: options.words + 1]
    columns = 1 if options.dynamic else options.columns
    predicted = (len(stream) // columns - 1) * columns
    figures: dict[str, Any] = {"part": options.part, "words": predicted}
    if options.dynamic:
        dynamic = Dynamic(options.rate, options.decay, options.epsilon)
        with bar("gradients on the training text") as progress:
            statistics = gradient_statistics(model, corpus.train, dynamic, progress)
        with bar("dynamic evaluation") as progress:
            loss = dynamic_loss(model, stream, statistics, dynamic, progress)
        figures |= {"dynamic": {"rate": options.rate, "decay": options.decay, "epsilon": options.epsilon}}
    else:
        with bar("evaluating") as progress:
            loss = mean_loss(model, stream, columns, progress=progress)
    return figures | {"loss": loss, "perplexity": _perplexity(loss)}


def predict(run: Run, options: PredictConfig, console: Console) -> None:
    """Print a continuation of the prompt, or the perplexity of each file."""
    model, vocabulary, _ = load(run)
    if options.prompt is None:
        for file in options.files:
            words, perplexity = score_file(model, vocabulary, Path(file))
            print(f"{perplexity:12.3f}  {words:9,} words  {file}")
        return
    known = set(vocabulary.words)
    split = options.prompt.split()
    tokens = [t for w in split for t in ([w] if w in known else tokenise(w))]
    prompt = vocabulary.encode(tokens)
    banned = () if options.unknown or UNKNOWN not in known else (vocabulary.encode([UNKNOWN])[0],)
    drawn = continue_text(
        model,
        prompt,
        words=options.words,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        banned=banned,
    )
    print(options.prompt, end="", flush=True)
    blank = " "
    for number in drawn:
        word = vocabulary.decode([number])[0]
        print("\n" if word == END else blank + word, end="", flush=True)
        blank = "" if word == END else " "
    print()


def parameters() -> list[tuple[str, str, int]]:
    """Preset, unit and exact count of the paper's settings."""
    return [
        (preset, unit, count(LMConfig(**PRESETS[preset] | {"unit": unit}), words))
        for preset, words in WORDS.items()
        for unit in UNITS
    ]


PARAMETERS_NOTE = (
    "LSTM: the paper's 22M is 21.49M here. With nn.LSTM's two bias vectors a gate it would be 21,500,620, "
    "which rounds to 22M; one bias a gate, as in the paper's own code, gives 21,490,460."
)
