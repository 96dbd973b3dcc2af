"""What the commands do for document classification."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from lrn.files import write_whole
from lrn.names import UNITS
from lrn.tasks.doc import generator
from lrn.tasks.doc.config import PRESETS, DocConfig, EvaluateConfig, PredictConfig
from lrn.tasks.doc.data import CODES, SPECIALS, Codes, encode_texts, frequent_words, read_documents
from lrn.tasks.doc.documents import Documents
from lrn.tasks.doc.memory import Remembered, cues_remembered, remember
from lrn.tasks.doc.model import Classifier, count
from lrn.tasks.doc.task import DocTrainee, measure
from lrn.text.lines import each_line
from lrn.text.tokens import basic_tokens
from lrn.text.vectors import each_vector
from lrn.training import checkpoint
from lrn.training.config import from_dict
from lrn.training.fit import figures_of
from lrn.training.run import Run
from lrn.training.show import bar, print_figures
from lrn.training.trainee import load_weights

METRIC, LOWER_IS_BETTER = "test_error", True
CURVE = "valid_error"  # in log.csv
CHARACTERS, CLASSES = 145, 2  # of the paper's AmaPolar, as far as its printed figures tell
VECTORS = "vectors.npy"


def _documents(config: DocConfig, data: str | None = None) -> Documents:
    with bar("reading documents") as progress:
        return read_documents(config, data, progress)


def prepare(config: DocConfig) -> tuple[DocTrainee, dict[str, Any]]:
    """A training that has not begun, and what about.json should say of its data."""
    documents = _documents(config)
    about: dict[str, Any] = {"data": documents.about}
    if config.vectors is None:
        codes = Codes.of(documents, frequent_words(documents, config.min_count))
        return DocTrainee(config, documents, codes, None), about
    words, vectors = _vectors(config.vectors, documents)
    trainee = DocTrainee(config, documents, Codes.of(documents, words), vectors)
    about["vectors"] = {"file": Path(config.vectors).name, "words": len(words), "width": vectors.shape[1]}
    about["vectors"]["coverage"] = _coverage(trainee)
    return trainee, about


def _vectors(path: str, documents: Documents) -> tuple[list[str], Tensor]:
    """The words of the documents, as they are or in lower case, that the file has; and their vectors."""
    wanted = {form for word in documents.types for form in (word, word.lower())} - set(SPECIALS)
    found: dict[str, None] = {}
    numbers = array("f")  # grows in place: the table may be most of the memory there is
    with bar("reading word vectors") as progress:
        for word, vector in each_vector(path, wanted, progress):
            if word not in found:
                found[word] = None
                numbers.frombytes(vector.tobytes())
    if not found:
        raise ValueError(f"{path} has no vector for any word of the documents")
    return list(found), torch.frombuffer(numbers, dtype=torch.float32).view(len(found), -1)


def _coverage(trainee: DocTrainee) -> dict[str, float]:
    """The share of words, as they stand in the text, that have a vector."""
    known = trainee.table.rows >= len(SPECIALS)
    counts = trainee.documents.counts
    shares = (counts * known[:, None]).sum(0) / counts.sum(0)
    return dict(zip(("train", "test"), np.round(shares, 4).tolist(), strict=True))


def begin(trainee: DocTrainee, run: Run) -> None:
    """What the run folder holds from the start. Given vectors never change, so no checkpoint has them."""
    trainee.codes.save(run.folder)
    if trainee.config.vectors:
        frozen = trainee.model.words.frozen
        assert isinstance(frozen, Tensor)
        write_whole(run.folder / VECTORS, lambda file: np.save(file, frozen.numpy()))


def _kept_vectors(run: Run, config: DocConfig, codes: Codes) -> Tensor | None:
    """The given vectors of a run, from its folder: those of all words but the special ones."""
    if config.vectors is None:
        return None
    path = run.file(VECTORS)
    try:
        vectors = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    words = len(codes.words) - len(SPECIALS)
    if vectors.ndim != 2 or len(vectors) != words or vectors.dtype != np.float32:
        raise ValueError(f"{path} is damaged: it does not hold the vectors of {words:,} words")
    return torch.from_numpy(vectors)


def _codes(run: Run) -> Codes:
    for name in CODES:
        run.file(name)
    return Codes.load(run.folder)


def resume(run: Run, data: str | None = None) -> DocTrainee:
    """The training of an interrupted run, where its last saved state left it."""
    config: DocConfig = from_dict(DocConfig, run.config)
    documents = _documents(config, run.data(data))
    run.check_data(documents.about["fingerprint"])
    codes = _codes(run)
    trainee = DocTrainee(config, documents, codes, _kept_vectors(run, config, codes))
    if run.last.exists():
        trainee.restore(checkpoint.load(run.last, "doc"))
    return trainee


def headline(trainee: DocTrainee) -> str:
    """What is about to be trained."""
    config, about = trainee.config, trainee.documents.about
    parameters = sum(p.numel() for p in trainee.model.parameters())
    parts = "; ".join(
        f"{name} {about[name]['documents']:,} documents, {about[name]['tokens']:,} words"
        for name in ("train", "test")
    )
    vectors = f"; vectors for {_coverage(trainee)['train']:.1%} of the words" if config.vectors else ""
    settings = f"{config.unit}, preset {config.preset}, {parameters:,} parameters"
    return f"{settings}; {about['source']}: {len(about['classes'])} classes; {parts}{vectors}"


def finish(trainee: DocTrainee, run: Run, console: Console) -> None:
    """After training: test the weights that were best on validation."""
    figures: dict[str, Any] = {"unit": trainee.config.unit, **figures_of(trainee)}
    if run.best.exists():
        best = checkpoint.load(run.best, "doc")
        load_weights(trainee.model, best["model"])
        if "error" in best["figures"]:  # weights that were imported have none
            figures["valid_error"] = round(best["figures"]["error"], 4)
        test = trainee.documents.test
        with bar("testing") as progress:
            found = measure(trainee, test, np.arange(len(test)), progress)
        figures |= {"test_error": round(found["error"], 4), "test_loss": round(found["loss"], 5)}
    run.add_metrics(**figures)
    print_figures(console, figures)


def empty_model(run: Run) -> Classifier:
    """A model of a run's shape."""
    return _empty(run, _codes(run))


def _empty(run: Run, codes: Codes) -> Classifier:
    config: DocConfig = from_dict(DocConfig, run.config)
    sizes = len(codes.characters), len(codes.classes), len(codes.words)
    return Classifier(config, *sizes, _kept_vectors(run, config, codes))


def load(run: Run, last: bool = False) -> tuple[Classifier, Codes]:
    """The best weights of a run, or the last ones, ready for use."""
    codes = _codes(run)
    model = _empty(run, codes)
    load_weights(model, _weights(run, last))
    return model.eval(), codes


def _weights(run: Run, last: bool = False) -> dict[str, Tensor]:
    path = run.file("last.ckpt" if last else "best.ckpt")
    weights: dict[str, Tensor] = checkpoint.load(path, "doc")["model"]
    return weights


def evaluate(run: Run, options: EvaluateConfig, console: Console) -> dict[str, Any]:
    """Error and loss on a part of the data."""
    if options.threads:
        torch.set_num_threads(options.threads)
    config: DocConfig = from_dict(DocConfig, run.config)
    weights = _weights(run, options.last)
    codes = _codes(run)
    documents = _documents(config, run.data(options.data))
    if options.memory and documents.about["source"] != "builtin:cues":
        raise ValueError("--memory needs to know the deciding words: it is for the built-in cues only")
    if documents.classes != codes.classes.words:
        raise ValueError(
            f"the data has the classes {', '.join(documents.classes)}; "
            f"{run.folder} tells {', '.join(codes.classes.words)}"
        )
    trainee = DocTrainee(config, documents, codes, _kept_vectors(run, config, codes))
    load_weights(trainee.model, weights)
    part = documents.test if options.part == "test" else documents.train
    numbers = {
        "train": trainee.train_numbers,
        "valid": trainee.valid_numbers,
        "test": np.arange(len(documents.test)),
    }[options.part]
    with bar(f"evaluating on {options.part}") as progress:
        found = measure(trainee, part, numbers, progress)
    figures = {name: round(value, 5) for name, value in found.items()}
    if options.memory:
        made = generator.documents(len(documents.test), part="test", seed=documents.about["seed"])
        figures |= cues_remembered(trainee.model.eval(), codes, made)
    return {"part": options.part, "documents": len(numbers), **figures}


def predict(run: Run, options: PredictConfig, console: Console) -> None:
    """A document a line in; its label and the probabilities of all classes out."""
    model, codes = load(run)
    longest = from_dict(DocConfig, run.config).longest_test or None
    for line in each_line(options.files):
        words = basic_tokens(line)[:longest]
        shares = model.probabilities(encode_texts([words], codes))[0].tolist() if words else []
        named = dict(zip(codes.classes.words, shares, strict=bool(shares)))
        label = max(named, key=named.__getitem__) if named else None
        if options.format == "json":
            print(json.dumps({"label": label, "probabilities": named}), flush=True)
        else:
            shown = "  ".join(f"{name} {share:.4f}" for name, share in named.items())
            print(f"{label}\t{shown}" if label is not None else "", flush=True)


def remembered(run: Run, text: str) -> Remembered:
    """What the run's model remembers of a text."""
    model, codes = load(run)
    longest = from_dict(DocConfig, run.config).longest_test or None
    return remember(model, codes, basic_tokens(text)[:longest])


def remembered_example(run: Run) -> Remembered | None:
    """The same for a test document of at least twelve words that the model gets right; None without one."""
    config: DocConfig = from_dict(DocConfig, run.config)
    model, codes = load(run)
    documents = _documents(config, run.data())
    test = documents.test
    by_length = np.argsort(test.lengths, kind="stable")
    for number in by_length[test.lengths[by_length] >= 12][:50].tolist():
        words = [documents.types[int(token)] for token in test.document(number, config.longest_test)]
        found = remember(model, codes, words)
        if found.label == codes.classes.words[test.labels[number]]:
            return found
    return None


def parameters() -> list[tuple[str, str, int]]:
    """Preset, unit and exact count of the paper's setting."""
    configs = [DocConfig(**PRESETS["paper"] | {"unit": unit}) for unit in UNITS]
    return [("paper", config.unit, count(config, CHARACTERS, CLASSES)) for config in configs]


PARAMETERS_NOTE = (
    "Two classes. Of the word vectors only the three special ones count, the others stay as they are; 145 "
    "characters, which the paper does not print: its figures allow 139 to 151."
)
