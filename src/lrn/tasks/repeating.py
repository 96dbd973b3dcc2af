"""The tables and figures of Zhang & Sennrich (ACL 2019): what repeats each here, on what data, and what is
measured already. Needs no torch.

It has no figures: the paper's stand in ``paper.py``, ours in the pages of ``docs`` that it names.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

WIDTH = 100
UNITS = "lstm,gru,atr,sru,lrn"  # those that the paper compares in most tables


@dataclass(frozen=True)
class Command:
    """A command line, and what it is for."""

    line: str
    purpose: str


@dataclass(frozen=True)
class Data:
    """Something to have before the commands can run.

    Args:
        name: what it is called.
        files: the names of its files.
        size: how large it is, as the paper or its makers say.
        source: where the paper took it from.
    """

    name: str
    files: str
    size: str
    source: str


@dataclass(frozen=True)
class Link:
    """A section of our pages, and what it has."""

    page: str
    what: str


@dataclass(frozen=True)
class Entry:
    """A table, a figure or a section of the paper.

    Args:
        name: what it is asked for by.
        title: what it shows.
        commands: what repeats it.
        data: what it needs.
        measured: what we have measured of it.
        settings: the section that says where our settings follow the paper's text, its code, or neither.
        note: what else there is to know.
    """

    name: str
    title: str
    commands: tuple[Command, ...]
    data: tuple[Data, ...]
    measured: tuple[Link, ...]
    settings: str = ""
    note: str = ""

    def text(self) -> str:
        """A screen for a terminal."""
        lines = [f"{self.name}: {self.title}", ""]
        for command in self.commands:
            lines += [f"  {command.line}", _indented(command.purpose, 6)]
        if self.data:
            lines += ["", "  needs"]
            lines += [_indented(f"{d.name}: {d.files}; {d.size}. From {d.source}.", 4) for d in self.data]
        lines += ["", "  measured"]
        lines += [_indented(f"{link.page}: {link.what}", 4) for link in self.measured] or ["    nothing yet"]
        if self.settings:
            lines += ["", "  settings", f"    {self.settings}"]
        if self.note:
            lines += ["", _indented(self.note, 2)]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def _indented(text: str, columns: int) -> str:
    """Lines of a paragraph; the names of pages and files are never cut."""
    before = " " * columns
    return fill(
        text,
        WIDTH,
        initial_indent=before,
        subsequent_indent=before,
        break_long_words=False,
        break_on_hyphens=False,
    )


# Data -------------------------------------------------------------------------------------------

_GLOVE = Data(
    "GloVe 840B",
    "glove.840B.300d.txt",
    "2.2 million words, 300 numbers each",
    "Pennington et al. (2014), nlp.stanford.edu/projects/glove",
)
_SMALL_GLOVE = Data(
    "GloVe 6B",
    "glove.6B.100d.txt",
    "400,000 words, 100 numbers each",
    "Pennington et al. (2014), nlp.stanford.edu/projects/glove",
)
_SNLI = Data(
    "SNLI 1.0",
    "snli_1.0_train.jsonl, snli_1.0_dev.jsonl, snli_1.0_test.jsonl",
    "549,367 / 9,842 / 9,824 pairs with a label",
    "Bowman et al. (2015), nlp.stanford.edu/projects/snli",
)
_BERT = Data(
    "BERT",
    "config.json, vocab.txt, model.safetensors",
    "the base model, 12 layers of 768",
    "Devlin et al. (2018), in Hugging Face's format",
)
_PTB = Data(
    "Penn Treebank",
    "train.txt, valid.txt, test.txt (Mikolov's ptb.train.txt and so on, renamed)",
    "929,589 / 73,760 / 82,430 words, 10,000 types",
    "Mikolov et al. (2010), by way of github.com/zihangdai/mos",
)
_WT2 = Data(
    "WikiText-2",
    "wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens",
    "2,088,628 words for training, 33,278 types",
    "Merity et al. (2016), by way of github.com/zihangdai/mos",
)
_ZHANG = "Zhang et al. (2015)"
_AMAPOLAR = Data(
    "AmaPolar",
    "train.csv, test.csv",
    "3,600,000 / 400,000 documents, 2 classes",
    f"{_ZHANG}: Amazon Review Polarity",
)
_DOCUMENTS = (
    _AMAPOLAR,
    Data(
        "Yahoo",
        "train.csv, test.csv",
        "1,400,000 / 60,000 documents, 10 classes",
        f"{_ZHANG}: Yahoo! Answers",
    ),
    Data(
        "AmaFull",
        "train.csv, test.csv",
        "3,000,000 / 650,000 documents, 5 classes",
        f"{_ZHANG}: Amazon Review Full",
    ),
    Data(
        "YelpPolar",
        "train.csv, test.csv",
        "560,000 / 38,000 documents, 2 classes",
        f"{_ZHANG}: Yelp Review Polarity",
    ),
)
_WMT = Data(
    "WMT14 English-German",
    "train.en and train.de, valid.en and valid.de (newstest2013), test.en and test.de (newstest2014)",
    "4.5 million pairs for training, segmented into pieces",
    "Bojar et al. (2014); the paper links to it, segmented: "
    "drive.google.com/open?id=15WRLfle66CO1zIGKbyz0FsFmUcINyb4X",
)
_SQUAD = Data(
    "SQuAD 1.1",
    "train-v1.1.json, dev-v1.1.json",
    "87,599 / 10,570 questions; the second file is validated and tested on, as in the paper",
    "Rajpurkar et al. (2016)",
)
_ELMO = Data(
    "ELMo",
    "options.json, weights.hdf5",
    "the original model, 2 layers, 1,024 numbers a word",
    "Peters et al. (2018)",
)
_CONLL = Data(
    "CoNLL-2003, English",
    "eng.train, eng.testa, eng.testb",
    "14,041 / 3,250 / 3,453 sentences",
    "Tjong Kim Sang & De Meulder (2003); the text itself is Reuters', and not free",
)


# The paper --------------------------------------------------------------------------------------


def _on_snli(preset: str, what: str, more: str = "") -> Command:
    given = f"--preset {preset} --data snli_1.0 --vectors glove.840B.300d.txt{more}"
    return Command(
        f"lrn compare nli {given} --units {UNITS}", f"{what}: accuracy, parameters and time a batch"
    )


def _on_documents(folder: str, name: str) -> Command:
    given = (
        f"--preset paper --data {folder} --vectors glove.840B.300d.txt --out comparisons/doc-{name.lower()}"
    )
    return Command(f"lrn compare doc {given} --units {UNITS}", f"{name}: error, parameters and time a batch")


def _on_words(preset: str, folder: str, seed: int, rate: int, constants: str = "") -> tuple[Command, ...]:
    given = f"--preset {preset} --data {folder}"
    return (
        Command(
            f"lrn compare lm {given} --seeds {seed} --units {UNITS}",
            "Base, with the paper's seed; RUN below is the run of each unit in its folder",
        ),
        Command(
            f"lrn train lm {given} --unit UNIT --stage finetune --start RUN --lr {rate}",
            "+Finetune, a run of its own, which is RUN in the next line",
        ),
        Command(f"lrn evaluate RUN --dynamic{constants}", "+Dynamic"),
    )


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "table-1",
        "natural language inference on SNLI: accuracy, and seconds a training batch",
        (
            _on_snli("paper", "Base"),
            _on_snli("paper-ln", "+LN"),
            _on_snli("paper-bert", "+BERT", " --bert FOLDER"),
            _on_snli("paper-ln-bert", "+LN+BERT", " --bert FOLDER"),
            Command("lrn params nli", "the parameters of every unit beside the paper's"),
        ),
        (_SNLI, _GLOVE, _BERT),
        (
            Link(
                "docs/results.md#natural-language-inference-snli",
                "on a part of SNLI, fewer epochs; time, memory",
            ),
        ),
        settings="docs/faithfulness.md#natural-language-inference-paper-paper-ln-paper-bert-paper-ln-bert",
    ),
    Entry(
        "table-2",
        "document classification on four data sets: test error, and seconds a training batch",
        (
            _on_documents("amazon_review_polarity_csv", "AmaPolar"),
            _on_documents("yahoo_answers_csv", "Yahoo"),
            _on_documents("amazon_review_full_csv", "AmaFull"),
            _on_documents("yelp_review_polarity_csv", "YelpPolar"),
            Command("lrn params doc", "the parameters of every unit beside the paper's"),
        ),
        (*_DOCUMENTS, _GLOVE),
        (
            Link(
                "docs/results.md#document-classification-imdb", "on IMDB, which stands in for AmaPolar; time"
            ),
        ),
        settings="docs/faithfulness.md#document-classification-paper",
    ),
    Entry(
        "table-3",
        "machine translation, English to German: BLEU, seconds a training batch, ms to decode a sentence",
        (
            Command(
                "lrn compare mt --preset paper --data wmt14 --units gru,atr,sru,lrn,olrn",
                "BLEU, parameters and time a batch",
            ),
            Command(
                "lrn average RUN --last 5",
                "a run with the mean of the last weights, which the paper's code tests",
            ),
            Command(
                "lrn evaluate RUN --beam 4", "of that run: every kind of BLEU, and the time of a sentence"
            ),
            Command("lrn params mt", "the parameters of every unit beside the paper's"),
        ),
        (_WMT,),
        (
            Link(
                "docs/results.md#machine-translation-multi30k",
                "a smaller model on Multi30k, five units; a step of the paper's own",
            ),
        ),
        settings="docs/faithfulness.md#machine-translation-paper",
        note="The caption says case-insensitive tokenised BLEU, the text case-sensitive; there are both.",
    ),
    Entry(
        "table-4",
        "reading comprehension on SQuAD: exact match and F1",
        (
            Command(
                f"lrn compare rc --preset paper --data squad --vectors glove.840B.300d.txt --units {UNITS}",
                "Base",
            ),
            Command(
                "lrn compare rc --preset paper-elmo --data squad --vectors glove.840B.300d.txt --elmo FOLDER"
                f" --units {UNITS}",
                "+Elmo",
            ),
            Command("lrn results RUN --test exact,f1", "both figures of a run; a comparison's table has F1"),
            Command("lrn params rc", "the parameters of every unit beside the paper's"),
        ),
        (_SQUAD, _GLOVE, _ELMO),
        (
            Link(
                "docs/results.md#reading-comprehension-squad",
                "five units on a ninth of the data; time and memory; what overlap finds",
            ),
        ),
        settings="docs/faithfulness.md#reading-comprehension-paper-paper-elmo",
    ),
    Entry(
        "table-5",
        "language modelling on Penn Treebank and WikiText-2: test perplexity",
        (
            *_on_words("paper-ptb", "ptb", 28, 15),
            *_on_words("paper-wt2", "wikitext-2", 1882, 20, " --decay 0.02 --epsilon 0.002"),
            Command("lrn params lm", "the parameters of every unit beside the paper's"),
        ),
        (_PTB, _WT2),
        (
            Link(
                "docs/results.md#language-modelling-penn-treebank", "a smaller model on Penn Treebank; speed"
            ),
            Link("docs/results.md#finetuning-and-dynamic-evaluation", "of the smaller model"),
            Link("docs/results.md#the-papers-own-model", "its first steps"),
        ),
        settings="docs/faithfulness.md#language-modelling-paper-ptb-paper-wt2",
        note="The paper tunes the learning rate of each unit by hand and prints LRN's alone, which the "
        "presets have: --lr changes it for others.",
    ),
    Entry(
        "table-6",
        "named entity recognition on CoNLL-2003: F1",
        (
            Command(
                "lrn compare ner --preset paper --data conll2003 --vectors glove.6B.100d.txt"
                f" --seeds 1,2,3,4,5 --units {UNITS}",
                "F1 of the weights that are best on validation, five runs a unit as in the paper's code",
            ),
            Command("lrn results RUN", "the F1 after the last epoch as well, which the paper's code reports"),
            Command("lrn params ner", "the parameters of every unit beside the paper's"),
        ),
        (_CONLL, _SMALL_GLOVE),
        (Link("docs/results.md#named-entity-recognition-conll-2003", "with a part of the vectors; time"),),
        settings="docs/faithfulness.md#named-entity-recognition-paper",
    ),
    Entry(
        "table-7",
        "the ablation: gLRN and eLRN on SNLI (accuracy, Base+LN) and Penn Treebank (perplexity, Base)",
        (
            Command(
                "lrn compare nli --preset paper-ln --data snli_1.0 --vectors glove.840B.300d.txt"
                " --units lrn,glrn,elrn --out comparisons/ablation-nli",
                "SNLI",
            ),
            Command(
                "lrn compare lm --preset paper-ptb --data ptb --seeds 28 --units lrn,glrn,elrn"
                " --out comparisons/ablation-lm",
                "Penn Treebank",
            ),
        ),
        (_SNLI, _GLOVE, _PTB),
        (
            Link("docs/results.md#natural-language-inference-snli", "all three with +LN on a part of SNLI"),
            Link("docs/results.md#language-modelling-penn-treebank", "all three in a smaller model"),
        ),
        note="The released code has neither unit; docs/units.md has their equations.",
    ),
    Entry(
        "figure-1",
        "how much of each token is remembered as a document goes on",
        (
            Command(
                "lrn train doc --preset memory --data amazon_review_polarity_csv"
                " --vectors glove.840B.300d.txt --out runs/memory-amapolar",
                "one direction, whose last state decides",
            ),
            Command("lrn memory RUN --file review.txt", "the figure for a text, as a picture"),
            Command("lrn train doc --preset memory", "the same on documents in which one known word decides"),
            Command("lrn evaluate RUN --memory", "how often that word is remembered, of this last run"),
        ),
        (_AMAPOLAR, _GLOVE),
        (
            Link("docs/memory.md#on-real-reviews", "the figure for a review"),
            Link("docs/memory.md#does-it-hold", "the check on documents made by rule"),
        ),
    ),
    Entry(
        "section-5",
        "the gradient through one step and many (equations; the paper has no figure of them)",
        (
            Command("lrn gradients", "how much arrives how many steps back, with first weights"),
            Command(
                "lrn gradients --keep 5 --out kept.png", "the same where gates begin by keeping the state"
            ),
        ),
        (),
        (Link("docs/memory.md#gradients", "both"),),
    ),
)
NAMES = tuple(entry.name for entry in ENTRIES)


def find(name: str) -> Entry:
    """The entry of a name.

    >>> find("table-6").title
    'named entity recognition on CoNLL-2003: F1'
    """
    return next(entry for entry in ENTRIES if entry.name == name)
