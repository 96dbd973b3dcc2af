"""Answering questions about a text, and showing where the answers stand and what was looked at."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lrn.nn import best_spans
from lrn.report.views import Attention, Bar, Bars, Mark, Marks, View
from lrn.tasks import asking
from lrn.tasks.rc.config import PredictConfig, RCConfig
from lrn.tasks.rc.data import Cut, QuestionBatch
from lrn.tasks.rc.model import ReadingModel
from lrn.text.lines import each_line

Words = Sequence[str]


@dataclass(frozen=True)
class Answer:
    """Some words of a text: which, where they begin and end among its characters, and how probable."""

    text: str
    start: int
    end: int
    probability: float

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "probability": round(self.probability, 6),
        }


@dataclass(frozen=True)
class Answered:
    """A question about a text and the best answers to it, with ``looked[token][question's token]``: how much
    each token of the text looked at each of the question."""

    text: Cut
    question: Cut
    answers: list[Answer]
    looked: list[list[float]]

    def to_json(self, details: bool = False) -> asking.Answer:
        """In plain texts and numbers.

        With ``details``: the text as it was read (``context``), where its tokens stand (``places``), the
        question's tokens (``asked``) and what ``looked`` says.
        """
        answers = [answer.to_json() for answer in self.answers]
        found: asking.Answer = {"question": self.question.text, **answers[0], "best": answers}
        if not details:
            return found
        places = [[*place] for place in zip(self.text.starts.tolist(), self.text.ends.tolist(), strict=True)]
        more = {"context": self.text.text, "places": places, "asked": [*self.question.words]}
        return found | more | {"looked": self.looked}


Answerer = Callable[[Cut, Cut, int], Answered]


def answerer(
    model: ReadingModel, encode: Callable[[Sequence[Words], Sequence[Words]], QuestionBatch], longest: int
) -> Answerer:
    """A function that gives the best answers, of at most ``longest`` tokens, to a question about a text.

    ``encode`` makes batches of paragraphs and questions.
    """
    device = next(model.parameters()).device

    @torch.no_grad()
    def answer(text: Cut, question: Cut, count: int) -> Answered:
        for what, cut in (("text", text), ("question", question)):
            if not cut.words:
                raise ValueError(f"the {what} is empty: there is nothing to read")
        reading = model.read(encode([text.words], [question.words]).to(device), look=True)
        first, last = (scores.float().log_softmax(-1) for scores in (reading.first, reading.last))
        spans = best_spans(first, last, longest, count)
        found = [
            _answer(text, start, end, score)
            for start, end, score in zip(*(each[0].tolist() for each in spans), strict=True)
            if score > -torch.inf
        ]
        return Answered(text, question, found, reading.looked[0].float().tolist())

    return answer


def _answer(text: Cut, first: int, last: int, score: float) -> Answer:
    start, end = int(text.starts[first]), int(text.ends[last])
    return Answer(text.text[start:end], start, end, float(torch.tensor(score).exp()))


def answer_texts(
    answer: Answerer, requests: Sequence[asking.Request], count: int, details: bool = False
) -> list[asking.Answer]:
    """The best answers to each question, of which a request has the text before it."""
    cuts: dict[str, Cut] = {}  # often several questions are about the same text
    found = []
    for text, question in requests:
        if text not in cuts:
            cuts[text] = Cut.of(text)
        found.append(answer(cuts[text], Cut.of(question.strip()), count).to_json(details))
    return found


def views(answer: asking.Answer) -> list[View]:
    """The text with the best answers marked, all answers, and which words of the text looked at a
    question's."""
    text, places = answer["context"], answer["places"]
    marks, done = [], 0
    for rank, best in sorted(_apart(answer["best"]), key=lambda ranked: ranked[1]["start"]):
        start, end = best["start"], best["end"]
        marks += [Mark(text[done:start]), Mark(text[start:end], str(rank + 1), rank)]
        done = end
    bars = [
        Bar(best["text"], best["probability"], f"{100 * best['probability']:.1f} %")
        for best in answer["best"]
    ]
    looked = [[list(column)] for column in zip(*answer["looked"], strict=True)]
    words = [text[start:end] for start, end in places]
    note = "Choose a word of the question: the stronger its colour, the more a word of the text looked at it."
    return [
        Marks("answer", [mark for mark in [*marks, Mark(text[done:])] if mark.text], large=True),
        Bars("best answers", bars),
        Attention.of("attention", answer["asked"], words, looked, note),
    ]


def _apart(best: Sequence[asking.Answer]) -> list[tuple[int, asking.Answer]]:
    """The answers with their ranks, without those that overlap a better one."""
    kept: list[tuple[int, asking.Answer]] = []
    for rank, one in enumerate(best):
        if all(one["end"] <= other["start"] or other["end"] <= one["start"] for _, other in kept):
            kept.append((rank, one))
    return kept


def example(config: RCConfig) -> list[str]:
    """A text and a question like those that the model was trained on, as far as its settings tell."""
    if config.data is None:
        from lrn.tasks.rc import generator

        (made,) = generator.paragraphs(1, part="test", seed=config.seed)
        return [made.text, made.questions[0].text]
    return [
        "Oslo is the capital of Norway. It was founded as a trading place in 1049 by Harald Hardrada, and "
        "after a fire in 1624 a new city was built nearer to Akershus Fortress by King Christian IV.",
        "Who founded Oslo?",
    ]


def run(answer: Answerer, options: PredictConfig) -> None:
    """Answer the questions as they come."""
    text = Cut.of(_text(options))
    answered: list[Answered] = []
    for line in _questions(options):
        if not line.strip():
            continue
        found = answer(text, Cut.of(line.strip()), options.best)
        _print(found, options.format)
        if options.html is not None:
            answered.append(found)
    if options.html is not None:
        _draw(answered, Path(options.html))


def _text(options: PredictConfig) -> str:
    """The text that is asked about."""
    if options.text is not None:
        return "\n".join(each_line([options.text]))
    if sys.stdin.isatty():
        return input("text: ")
    if options.files:
        return "\n".join(each_line())
    raise ValueError("there is no text to ask about: name a file with --text, or the questions' with --files")


def _questions(options: PredictConfig) -> Iterator[str]:
    """Questions of files or of standard input; in a terminal they are asked for one by one."""
    if not options.files and sys.stdin.isatty():
        while True:
            try:
                yield input("question: ")
            except EOFError:
                print()
                return
    yield from each_line(options.files)


def _print(found: Answered, form: str) -> None:
    if form == "json":
        print(json.dumps(found.to_json(), ensure_ascii=False), flush=True)
        return
    for answer in found.answers:
        words = " ".join(answer.text.split())
        print(f"{words}\t{answer.start}-{answer.end}\t{answer.probability:.4f}", flush=True)


def _draw(answered: Sequence[Answered], path: Path) -> None:
    from lrn.report import answers

    if not answered:
        raise ValueError("there is no question whose answer could be shown")
    shown = [
        answers.Shown(
            one.question.words,
            [(answer.start, answer.end, answer.probability) for answer in one.answers],
            one.looked,
        )
        for one in answered
    ]
    text = answered[0].text
    places = list(zip(text.starts.tolist(), text.ends.tolist(), strict=True))
    answers.write(answers.Picture(text.text, places, shown), path)
    print(f"wrote {path}", file=sys.stderr)
