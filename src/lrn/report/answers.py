"""The page of answers: a text with the answers marked, and which of its words looked at a question's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lrn.files import write_text
from lrn.report import palette

Span = tuple[int, int]  # of characters, the second behind the last


@dataclass(frozen=True)
class Shown:
    """A question, its answers, and the attention to it.

    Args:
        words: the question's words.
        answers: where in the text each answer begins and ends, and its probability; the best first.
        looked: how much each word of the text looked at each of the question, ``looked[text][question]``.
    """

    words: Sequence[str]
    answers: Sequence[tuple[int, int, float]]
    looked: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Picture:
    """All that the page shows: a text, where its words begin and end, and questions about it."""

    text: str
    places: Sequence[Span]
    questions: Sequence[Shown]


def write(picture: Picture, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, page(picture))


STYLE = (
    f":root {{ color-scheme: light dark; --accent: {palette.ACCENT} }}"
    + """
body { margin: 0 auto; max-width: 900px; padding: 1.2rem; font: 17px/1.7 system-ui, sans-serif }
h1 { font-size: 1.2rem } h2 { font-size: .85rem; font-weight: normal; color: gray; margin: 1.2rem 0 .3rem }
#text { white-space: pre-wrap; margin: 0 } #text span { border-radius: 3px }
#text .answer { border-bottom: 3px solid var(--accent); font-weight: bold }
section { border-left: 3px solid transparent; padding: .2rem .8rem; margin: .4rem 0; cursor: pointer }
section.now { border-left-color: var(--accent) } section p { margin: 0 }
section .words span { padding: .12em .2em; border-bottom: 2px solid transparent }
section .words span:hover, section .words span:focus { border-color: var(--accent); outline: none }
section .words .now { border-color: var(--accent) }
ol { margin: .1rem 0 .3rem; padding-left: 1.6rem; font-size: .9rem } li span { color: gray }
p.note { color: gray; font-size: .85rem; line-height: 1.5 }
"""
)
SCRIPT = """
const data = JSON.parse(document.querySelector("#data").textContent);
const all = (what, within = document) => [...within.querySelectorAll(what)];
const text = all("#text span"), sections = all("section");
const words = sections.map((section) => all(".words span", section));
const show = (question, word) => {
  const { looked, answer } = data[question];
  sections.forEach((section, k) => section.classList.toggle("now", k === question));
  words.forEach((row, q) => row.forEach((span, k) =>
    span.classList.toggle("now", q === question && k === word)));
  text.forEach((span, k) => {
    const weight = looked[k][word];
    span.classList.toggle("answer", answer[0] <= k && k <= answer[1]);
    span.style.background = `color-mix(in srgb, var(--accent) ${Math.round(70 * weight)}%, transparent)`;
    span.title = weight.toFixed(3);
  });
};
sections.forEach((section, q) => {
  section.addEventListener("click", () => show(q, data[q].word));
  words[q].forEach((span, k) => {
    for (const on of ["mouseenter", "focus"]) span.addEventListener(on, () => show(q, k));
    span.addEventListener("click", (event) => { event.stopPropagation(); show(q, k); });
  });
});
show(0, data[0].word);
"""


def page(picture: Picture) -> str:
    """A page that needs nothing else: point at a question's word to see what of the text looked at it."""
    first = _tokens(picture, picture.questions[0]) if picture.questions else (0, -1)
    sections = "".join(_section(picture, shown) for shown in picture.questions)
    data = [_data(picture, shown) for shown in picture.questions]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Answers</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body><h1>Answers</h1>'
        f'<p id="text">{_text(picture, first)}</p><h2>questions</h2>{sections}'
        '<p class="note">The answer is underlined. Choose a question, or point at one of its words: '
        "the darker a word of the text, the more it looked at that word of the question when the text "
        "was read.</p>"
        f'<script type="application/json" id="data">{json.dumps(data)}</script>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _tokens(picture: Picture, shown: Shown) -> Span:
    """The first and the last word of the best answer."""
    start, end, _ = shown.answers[0]
    inside = [k for k, (begin, stop) in enumerate(picture.places) if begin < end and stop > start]
    return inside[0], inside[-1]


def _data(picture: Picture, shown: Shown) -> dict[str, object]:
    """What the script needs: the answer's words, the attention, the word that the answer looked at most."""
    first, last = _tokens(picture, shown)
    of_answer = [sum(column) for column in zip(*shown.looked[first : last + 1], strict=True)]
    return {
        "answer": [first, last],
        "looked": [[round(weight, 3) for weight in row] for row in shown.looked],
        "word": of_answer.index(max(of_answer)),
    }


def _text(picture: Picture, answer: Span) -> str:
    """The text, a span a word, with what is between them as it is."""
    parts, done = [], 0
    for number, (start, end) in enumerate(picture.places):
        marked = ' class="answer"' if answer[0] <= number <= answer[1] else ""
        parts.append(
            f"{escape(picture.text[done:start])}<span{marked}>{escape(picture.text[start:end])}</span>"
        )
        done = end
    return "".join(parts) + escape(picture.text[done:])


def _section(picture: Picture, shown: Shown) -> str:
    words = " ".join(f"<span tabindex=0>{escape(word)}</span>" for word in shown.words)
    answers = "".join(
        f"<li>{escape(picture.text[start:end])} <span>{probability:.3f}</span></li>"
        for start, end, probability in shown.answers
    )
    return f'<section><p class="words">{words}</p><ol>{answers}</ol></section>'
