"""The figures that Zhang & Sennrich (ACL 2019) print: the one table of them, and what a task asks it.

A task's figures are given only for the paper's preset on the paper's own data, which its size tells from any
other; everywhere else a function gives an empty table. :func:`elsewhere` alone gives them whatever the data
is, and says what they are of. Needs no torch.
"""

from __future__ import annotations

# Parameters by task, preset and unit. WikiText-2's are not printed; for named entities without word vectors.
_PARAMETERS: dict[str, dict[str, dict[str, str]]] = {
    "lm": {"paper-ptb": {"lstm": "22M", "gru": "17M", "atr": "9M", "sru": "13M", "lrn": "11M"}},
    "doc": {"paper": {"lstm": "227K", "gru": "176K", "atr": "74K", "sru": "194K", "lrn": "151K"}},
    "nli": {"paper": {"lstm": "8.36M", "gru": "6.41M", "atr": "2.87M", "sru": "5.48M", "lrn": "4.25M"}},
    "rc": {"paper": {"lstm": "2.67M", "gru": "2.31M", "atr": "1.59M", "sru": "2.44M", "lrn": "2.14M"}},
    "mt": {"paper": {"gru": "206M", "atr": "122M", "sru": "170M", "lrn": "143M", "olrn": "164M"}},
    "ner": {"paper": {"lstm": "245K", "gru": "192K", "atr": "87K", "sru": "161K", "lrn": "129K"}},
}

# Language models' test perplexity by preset and unit: as trained, after finetuning, with dynamic evaluation.
_PERPLEXITY: dict[str, dict[str, tuple[float, ...]]] = {
    "paper-ptb": {
        "lstm": (63.78, 62.12, 53.11),
        "gru": (69.09, 67.61, 60.21),
        "atr": (66.24, 65.86, 58.29),
        "sru": (69.64, 65.29, 60.97),
        "lrn": (61.26, 61.00, 54.45),
        "glrn": (92.49,),
        "elrn": (169.81,),
    },
    "paper-wt2": {
        "lstm": (69.78, 68.68, 44.60),
        "gru": (73.37, 73.05, 49.77),
        "atr": (75.36, 73.35, 48.65),
        "sru": (85.15, 84.97, 57.97),
        "lrn": (69.91, 68.86, 46.97),
    },
}

# Training words of the paper's data by preset, which tell it from other texts.
_WORDS = {"paper-ptb": 929_589, "paper-wt2": 2_088_628}

# Named entity recognition: F1 on CoNLL-2003's test set.
_SENTENCES = 14_041  # for training
_F1 = {"lstm": 89.61, "gru": 89.35, "atr": 88.46, "sru": 88.89, "lrn": 88.56}

# Document classification: test error in percent, seconds a batch on a GTX 1080 Ti; by the number of classes
# and of training documents, which tell the sets apart.
_ERROR: dict[tuple[int, int], dict[str, tuple[float, float]]] = {
    (2, 3_600_000): {
        "lstm": (4.37, 0.947),
        "gru": (4.39, 0.948),
        "atr": (4.78, 0.867),
        "sru": (4.95, 0.919),
        "lrn": (4.98, 0.731),
    },
    (10, 1_400_000): {
        "lstm": (24.62, 1.332),
        "gru": (24.68, 1.242),
        "atr": (25.33, 1.117),
        "sru": (24.78, 1.394),
        "lrn": (25.07, 1.038),
    },
    (5, 3_000_000): {
        "lstm": (37.22, 1.003),
        "gru": (37.20, 0.982),
        "atr": (38.54, 0.836),
        "sru": (38.23, 0.907),
        "lrn": (38.42, 0.788),
    },
    (2, 560_000): {
        "lstm": (3.58, 1.362),
        "gru": (3.47, 1.230),
        "atr": (4.00, 1.124),
        "sru": (3.99, 1.310),
        "lrn": (3.98, 1.022),
    },
}

_DOCUMENT_SETS = ("AmaPolar", "Yahoo", "AmaFull", "YelpPolar")  # in the order above

# Natural language inference: accuracy on SNLI's test set in percent by preset, and seconds a training batch.
_PAIRS = 549_367  # for training
_ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    "paper": {
        "lstm": (84.27, 0.262),
        "gru": (85.71, 0.245),
        "atr": (84.88, 0.210),
        "sru": (84.28, 0.258),
        "lrn": (84.88, 0.209),
    },
    "paper-ln": {
        "lstm": (86.03, 0.432),
        "gru": (86.05, 0.419),
        "atr": (85.81, 0.307),
        "sru": (85.32, 0.283),
        "lrn": (85.06, 0.223),
        "glrn": (84.72,),
        "elrn": (83.56,),
    },
    "paper-bert": {
        "lstm": (89.95, 0.544),
        "gru": (90.29, 0.529),
        "atr": (90.00, 0.494),
        "sru": (89.98, 0.543),
        "lrn": (89.98, 0.488),
    },
    "paper-ln-bert": {
        "lstm": (90.49, 0.696),
        "gru": (90.10, 0.695),
        "atr": (90.28, 0.580),
        "sru": (90.09, 0.555),
        "lrn": (89.93, 0.506),
    },
}

# Reading comprehension: exact match and F1 on SQuAD's development set in percent, by preset.
_ASKED = 87_599  # questions for training
_ANSWERS: dict[str, dict[str, tuple[float, float]]] = {
    "paper": {
        "lstm": (70.46, 78.98),
        "gru": (70.41, 79.15),
        "atr": (69.73, 78.70),
        "sru": (69.27, 78.41),
        "lrn": (70.11, 78.83),
    },
    "paper-elmo": {
        "lstm": (75.17, 82.79),
        "gru": (75.81, 83.12),
        "atr": (75.06, 82.76),
        "sru": (74.56, 82.50),
        "lrn": (76.14, 83.83),
    },
}


# Machine translation: BLEU on newstest2014 (English to German), seconds a training batch on a Tesla P100, and
# milliseconds to decode a sentence. The paper says 4.5 million pairs; their exact number is not known.
_TRANSLATED_PAIRS = range(4_400_000, 4_600_000)  # for training
_BLEU: dict[str, tuple[float, float, float]] = {
    "gru": (26.28, 2.67, 45.35),
    "atr": (25.70, 1.33, 34.40),
    "sru": (25.91, 1.34, 42.84),
    "lrn": (26.26, 0.99, 36.50),
    "olrn": (26.73, 1.15, 40.19),
}


def on_its_data(task: str, preset: str) -> dict[str, dict[str, str]]:
    """The paper's figures by data set and unit for a preset, to stand beside runs on other data.

    >>> {data: found["lrn"] for data, found in on_its_data("nli", "paper").items()}
    {'SNLI, 549,367 pairs': '84.88'}
    """
    words = {"Penn Treebank": _WORDS["paper-ptb"], "WikiText-2": _WORDS["paper-wt2"]}
    pairs = _TRANSLATED_PAIRS[len(_TRANSLATED_PAIRS) // 2]
    found: dict[str, dict[str, dict[str, str]]] = {
        "lm": {f"{name}, {count:,} words": perplexity(preset, count) for name, count in words.items()},
        "ner": {f"CoNLL-2003, {_SENTENCES:,} sentences": f1(preset, _SENTENCES)},
        "doc": {
            f"{name}, {documents:,} documents": error(preset, classes, documents)
            for name, (classes, documents) in zip(_DOCUMENT_SETS, _ERROR, strict=True)
        },
        "nli": {f"SNLI, {_PAIRS:,} pairs": accuracy(preset, _PAIRS)},
        "rc": {f"SQuAD 1.1, {_ASKED:,} questions": answers(preset, _ASKED)},
        "mt": {f"WMT14 English-German, {pairs / 1e6:.1f} million pairs": bleu(preset, pairs)},
    }
    return {data: figures for data, figures in found[task].items() if figures}


def elsewhere(task: str, preset: str, classes: int = 0) -> tuple[str, dict[str, str]]:
    """The paper's figures by unit on its own data and in its own size, and before them what they are of.

    They are of the preset, or of the paper's usual one. Of the sets of documents it is the one with so many
    classes; where there are several, or none, YelpPolar, the smallest.

    >>> elsewhere("doc", "quick", classes=10)[0], elsewhere("nli", "quick")[1]["lrn"]
    ('Yahoo, 1,400,000 documents', '84.88')
    """
    usual = "paper-ptb" if task == "lm" else "paper"
    chosen = preset if on_its_data(task, preset) else usual
    found = on_its_data(task, chosen)
    names = [*found]
    if task == "doc":
        names = [name for name, (number, _) in zip(found, _ERROR, strict=True) if number == classes] or names
    return (names[-1] if chosen in ("paper", "paper-ptb") else f"{names[-1]}, {chosen}"), found[names[-1]]


def parameters(task: str, preset: str) -> dict[str, str]:
    """The paper's parameter counts by unit, as it prints them.

    >>> parameters("doc", "paper")["lrn"]
    '151K'
    """
    return dict(_PARAMETERS.get(task, {}).get(preset, {}))


def perplexity(preset: str, words: int) -> dict[str, str]:
    """The paper's test perplexities by unit, as trained, for a preset and so many words of training text.

    >>> perplexity("paper-ptb", 929_589)["lrn"], perplexity("paper-ptb", 299_198)
    ('61.26', {})
    """
    if preset not in _WORDS or words != _WORDS[preset]:
        return {}
    return {unit: f"{trained:.2f}" for unit, (trained, *_) in _PERPLEXITY[preset].items()}


def f1(preset: str, sentences: int) -> dict[str, str]:
    """The paper's F1 on CoNLL-2003 by unit, for a preset and so many training sentences."""
    if preset != "paper" or sentences != _SENTENCES:
        return {}
    return {unit: f"{value:.2f}" for unit, value in _F1.items()}


def error(preset: str, classes: int, documents: int) -> dict[str, str]:
    """The paper's test errors in percent by unit, for a preset and a set of so many classes and documents."""
    if preset != "paper":
        return {}
    return {unit: f"{percent:.2f}" for unit, (percent, _) in _ERROR.get((classes, documents), {}).items()}


def accuracy(preset: str, pairs: int) -> dict[str, str]:
    """The paper's accuracies on SNLI in percent by unit, for a preset and so many training pairs."""
    if pairs != _PAIRS:
        return {}
    return {unit: f"{percent:.2f}" for unit, (percent, *_) in _ACCURACY.get(preset, {}).items()}


def answers(preset: str, asked: int) -> dict[str, str]:
    """The paper's F1 on SQuAD in percent by unit, for a preset and so many questions for training."""
    if asked != _ASKED:
        return {}
    return {unit: f"{f1:.2f}" for unit, (_, f1) in _ANSWERS.get(preset, {}).items()}


def bleu(preset: str, pairs: int) -> dict[str, str]:
    """The paper's BLEU on newstest2014 by unit, for a preset and so many training pairs."""
    if preset != "paper" or pairs not in _TRANSLATED_PAIRS:
        return {}
    return {unit: f"{value:.2f}" for unit, (value, *_) in _BLEU.items()}
