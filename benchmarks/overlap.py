"""What overlap of words answers: a sliding window on the questions that a reading model is tested on.

    python benchmarks/overlap.py --data squad-v1.1 --seed 1

It prints exact match and F1 of the window alone, and of one that prefers names and numbers where they are
asked for. The questions are those that `lrn train rc` tests on with the same data, seed and articles held
out; without `--data` they are the built-in ones.
"""

from __future__ import annotations

import argparse

from lrn import tasks
from lrn.tasks.rc.baseline import answer_text
from lrn.tasks.rc.config import RCConfig
from lrn.tasks.rc.data import Cut, Part
from lrn.tasks.rc.score import Scored, figures


def score(part: Part, typed: bool) -> dict[str, float]:
    """Exact match and F1 on all questions of a part, those that are too long for a model among them."""
    cuts = [Cut.of(text) for text in part.texts]
    spans = [[*zip(cut.starts.tolist(), cut.ends.tolist(), strict=True)] for cut in cuts]
    scored = [
        Scored.of(
            question,
            golds,
            answer_text(
                cuts[place].text, spans[place], cuts[place].words, Cut.of(question).words, typed=typed
            ),
        )
        for question, golds, place in zip(part.asked, part.answers, part.about.tolist(), strict=True)
    ]
    return figures([*scored, *(Scored(question, golds) for question, golds in part.unread)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--seed", type=int, default=RCConfig.seed)
    parser.add_argument("--held_out", type=int, default=RCConfig.held_out)
    parser.add_argument("--part", choices=("train", "valid", "test"), default="test")
    words = parser.parse_args()
    config = RCConfig(data=words.data, seed=words.seed, held_out=words.held_out)
    data = tasks.load("rc").read(config, words.data, lambda share: None)
    part = getattr(data, words.part)
    print(f"{data.about['source']}: {words.part}, {len(part) + len(part.unread):,} questions")
    for name, typed in (("sliding window", False), ("with names and numbers", True)):
        print(f"{name:24}", "  ".join(f"{what} {value:5.1f}" for what, value in score(part, typed).items()))


if __name__ == "__main__":
    main()
