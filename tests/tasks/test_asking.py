"""What every task is asked, in the same way: requests, settings, answers and what a page shows of them."""

import json

import pytest
import torch
from models import make_run

from lrn import tasks
from lrn.names import TASKS
from lrn.report.views import Attention, Bars, Marks, Shades, to_json
from lrn.tasks.asking import Field, Slider, checked, chosen
from lrn.tasks.lm.config import PredictConfig
from lrn.training.config import fits
from lrn.training.run import Run

every_task = pytest.mark.parametrize("task", TASKS)
BOTH = (Field("premise", 10), Field("hypothesis", 10))

VIEWS = {
    "lm": [Marks, Bars, Shades],
    "ner": [Marks],
    "doc": [Bars, Shades, Shades],
    "nli": [Bars, Attention],
    "rc": [Marks, Bars, Attention],
    "mt": [Marks, Bars, Attention],
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A task's model by its name."""
    folder, found = tmp_path_factory.mktemp("runs"), {}

    def of(task):
        if task not in found:
            found[task] = tasks.load(task).load(Run.open(make_run(task, folder / task)))
        return found[task]

    return of


def answer(task, model, request, details=True, **options):
    said = tasks.load(task)
    with torch.no_grad():
        return said.answers(model, [request], chosen(said.settings.predict, said.choices, options), details)[
            0
        ]


# Every task -----------------------------------------------------------------------------------------


@every_task
def test_what_it_is_asked(task):
    said = tasks.load(task)
    assert said.title
    assert said.fields
    assert len({field.name for field in said.fields}) == len(said.fields)
    defaults = vars(said.settings.predict())
    for name, slider in said.choices.items():
        assert name in defaults
        if slider is not None:
            assert slider.least <= slider.value <= slider.most
            assert fits(slider.value, defaults[name])
            for value in (slider.least, slider.most):
                chosen(
                    said.settings.predict,
                    said.choices,
                    {"beam": 12, name: value} if task == "mt" else {name: value},
                )


@every_task
def test_its_example_has_an_answer(task, loaded):
    said, model = tasks.load(task), loaded(task)
    example = said.example(model)
    assert len(example) == len(said.fields)
    for field, text in zip(said.fields, example, strict=True):
        assert 0 < len(text) <= field.most
    found = answer(task, model, example)
    views = said.views(found)
    assert [type(view) for view in views] == VIEWS[task]
    shown = [to_json(view) for view in views]
    assert json.loads(json.dumps(shown)) == shown
    for view in views:
        if isinstance(view, Attention):
            check_attention(view)
        if isinstance(view, Bars):
            assert all(0 <= bar.share <= 1 for bar in view.bars)
        if isinstance(view, Shades):
            assert all(0 <= word.share <= 1 for word in view.words)


def check_attention(view):
    assert view.weights
    for head in view.weights:
        assert len(head) == len(view.rows)
        assert all(len(row) == len(view.columns) for row in head)
        assert all(0 <= weight <= 1 for row in head for weight in row)


@every_task
@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\0", "🦑" * 20, "a\n\nb", "'\"&;${x}{{x}}"])
def test_whatever_is_typed(task, text, loaded):
    said = tasks.load(task)
    found = answer(task, loaded(task), [text] * len(said.fields))
    json.dumps([to_json(view) for view in said.views(found)])


@pytest.mark.parametrize("task", ["doc", "ner", "mt"])
def test_blanks_alone(task, loaded):
    said = tasks.load(task)
    assert said.views(answer(task, loaded(task), ["  \n "])) == []


# By task --------------------------------------------------------------------------------------------


def test_entities_are_marked_where_they_stand(loaded, monkeypatch):
    from lrn.tasks.ner.model import Tagger

    monkeypatch.setattr(Tagger, "tag", lambda self, batch: [["B-PER", "O", "O", "B-LOC", "I-LOC", "O"]])
    found = answer("ner", loaded("ner"), ["José is\nin  New York."])
    (view,) = tasks.load("ner").views(found)
    assert "".join(part.text for part in view.parts) == "José is\nin  New York."
    marked = [(part.text, part.label) for part in view.parts if part.rank >= 0]
    assert marked == [("José", "PER"), ("New York", "LOC")]
    ranks = {part.label: part.rank for part in view.parts}
    assert ranks["PER"] == found["types"].index("PER") != ranks["LOC"]


def test_the_answer_is_marked_in_its_text(loaded):
    text = "Anna Novak was born in Linz. She ''moved'' to Oslo."
    found = answer("rc", loaded("rc"), [text, "Where was she born?"], best=5)
    marks, bars, attention = tasks.load("rc").views(found)
    assert "".join(part.text for part in marks.parts) == text.replace("''", '" ')
    first = next(part for part in marks.parts if part.rank == 0)
    assert first.text == found["text"] == bars.bars[0].name
    assert len(bars.bars) == 5
    assert [part.rank for part in marks.parts if part.rank >= 0]
    assert attention.rows == ["Where", "was", "she", "born", "?"]
    assert attention.columns[:3] == ["Anna", "Novak", "was"]
    for column in zip(*attention.weights[0], strict=True):  # what each word of the text looks at
        assert sum(column) == pytest.approx(1, abs=1e-3)


def test_answers_that_overlap_are_marked_once():
    from lrn.tasks.rc.predict import views

    def best(start, end):
        return {"text": text[start:end], "start": start, "end": end, "probability": 0.1}

    text = "one two three four"
    found = {"context": text, "places": [[0, 3]], "asked": ["who"], "looked": [[1.0]]}
    marks = views(found | {"best": [best(4, 7), best(0, 7), best(8, 13), best(4, 13)]})[0]
    assert [(part.text, part.rank) for part in marks.parts] == [
        ("one ", -1),
        ("two", 0),
        (" ", -1),
        ("three", 2),
        (" four", -1),
    ]


def test_what_a_classifier_looked_at_and_remembers(loaded):
    model = loaded("doc")
    words = ["it", "was", "splendid", "."]
    found = answer("doc", model, [" ".join(words)])
    assert found["words"] == words
    assert sum(found["attention"]) == pytest.approx(1, abs=1e-5)
    remembered = tasks.load("doc")  # by the function that `lrn memory` calls
    from lrn.tasks.doc.memory import remember

    expected = remember(model.model, model.kept.codes, words)
    assert found["memory"]["left"] == pytest.approx(expected.memory.curves[:, -1].tolist())
    assert found["probabilities"] == pytest.approx(expected.probabilities)
    memory = remembered.views(found)[2]
    assert max(word.share for word in memory.words) == 1
    assert "left at the end; half-life" in memory.words[0].tip


@pytest.mark.parametrize(
    ("own", "views"),
    [
        ({"unit": "lstm"}, [Bars, Shades]),
        ({"unit": "lstm", "pooling": "last"}, [Bars]),
        ({"unit": "lrn", "pooling": "last"}, [Bars, Shades]),
    ],
)
def test_classifiers_that_have_less_to_show(own, views, tmp_path):
    model = tasks.load("doc").load(Run.open(make_run("doc", tmp_path / "run", **own)))
    assert [type(view) for view in tasks.load("doc").views(answer("doc", model, ["it was"]))] == views


def test_what_may_follow(loaded):
    """The probabilities are the model's own, of the text so far and of what comes."""
    model = loaded("lm")
    found = answer("lm", model, ["a b c"], words=4, temperature=0)
    network, vocabulary = model.model, model.kept.vocabulary
    with torch.no_grad():
        features, _ = network(torch.tensor(vocabulary.encode(["a", "b", "c"])).unsqueeze(1))
        logs = network.log_probabilities(features)[:, 0]
    expected = [logs[n, number].exp().item() for n, number in enumerate(vocabulary.encode(["b", "c"]))]
    assert found["probabilities"] == [None, *map(pytest.approx, expected)]
    mean = -sum(torch.tensor(expected).log().tolist()) / 2
    assert found["perplexity"] == pytest.approx(torch.tensor(mean).exp().item(), rel=1e-5)
    shares = {one["word"]: one["probability"] for one in found["next"]}
    assert "<unk>" not in shares
    for word, share in shares.items():
        assert share == pytest.approx(logs[2, vocabulary.encode([word])[0]].exp().item(), rel=1e-5)
    assert [*shares.values()] == sorted(shares.values(), reverse=True)
    assert found["continuation"].split()[:1] == [next(iter(shares))]
    alone = answer("lm", model, ["a"], words=1)
    assert alone["perplexity"] is None
    assert len(tasks.load("lm").views(alone)) == 2


def test_an_example_that_the_language_model_knows(loaded):
    """Of a text in which none of ours occurs: the words that it begins with."""
    (text,) = tasks.load("lm").example(loaded("lm"))
    assert text == "a b c d"


def test_a_translation_and_what_it_looked_at(loaded):
    found = answer("mt", loaded("mt"), ["The lamp costs\n $5."], nbest=3)
    assert [one["score"] for one in found["best"]] == sorted(
        (one["score"] for one in found["best"]), reverse=True
    )
    assert found["translation"] == found["best"][0]["text"]
    assert found["source"][-1] == found["target"][-1] == "<eos>"
    same = answer("mt", loaded("mt"), ["The lamp costs $5."], nbest=3)
    assert same == found


# Requests -------------------------------------------------------------------------------------------


def test_requests():
    assert checked([("a", "b"), ["c", ""]], BOTH) == [["a", "b"], ["c", ""]]
    assert checked((), BOTH) == []
    with pytest.raises(TypeError, match="entry 1: expected a premise and a hypothesis, got 'ab'"):
        checked([("a", "b"), "ab"], BOTH)


def test_settings():
    known = {"words": Slider("words", 30, 1, 200), "unknown": None}
    assert chosen(PredictConfig, known, {}) == PredictConfig()
    assert chosen(PredictConfig, known, {"words": 3, "unknown": True}).words == 3
    with pytest.raises(ValueError, match="unknown option 'word'"):
        chosen(PredictConfig, known, {"word": 3})
    with pytest.raises(TypeError, match=r"words cannot be 3\.5"):
        chosen(PredictConfig, known, {"words": 3.5})
    with pytest.raises(TypeError, match="words cannot be True"):
        chosen(PredictConfig, known, {"words": True})
    with pytest.raises(ValueError, match="words must be at least 0"):
        chosen(PredictConfig, known, {"words": -1})
