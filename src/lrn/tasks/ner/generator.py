"""Tagged sentences of our own making, so that training runs anywhere.

Templates are filled with names from lists. Many names are ambiguous, and only their surroundings tell what
they are: a Jordan plays, a flight leaves for Jordan; Lincoln speaks, Lincoln Bank reports, somebody lives in
Lincoln. Validation and test sentences use templates and names that training never saw.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lrn.checks import choice
from lrn.training.config import PARTS

FIRST = """
Anna Bruno Carla David Elena Felix Greta Hugo Irina Jonas Klara Leon Marta Nils Olga Pavel Rosa Simon Tanja
Viktor Wanda Xaver Yara Zoe Amir Bela Chiara Dario Emil Fatima Gustav Hanna Igor Julia Karim Lotte Milan Nora
Oskar Paula Raul Sofia Tomas Ursula Vera Willem Yusuf Zita Agnes Boris Celia Dragan Edith Franz Gilda Henrik
""".split()
LAST = """
Abbot Becker Castell Dorn Ekberg Falk Grimaldi Haugen Ilic Jensen Kowal Lindqvist Moreau Novak Okafor Petrov
Quist Rossi Santos Tanaka Ullman Varga Weiss Yilmaz Zeman Arroyo Brandt Costa Dumont Eriksen Fontana Gruber
Horvat Ivanov Jansen Keller Larsen Meyer Nilsson Ortega Peters Quinn Reyes Sorensen Torres Ueda Vogel Winter
""".split()
PLACES = """
Arlesheim Borvik Corvara Delmont Estoril Fjordby Grenholm Halden Istria Jaroslav Karvina Lugano Meran Narvik
Olbia Pirna Ravello Salerno Trento Udine Vevey Wismar Ystad Zadar Altona Brugge Cadiz Dover Evian Faro Gmunden
Hobro Imola Jena Kiruna Linz Molde Nancy Oulu Pecs Rimini Sopron Turku Uppsala Vaduz Worms Aarau Bergamo Chur
""".split()
FIRMS = """
Acton Borealis Cobalt Dynex Electra Fortuna Gemini Helvet Inova Jupiter Kappa Lumen Merit Nordex Orion Polaris
Quanta Rhenus Solaris Titan Unitas Vector Westo Xenon Zenit Argon Baltika Corona Delta Elysium Fidelis Granit
""".split()
COUNTRIES = "Andoria Belvaria Cantoria Drusland Elbonia Freland Gavaria Hestria Ilmenia Jutania".split()
NATIONS = "Andorian Belvarian Cantorian Drusian Elbonian Frelandic Gavarian Hestrian Ilmenian".split()
SUFFIXES = "Bank Group Motors Airlines Press Union Records Institute United Holdings".split()
EVENTS = "Cup Open Festival Marathon Treaty Prize Classic Games".split()
# People, places and firms alike: only the words around them tell
SHARED = (
    "Jordan Lincoln Florence Sydney Austin Madison Victoria Chester Hamilton Houston Carson Preston".split()
)
TIMES = [
    "yesterday",
    "on Monday",
    "last week",
    "in the morning",
    "after the talks",
    "for the third time",
    "without comment",
]

# {P} a person, {L} a place, {O} an organisation, {M} something else; {t} a time; {n} a number
TRAIN_TEMPLATES = """
{P} scored {n} goals for {O} {t} .
{O} said {t} it would open an office in {L} .
{P} was born in {L} .
Shares of {O} fell {n} percent {t} .
The {M} was held in {L} {t} .
{P} , head of {O} , left for {L} {t} .
Police in {L} arrested {n} people {t} .
{M} player {P} beat {P} in the {M} .
{L} is {n} kilometres from {L} .
{O} beat {O} by {n} points {t} .
{P} told reporters that {O} had lost {n} million .
It rained in {L} {t} .
{P} and {P} met {t} in {L} .
The {M} government denied the report .
{O} hired {P} {t} .
He works for {O} in {L} .
She flew to {L} with {P} .
A spokesman for {O} told {P} to wait .
{P} won the race in {L} .
{O} bought shares of {O} for {n} million {t} .
{P} signed the letter {t} .
Nobody answered {t} .
The talks ended {t} .
About {n} workers stayed at home .
""".strip().splitlines()
HELD_OUT_TEMPLATES = """
{P} scored for {O} {t} .
A spokesman for {O} in {L} left {t} .
{P} was born near {L} and met {P} in {L} .
{O} bought {O} for {n} million {t} .
{P} won the {M} in {L} .
Police said {t} it rained in {L} .
{M} player {P} left {O} {t} .
{O} said it hired {P} {t} .
Nobody answered in the morning .
In {L} , {P} told {O} to wait .
""".strip().splitlines()


def sentences(count: int, *, part: str = "train", seed: int = 1) -> Iterator[tuple[list[str], list[str]]]:
    """Yield words and IOB2 tags of ``count`` sentences.

    >>> words, tags = next(sentences(1))
    >>> len(words) == len(tags)
    True
    """
    draw = np.random.default_rng([seed, PARTS.index(choice("part", part, PARTS))])
    held_out = part != "train"
    templates = HELD_OUT_TEMPLATES if held_out else TRAIN_TEMPLATES
    names = _Names(draw, held_out)
    for _ in range(count):
        words: list[str] = []
        tags: list[str] = []
        for piece in _pick(draw, templates).split():
            filled, kind = names.fill(piece)
            words += filled
            tags += [f"{'B' if n == 0 else 'I'}-{kind}" if kind else "O" for n in range(len(filled))]
        yield words, tags


def _pick(draw: np.random.Generator, values: list[str]) -> str:
    return values[int(draw.integers(len(values)))]


class _Names:
    """Names for a template's pieces; two thirds of each list are for training, the others for other parts."""

    def __init__(self, draw: np.random.Generator, held_out: bool) -> None:
        self.draw, self.held_out = draw, held_out

    def _from(self, values: list[str]) -> str:
        border = 2 * len(values) // 3
        return _pick(self.draw, values[border:] if self.held_out else values[:border])

    def fill(self, piece: str) -> tuple[list[str], str]:
        """Return the words for a piece, and the type of the entity they are."""
        chance = float(self.draw.random())
        if piece == "{P}":
            last = _pick(self.draw, SHARED) if chance < 0.3 else self._from(LAST)
            return ([self._from(FIRST), last] if chance < 0.15 or chance > 0.5 else [last]), "PER"
        if piece == "{L}":
            if chance < 0.3:
                return [_pick(self.draw, SHARED)], "LOC"
            return [self._from(COUNTRIES if chance > 0.8 else PLACES)], "LOC"
        if piece == "{O}":
            first = _pick(self.draw, SHARED) if chance < 0.3 else self._from(FIRMS)
            return [first, _pick(self.draw, SUFFIXES)] if chance < 0.7 else [first], "ORG"
        if piece == "{M}":
            if chance < 0.5:
                return [self._from(NATIONS)], "MISC"
            return [self._from(PLACES), _pick(self.draw, EVENTS)], "MISC"
        if piece == "{t}":
            return _pick(self.draw, TIMES).split(), ""
        if piece == "{n}":
            return [str(int(self.draw.integers(2, 90)))], ""
        return [piece], ""
