"""Made articles: each question has one answer, which reading finds and overlap of words does not."""

import re
from collections import Counter
from itertools import chain, islice, product

import pytest

from lrn.tasks.rc import wordings
from lrn.tasks.rc.baseline import answer_text
from lrn.tasks.rc.generator import paragraphs
from lrn.tasks.rc.score import overlap
from lrn.tasks.rc.wordings import TOPICS

PARTS = ("train", "valid", "test")
TOKEN = re.compile(r"[\d,]*\d|\w+|[^\w\s]")


@pytest.fixture(scope="module")
def made():
    return {part: list(paragraphs(400, part=part, seed=1)) for part in PARTS}


def test_a_function_of_the_seed_and_the_part(made):
    assert list(paragraphs(20, part="train", seed=1)) == made["train"][:20]  # more are the same and some more
    assert list(paragraphs(20, part="train", seed=2)) != made["train"][:20]
    assert len({paragraph.text for part in made.values() for paragraph in part}) == 1200
    assert list(paragraphs(0, part="train", seed=1)) == []
    assert next(islice(paragraphs(10**9, part="train", seed=1), 3, None)) == made["train"][3]


@pytest.mark.parametrize(("count", "part", "named"), [(1, "dev", "'dev'"), (-1, "test", "-1")])
def test_what_it_refuses(count, part, named):
    with pytest.raises(ValueError, match=named):
        paragraphs(count, part=part, seed=1)


def test_paragraphs_and_questions(made):
    for paragraph in chain.from_iterable(made.values()):
        assert 40 <= len(paragraph.text.split()) <= 90
        assert 3 <= len(paragraph.questions) <= 5
        assert re.fullmatch(r"[A-Z0-9][\w ,;.'-]+\.", paragraph.text)
        assert "  " not in paragraph.text
        assert len({question.text for question in paragraph.questions}) == len(paragraph.questions)
        for question in paragraph.questions:
            assert re.fullmatch(r"[A-Z][\w ,']+\?", question.text)
            assert paragraph.text[question.start :].startswith(question.answer)
            assert 1 <= len(question.answer.split()) <= 2
            assert not re.search(rf"\b{question.answer}\b", question.text)


def test_answers_of_all_kinds(made):
    kinds = Counter(
        "number"
        if question.answer[0].isdigit()
        else "place"
        if question.answer in wordings.PLACES
        else "name"
        for paragraph in made["train"]
        for question in paragraph.questions
    )
    assert min(kinds.values()) > 0.15 * kinds.total()
    words = Counter(q.text.split()[0] for paragraph in made["train"] for q in paragraph.questions)
    assert {"Who", "When", "Where", "Which", "How", "What", "In"} <= set(words)


def vocabulary(part):
    texts = [text for p in part for text in (p.text, *(question.text for question in p.questions))]
    return {word for text in texts for word in TOKEN.findall(text) if not word[0].isdigit()}


def test_training_has_every_word(made):
    train = vocabulary(paragraphs(2000, part="train", seed=1))
    assert 500 < len(train) < 1500
    assert train >= vocabulary(made["valid"]) | vocabulary(made["test"])


# What is combined ---------------------------------------------------------------------------------


PEOPLE = wordings.WOMEN + wordings.MEN
FIRST = PEOPLE + wordings.COLOURS + wordings.SITES + wordings.BRANDS
SECOND = wordings.LAST + wordings.CONTESTS + wordings.LANDMARKS + wordings.FIRMS
NAME = re.compile(rf"\b(?:{'|'.join(FIRST)}) (?:{'|'.join(SECOND)})\b")


def names(part):
    """Every name of two words."""
    return {name for paragraph in part for name in NAME.findall(paragraph.text)}


def test_each_part_combines_what_the_others_do_not(made):
    for found in (names, combined):
        train, valid, test = (found(made[part]) for part in PARTS)
        assert min(map(len, (train, valid, test))) > 100
        assert not train & valid
        assert not train & test
        assert not valid & test


# Reading them: facts are parsed, and who they are about is found, by rules of its own -----------------


SUBJECT = r"(?:the )?\w+(?: \w+)?(?:'s?)?"  # in a text; in a question it can be longer


def pattern(wording, kind, subject=SUBJECT):
    """What matches a wording: groups s, p, o are who it is about, a is the fact."""
    value = {
        "place": "|".join(wordings.PLACES),
        "person": rf"(?:{'|'.join(wordings.WOMEN + wordings.MEN)}) (?:{'|'.join(wordings.LAST)})",
        "date": rf"\d+ (?:{'|'.join(wordings.MONTHS)})",
        "height": r"\d+ metres",
        "count": r"[\d,]+",
    }.get(kind, r"\d{4}")
    text = re.escape(wording).replace(r"\{", "{").replace(r"\}", "}").replace("{a}", f"(?P<a>{value})")
    for case in "spo":
        text = text.replace(f"{{{case}}}", f"(?P<{case}>{subject})", 1).replace(f"{{{case}}}", subject)
    return re.compile(text, re.IGNORECASE)


CLAUSES = [
    (topic, relation, number, pattern(clause, relation.kind))
    for topic in TOPICS
    for relation in topic.relations
    for number, clause in enumerate(relation.clauses)
]
QUESTIONS = [
    (relation, number, pattern(question, relation.kind, ".+?"))
    for topic in TOPICS
    for relation in topic.relations
    for number, question in enumerate(relation.questions)
]
PREDICATES = [
    (relation, number, pattern(predicate, relation.kind))
    for topic in TOPICS
    for relation in topic.relations
    for number, predicate in enumerate(relation.predicates)
]
GENDERS = {"she": wordings.WOMEN, "her": wordings.WOMEN, "he": wordings.MEN, "his": wordings.MEN}
GENDERS["him"] = wordings.MEN


def matches(table, text):
    """What of a table a text is, from its first to its last character."""
    return [(*row[:-1], match) for row in table if (match := row[-1].fullmatch(text))]


def clauses(sentence):
    """Cut a sentence where facts are linked."""
    if sentence.startswith("While "):
        at = [found.start() for found in re.finditer(", ", sentence)]
        options = [(sentence[len("While ") : place], sentence[place + 2 :]) for place in at]
    else:
        options = [sentence.split(link) for link in ("; ", ", whereas ", ", but ", ", and ")]
    for option in options:
        if len(option) > 1 and all(matches(CLAUSES, clause) for clause in option):
            return option
    return [sentence]


class Reader:
    """The facts of a paragraph, each as its subject's name, relation, wording and value."""

    def __init__(self, text):
        self.facts = []
        self.mentioned = []  # names, the last one last
        self.before = []  # subjects of the last sentence
        for sentence in re.split(r"(?<=\.) ", text):
            order = []
            for clause in clauses(sentence.rstrip(".")):
                self.clause(clause, order)
            self.before = order

    def clause(self, clause, order):
        found = matches(CLAUSES, clause)
        if found:
            _, relation, wording, match = found[0]
            groups = match.groupdict()
            said = min((match.start(case), groups[case]) for case in "spo" if groups.get(case))
            subject = self.subject(said[1])
            self.facts.append((subject, relation, wording, groups["a"]))
            order.append(subject)
            self.mentioned.append(subject)
        self.mentioned += NAME.findall(clause)

    def subject(self, said):
        said = re.sub("^(the|an?) ", "", re.sub("'s?$", "", said), flags=re.IGNORECASE)
        if said.lower() in ("former", "latter"):
            first, second = self.before
            return first if said.lower() == "former" else second
        if said.lower() in GENDERS:
            return next(name for name in reversed(self.mentioned) if name.split()[0] in GENDERS[said.lower()])
        if said.lower() in ("it", "its"):
            return next(name for name in reversed(self.mentioned) if name.split()[0] not in PEOPLE)
        if NAME.fullmatch(said):
            return said
        (name,) = {name for name in self.mentioned if said in name.split()}
        return name

    def answer(self, question):
        """All answers that the facts give to a question, with the wordings that are combined."""
        forms = r"Who|Which \w+|What was the name of the \w+ (?:who|that)|Of which \w+ is it said that it"
        by_name = re.fullmatch(rf"(?:{forms}) (.+)\?", question)
        for relation, number, match in matches(PREDICATES, by_name[1]) if by_name else []:
            return [
                (subject, [(relation.clauses[wording], relation.predicates[number])])
                for subject, told, wording, value in self.facts
                if told == relation and value == match["a"]
            ]
        relation, number, match = matches(QUESTIONS, question)[0]
        subject, also = match["s"], []
        for other, other_number, described in matches(
            PREDICATES, re.sub(r"^the \w+ (who|that) ", "", subject)
        ):
            ((subject, wording),) = [
                (who, wording)
                for who, told, wording, value in self.facts
                if (told, value) == (other, described["a"])
            ]
            also = [(other.clauses[wording], other.predicates[other_number])]
        subject = self.subject(subject)
        return [
            (value, [(relation.clauses[wording], relation.questions[number]), *also])
            for who, told, wording, value in self.facts
            if (who, told) == (subject, relation)
        ]


def combined(part):
    """Each way of saying a fact with each way of asking for it, or of naming its subject by it."""
    return {
        both
        for paragraph in part
        for reader in [Reader(paragraph.text)]
        for question in paragraph.questions
        for _, combined in reader.answer(question.text)
        for both in combined
    }


@pytest.mark.parametrize("part", PARTS)
def test_reading_gives_one_answer(made, part):
    for paragraph in made[part]:
        reader = Reader(paragraph.text)
        for question in paragraph.questions:
            answers = [answer for answer, _ in reader.answer(question.text)]
            assert answers == [question.answer], (paragraph.text, question, reader.facts)


def test_facts_stand_once(made):
    """So that no other place of the paragraph is as right as the one that is given."""
    for paragraph in made["test"]:
        for question in paragraph.questions:
            if not NAME.fullmatch(question.answer):
                assert len(re.findall(rf"(?<![\d,]){question.answer}(?![\w]|,\d)", paragraph.text)) == 1


def test_years_of_a_life_are_in_order(made):
    died, famous = TOPICS[0].relations[2:4]
    seen = 0
    for paragraph in made["train"]:
        years = {(who, told): value for who, told, _, value in Reader(paragraph.text).facts}
        for (who, told), value in years.items():
            if told == famous and (who, died) in years:
                seen += 1
                assert value < years[who, died]
    assert seen > 20


# What can be found without reading ----------------------------------------------------------------


def cut(text):
    found = list(TOKEN.finditer(text))
    return [match.span() for match in found], [match[0] for match in found]


def score(part, typed):
    found = [
        overlap(
            answer_text(paragraph.text, spans, tokens, cut(question.text)[1], typed=typed), question.answer
        )
        for paragraph in part
        for spans, tokens in [cut(paragraph.text)]
        for question in paragraph.questions
    ]
    return 100 * sum(found) / len(found)


@pytest.mark.parametrize("typed", [False, True])
def test_overlap_of_words_does_not_find_the_answers(made, typed):
    """Not even when it knows whether a name or a number is wanted."""
    for part in PARTS:
        assert score(made[part][:200], typed) < 40


def test_distractors_share_as_many_words_with_the_question(made):
    """The sentence with the answer has most words of its question less often than not."""
    best = questions = 0
    for paragraph, question in ((p, q) for p in made["test"] for q in p.questions):
        asked = set(TOKEN.findall(question.text.lower())) - {"the", "in", "of", "was", "did", "it"}
        overlaps, at = [], -1
        for sentence in re.finditer(r"[^.]+\.", paragraph.text):
            if sentence.start() <= question.start < sentence.end():
                at = len(overlaps)
            overlaps.append(len(asked & set(TOKEN.findall(sentence[0].lower()))))
        rest = overlaps[:at] + overlaps[at + 1 :]
        best += overlaps[at] > max(rest)
        questions += 1
    assert best < 0.5 * questions


def test_every_wording_comes_up(made):
    asked = combined(made["train"])
    every = {
        (clause, question)
        for topic, part in product(TOPICS, ("questions", "predicates"))
        for relation in topic.relations
        for clause in relation.clauses
        for question in getattr(relation, part)
    }
    assert asked <= every
    assert {clause for clause, _ in asked} == {clause for clause, _ in every}
    assert {question for _, question in asked} == {question for _, question in every}
