"""The figures that Zhang & Sennrich (ACL 2019) print, as data."""

from __future__ import annotations

# Parameters by task, preset and unit. WikiText-2's are not printed; for named entities without word vectors.
PARAMETERS: dict[str, dict[str, dict[str, str]]] = {
    "lm": {"paper-ptb": {"lstm": "22M", "gru": "17M", "atr": "9M", "sru": "13M", "lrn": "11M"}},
    "doc": {"paper": {"lstm": "227K", "gru": "176K", "atr": "74K", "sru": "194K", "lrn": "151K"}},
    "ner": {"paper": {"lstm": "245K", "gru": "192K", "atr": "87K", "sru": "161K", "lrn": "129K"}},
}

# Language models' test perplexity: as trained, after finetuning, with dynamic evaluation.
LM_PERPLEXITY: dict[str, dict[str, tuple[float, ...]]] = {
    "ptb": {
        "lstm": (63.78, 62.12, 53.11),
        "gru": (69.09, 67.61, 60.21),
        "atr": (66.24, 65.86, 58.29),
        "sru": (69.64, 65.29, 60.97),
        "lrn": (61.26, 61.00, 54.45),
        "glrn": (92.49,),
        "elrn": (169.81,),
    },
    "wt2": {
        "lstm": (69.78, 68.68, 44.60),
        "gru": (73.37, 73.05, 49.77),
        "atr": (75.36, 73.35, 48.65),
        "sru": (85.15, 84.97, 57.97),
        "lrn": (69.91, 68.86, 46.97),
    },
}

# Named entity recognition: F1 on CoNLL-2003's test set.
NER_F1 = {"lstm": 89.61, "gru": 89.35, "atr": 88.46, "sru": 88.89, "lrn": 88.56}
