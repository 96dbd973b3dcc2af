"""Dates, times, amounts and simple sentences about them, in English and German, by a grammar of our own.

Every English sentence has one German translation, so that a model can be judged by how many it gets exactly
right. Which part a sentence belongs to follows from the sentence itself: training has none of the others'.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import sha256

from lrn.checks import choice
from lrn.training.config import PARTS

Pair = tuple[str, str]
TENTHS = {"train": range(2, 10), "valid": range(1), "test": range(1, 2)}
"""Of ten sentences, which are a part's."""

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
EINER = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn"
).split()
ZEHNER = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()

DAYS = list(
    zip(
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),
        strict=True,
    )
)
MONTHS = list(
    zip(
        "January February March April May June July August September October November December".split(),
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
        strict=True,
    )
)
CURRENCIES = [("$", "dollars", "Dollar"), ("€", "euros", "Euro"), ("£", "pounds", "Pfund")]

THINGS = [
    ("ticket", "die Karte"),
    ("book", "das Buch"),
    ("coat", "der Mantel"),
    ("lamp", "die Lampe"),
    ("chair", "der Stuhl"),
    ("bicycle", "das Fahrrad"),
    ("meal", "das Essen"),
    ("room", "das Zimmer"),
    ("journey", "die Reise"),
    ("table", "der Tisch"),
]
EVENTS = [
    ("meeting", "die Sitzung"),
    ("concert", "das Konzert"),
    ("lesson", "der Unterricht"),
    ("party", "das Fest"),
    ("exam", "die Prüfung"),
    ("game", "das Spiel"),
    ("lecture", "der Vortrag"),
    ("film", "der Film"),
]
PLACES = [
    ("museum", "das Museum"),
    ("bank", "die Bank"),
    ("library", "die Bibliothek"),
    ("shop", "der Laden"),
    ("post office", "die Post"),
    ("station", "der Bahnhof"),
    ("school", "die Schule"),
    ("market", "der Markt"),
]
PEOPLE = [("He", "Er"), ("She", "Sie"), ("My sister", "Meine Schwester"), ("Our neighbour", "Unser Nachbar")]


def pairs(count: int, *, part: str = "train", seed: int = 1) -> list[Pair]:
    """Make so many different sentences with their translations.

    >>> for english, german in pairs(2, part="test", seed=4):
    ...     print(english, "|", german)
    The concert is on Wednesday. | Das Konzert ist am Mittwoch.
    She bought the bicycle on Sunday. | Sie hat das Fahrrad am Sonntag gekauft.
    """
    tenths = TENTHS[choice("part", part, PARTS)]
    draw = random.Random(f"{seed} {part}")
    found: dict[str, str] = {}
    while len(found) < count:
        english, german = draw.choice(SENTENCES)(draw)
        if sha256(english.encode()).digest()[0] % 10 in tenths:
            found[english] = german
    return list(found.items())


# Numbers ------------------------------------------------------------------------------------------


def in_words(number: int) -> Pair:
    """A number from 0 to 99, spelt out.

    >>> in_words(21), in_words(30)
    (('twenty-one', 'einundzwanzig'), ('thirty', 'dreißig'))
    """
    if number < 20:
        return ONES[number], "eins" if number == 1 else EINER[number]
    tens, ones = divmod(number, 10)
    if not ones:
        return TENS[tens - 2], ZEHNER[tens - 2]
    return f"{TENS[tens - 2]}-{ONES[ones]}", f"{EINER[ones]}und{ZEHNER[tens - 2]}"


def ordinal(number: int) -> str:
    """A number with the ending that English has for its place in a row.

    >>> ordinal(1), ordinal(12), ordinal(23)
    ('1st', '12th', '23rd')
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


# Dates, times, amounts ----------------------------------------------------------------------------


def date(draw: random.Random) -> Pair:
    """When: on which day, as it stands after `on` and `am`."""
    number, (month, monat) = draw.randint(1, 28), draw.choice(MONTHS)
    year, (day, tag) = draw.randint(1950, 2049), draw.choice(DAYS)
    return draw.choice(
        [
            (f"{month} {number}", f"{number}. {monat}"),
            (f"{month} {number}, {year}", f"{number}. {monat} {year}"),
            (f"the {ordinal(number)} of {month}", f"{number}. {monat}"),
            (f"{day}, {month} {number}", f"{tag}, dem {number}. {monat}"),
            (day, tag),
        ]
    )


def time(draw: random.Random) -> Pair:
    """When: at what time, as it stands after `at` and `um`."""
    hour, minute = draw.randint(1, 12), draw.randint(0, 59)
    (at, um), (_, next_hour) = in_words(hour), in_words(hour % 12 + 1)
    half = draw.choice(["am", "pm"])
    clock = hour % 12 + (12 if half == "pm" else 0)
    return draw.choice(
        [
            (f"{hour}:{minute:02} {half}", f"{clock}:{minute:02} Uhr"),
            (f"{hour}:{minute:02} {half}", f"{clock}:{minute:02} Uhr"),
            (f"half past {at}", f"halb {next_hour}"),
            (f"a quarter past {at}", f"Viertel nach {um}"),
            (f"a quarter to {at}", f"Viertel vor {um}"),
            (f"{at} o'clock", f"{'ein' if hour == 1 else um} Uhr"),
        ]
    )


def amount(draw: random.Random) -> Pair:
    """How much money."""
    sign, plural, name = draw.choice(CURRENCIES)
    whole, cents = draw.choice([draw.randint(2, 99), draw.randint(100, 9_999)]), draw.randint(1, 99)
    english, german = f"{whole:,}", f"{whole:,}".replace(",", ".")
    small, klein = in_words(draw.randint(2, 99))
    return draw.choice(
        [
            (f"{sign}{english}.{cents:02}", f"{german},{cents:02} {name}"),
            (f"{sign}{english}", f"{german} {name}"),
            (f"{small} {plural}", f"{klein} {name}"),
        ]
    )


# Sentences ----------------------------------------------------------------------------------------


def _named(draw: random.Random, nouns: list[Pair]) -> tuple[str, str, str]:
    """A noun in English, and in German as subject and as object."""
    english, german = draw.choice(nouns)
    return f"the {english}", german, german.replace("der ", "den ", 1)


def _large(text: str) -> str:
    return text[0].upper() + text[1:]


def _event_on(draw: random.Random) -> Pair:
    (english, german, _), (on, am) = _named(draw, EVENTS), date(draw)
    return f"{_large(english)} is on {on}.", f"{_large(german)} ist am {am}."


def _event_at(draw: random.Random) -> Pair:
    (english, german, _), (at, um) = _named(draw, EVENTS), time(draw)
    return f"{_large(english)} begins at {at}.", f"{_large(german)} beginnt um {um}."


def _event_when(draw: random.Random) -> Pair:
    (english, german, _), (on, am), (at, um) = _named(draw, EVENTS), date(draw), time(draw)
    return f"On {on} {english} ends at {at}.", f"Am {am} endet {german} um {um}."


def _closed(draw: random.Random) -> Pair:
    (english, german, _), (on, am) = _named(draw, PLACES), date(draw)
    return f"{_large(english)} is closed on {on}.", f"{_large(german)} ist am {am} geschlossen."


def _opens(draw: random.Random) -> Pair:
    (english, german, _), (at, um) = _named(draw, PLACES), time(draw)
    return f"When does {english} open? At {at}.", f"Wann öffnet {german}? Um {um}."


def _costs(draw: random.Random) -> Pair:
    (english, german, _), (much, viel) = _named(draw, THINGS), amount(draw)
    return f"{_large(english)} costs {much}.", f"{_large(german)} kostet {viel}."


def _paid(draw: random.Random) -> Pair:
    (person, mensch), (english, _, german) = draw.choice(PEOPLE), _named(draw, THINGS)
    much, viel = amount(draw)
    return f"{person} paid {much} for {english}.", f"{mensch} hat {viel} für {german} bezahlt."


def _bought(draw: random.Random) -> Pair:
    (person, mensch), (english, _, german) = draw.choice(PEOPLE), _named(draw, THINGS)
    on, am = date(draw)
    return f"{person} bought {english} on {on}.", f"{mensch} hat {german} am {am} gekauft."


def _train(draw: random.Random) -> Pair:
    (at, um), (then, dann) = time(draw), time(draw)
    return (
        f"The train leaves at {at} and arrives at {then}.",
        f"Der Zug fährt um {um} ab und kommt um {dann} an.",
    )


def _dear(draw: random.Random) -> Pair:
    (english, german, _), (much, viel) = _named(draw, THINGS), amount(draw)
    return f"{_large(english)} is too dear, I only have {much}.", (
        f"{_large(german)} ist zu teuer, ich habe nur {viel}."
    )


SENTENCES: list[Callable[[random.Random], Pair]] = [
    _event_on,
    _event_at,
    _event_when,
    _closed,
    _opens,
    _costs,
    _paid,
    _bought,
    _train,
    _dear,
]
