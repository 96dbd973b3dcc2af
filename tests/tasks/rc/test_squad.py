"""Files of SQuAD's form: what is read, what is refused, and which articles are held out."""

import json

import pytest
from tasks.rc.cases import write_squad

from lrn.tasks.rc.config import RCConfig
from lrn.tasks.rc.squad import read_articles, read_split


def squad(**own):
    question = {"id": "1", "question": "Who?", "answers": [{"text": "Anna", "answer_start": 0}]} | own
    paragraph = {"context": "Anna sleeps.", "qas": [question]}
    return {"version": "1.1", "data": [{"title": "T", "paragraphs": [paragraph]}]}


def written(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_a_file_says(tmp_path):
    (article,) = read_articles(written(tmp_path, squad()))
    assert article.title == "T"
    (passage,) = article.passages
    assert passage.text == "Anna sleeps."
    assert [(asked.text, asked.answers) for asked in passage.asked] == [("Who?", (("Anna", 0),))]


@pytest.mark.parametrize(
    "content",
    [squad() | {"version": "v2.0"}, squad(is_impossible=True, answers=[]), squad(is_impossible=False)],
    ids=["by its version", "by a question without an answer", "by its form"],
)
def test_version_2_is_refused_in_a_line(content, tmp_path):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=r"is SQuAD v2\.0.*expected v1\.1") as error:
        read_articles(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([1], "is not in SQuAD's form: the top level has no 'data'"),
        ({"data": 3}, "not in SQuAD's form: data must be a list, got 3"),
        ({"version": "1.1"}, "the top level has no 'data'"),
        ({"data": [{"title": "T"}]}, "an article has no 'paragraphs'"),
        ({"data": ["T"]}, "an article has no 'paragraphs'"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "a paragraph has no 'context'"),
        ({"data": [{"paragraphs": 3}]}, "paragraphs must be a list, got 3"),
        (squad(answers=[{"text": "Anna"}]), "an answer has no 'answer_start'"),
        (squad(answers=[{"text": "Anna", "answer_start": "0"}]), "an answer is 'Anna' at '0'"),
        (squad(answers=[{"text": None, "answer_start": 0}]), "an answer is None at 0"),
    ],
)
def test_what_is_no_such_file(content, said, tmp_path):
    with pytest.raises(ValueError, match=said) as error:
        read_articles(written(tmp_path, content))
    assert "\n" not in str(error.value)


# Which articles are held out ----------------------------------------------------------------------


def texts(passages):
    return {passage.text for passage in passages}


def split(folder, **own):
    told = []
    config = RCConfig(**{"held_out": 2, "held_out_valid": 3} | own)
    found = read_split(folder, config, told.append)
    assert told[-1] == 1
    return found


def test_all_articles_are_in_one_part(tmp_path):
    folder = write_squad(tmp_path)
    found = split(folder)
    assert found.about["articles"] == {"train": 3, "valid": 3, "test": 2}
    parts = [texts(part) for part in (found.train, found.valid, found.test)]
    assert [len(part) for part in parts] == [9, 9, 6]
    assert len(set.union(*parts)) == 24
    assert len(found.about["tested_articles"]) == 2


def test_the_seed_chooses(tmp_path):
    folder = write_squad(tmp_path)
    chosen = [split(folder, seed=seed).about["tested_articles"] for seed in (1, 1, 2, 3)]
    assert chosen[0] == chosen[1]
    assert len(set(map(tuple, chosen))) == 3


def test_without_validation_articles_the_test_serves(tmp_path):
    found = split(write_squad(tmp_path), held_out_valid=0)
    assert texts(found.valid) == texts(found.test)
    assert len(found.train) == 18


def test_an_article_of_two_files_is_in_one_part(tmp_path):
    folder = write_squad(tmp_path)
    (folder / "copy.json").write_bytes((folder / "some.json").read_bytes())
    found = split(folder)
    parts = [texts(part) for part in (found.train, found.valid, found.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 24
    assert [len(part) for part in (found.train, found.valid, found.test)] == [len(part) for part in parts]


def test_too_few_articles(tmp_path):
    with pytest.raises(ValueError, match="has 8 articles: held_out 6 and held_out_valid 2 leave none"):
        split(write_squad(tmp_path), held_out=6, held_out_valid=2)


def test_the_official_files(tmp_path):
    folder = write_squad(tmp_path, official=True)
    (folder / "more.json").write_text("not read")
    found = read_split(folder, RCConfig(), lambda share: None)
    assert found.about == {"files": ["train-v1.1.json", "dev-v1.1.json"]}
    assert texts(found.valid) == texts(found.test)
    assert not texts(found.train) & texts(found.test)
    with pytest.raises(ValueError, match=r"held_out is for folders without train-v1\.1\.json"):
        split(folder)
