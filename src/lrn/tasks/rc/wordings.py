"""The words and wordings of which the built-in articles and questions are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WOMEN = """
Anna Clara Elena Greta Irina Karla Marta Olga Rosa Tanja Vera Wanda Yara Zita Agnes Celia Edith Gilda Hanna
Julia
""".split()
MEN = """
Bruno David Felix Hugo Jonas Leon Nils Oskar Pavel Simon Viktor Willem Amir Boris Dario Emil Franz Gustav
Henrik Igor
""".split()
LAST = """
Abbot Becker Castell Dorn Ekberg Falk Grimaldi Haugen Ilic Jensen Kowal Lindqvist Moreau Novak Okafor Petrov
Quist Rossi Santos Tanaka Ullman Varga Weiss Yilmaz Zeman Arroyo Brandt Costa Dumont Eriksen
""".split()
PLACES = """
Linz Turku Bergamo Cadiz Dover Evian Faro Gmunden Halden Imola Jena Kiruna Lugano Meran Narvik Olbia Pirna
Ravello Salerno Trento Udine Vevey Wismar Ystad Zadar Altona Brugge Chur Delmont Estoril
""".split()
MONTHS = """
January February March April May June July August September October November December
""".split()
COLOURS = """
Silver Amber Copper Scarlet Crystal Emerald Golden Violet Ivory Crimson Azure Bronze Coral Diamond Olive
""".split()
CONTESTS = "Regatta Marathon Tournament Derby Rally".split()
SITES = """
Northern Southern Granite Marble Royal Harbour Valley Mountain Old Abbey Castle Forest Garden Island Temple
""".split()
LANDMARKS = "Bridge Tower Lighthouse Theatre Palace".split()
BRANDS = """
Borealis Fortuna Gemini Helvet Jupiter Lumen Orion Polaris Titan Zenit Corona Delta Electra Merit Vector
""".split()
FIRMS = "Mills Works Motors Press Foundry".split()


@dataclass(frozen=True)
class Relation:
    """A kind of fact, and the wordings in which it is told and asked.

    In clauses, {s} is the subject, {p} whose and {o} whom; {a} is the fact, of the ``kind`` that is named.
    """

    kind: str
    clauses: tuple[str, ...]
    predicates: tuple[str, ...]  # which say it of somebody in a question
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """What an article is about."""

    nouns: tuple[str, ...]  # of which a subject is one
    words: tuple[Sequence[str], ...]  # of which a subject's name is made; none for people
    relations: tuple[Relation, ...]
    first: tuple[str, ...]  # sentences that an article may begin with
    last: tuple[str, ...]  # and end with


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.strip().splitlines())


def _relation(kind: str, text: str) -> Relation:
    """Read the wordings of a fact: on five lines, a clause, a predicate and a question."""
    rows = [[part.strip() for part in line.split("|")] for line in _lines(text)]
    clauses, predicates, questions = zip(*rows, strict=True)
    return Relation(kind, clauses, predicates, questions)


_BORN = """
{s} came into the world in {a} | was born in {a} | Where was {s} born?
{s} was a native of {a} | grew up in {a} | In which town did {s} grow up?
the house where {s} learned to walk still stands in {a} | hailed from {a} | Which place did {s} hail from?
{p} cradle stood in {a} | had a first home in {a} | What was the birthplace of {s}?
{a} was the scene of {p} childhood | was raised in {a} | Where was {s} raised?
"""
_WORKED = """
{s} kept a studio in {a} | was employed in {a} | Where was {s} employed?
{s} held a post in {a} | had a career in {a} | In which city did {s} have a career?
{s} moved to {a} for a job | earned a living in {a} | Where did {s} earn a living?
{p} office was in {a} | practised in {a} | In what town did {s} practise?
{a} offered {o} a paid position, which {s} took | found work in {a} | In which place did {s} find work?
"""
_DIED = """
{s} passed away in {a} | died in {a} | When did {s} die?
{p} gravestone bears the year {a} | was buried in {a} | In which year was {s} buried?
the last summer that {s} saw was that of {a} | met death in {a} | What was the year of the death of {s}?
an illness ended {p} life in {a} | was laid to rest in {a} | When was {s} laid to rest?
{a} was the year of {p} funeral | had a last day in {a} | In what year was the last day of {s}?
"""
_FAMOUS = """
nobody had heard of {o} until {a} | became famous in {a} | When did {s} become famous?
the public took notice of {o} in {a} | had a first hit in {a} | In which year did {s} have a first hit?
{p} breakthrough fell in {a} | rose to renown in {a} | What year saw {s} rise to renown?
{s} won the great medal in {a} | was honoured in {a} | When was {s} honoured?
{a} brought {o} a flood of praise | became well known in {a} | Since when was {s} well known?
"""
_TAUGHT = """
{s} was a pupil of {a} | studied under {a} | Under whom did {s} study?
{s} learned the trade from {a} | was taught by {a} | Who taught {s}?
the lessons of {a} shaped {o} | was trained by {a} | Who trained {s}?
{a} took {o} on as an apprentice | had {a} as a teacher | Who was the teacher of {s}?
{s} sat in the classroom of {a} | was instructed by {a} | By whom was {s} instructed?
"""
_WROTE = """
{s} filled {a} notebooks | wrote {a} volumes | How many volumes did {s} write?
{a} notebooks in {p} hand survive | produced {a} books of notes | How many books of notes did {s} produce?
{p} heirs sold {a} notebooks | was the author of {a} journals | Of how many journals was {s} the author?
{s} left a trunk with {a} notebooks | penned {a} diaries | What number of diaries did {s} pen?
{s} had shelves with {a} own notebooks | composed {a} manuscripts | How many manuscripts did {s} compose?
"""
_HELD = """
{s} drew its crowds to {a} | was held in {a} | Where was {s} held?
the streets of {a} were closed for {o} | took place in {a} | In which town did {s} take place?
{a} lent its park to {o} | was staged in {a} | In which city was {s} staged?
hotels in {a} were full during {o} | went on in {a} | What was the venue of {s}?
{s} had {a} as its host | was run in {a} | In which place was {s} run?
"""
_DATED = """
{s} opened on {a} | began on {a} | When did {s} begin?
the first whistle of {o} blew on {a} | started on {a} | On which day did {s} start?
the flag went up over {o} on {a} | got under way on {a} | What day saw {s} get under way?
{a} was chosen for {o} | fell on {a} | On what date did {s} fall?
after a storm {s} was put off to {a} | was scheduled for {a} | For which date was {s} scheduled in the end?
"""
_WON = """
{a} carried off {p} cup | was won by {a} | Who won {s}?
nobody in {o} could keep up with {a} | had {a} as its champion | Who was the champion of {s}?
{s} ended in triumph for {a} | was decided by {a} | Who came first in {s}?
{p} gold medal went to {a} | had {a} as its winner | Who was the winner of {s}?
{a} beat all rivals in {o} | crowned {a} | Whom did {s} crown?
"""
_SEEN = """
{a} people lined the course of {o} | was watched by {a} visitors | How many visitors watched {s}?
{s} sold {a} tickets | had an audience of {a} | How large was the audience of {s}?
{a} guests came to {o} | attracted {a} onlookers | How many onlookers did {s} attract?
{p} gates counted {a} heads | drew {a} spectators | What number of spectators did {s} draw?
{s} filled {a} seats | had an attendance of {a} | What was the attendance of {s}?
"""
_DESIGNED = """
{s} was the work of {a} | was designed by {a} | Who designed {s}?
the drawings for {o} came from {a} | had {a} as its architect | Who was the architect of {s}?
{a} won the commission for {o} | was planned by {a} | Who planned {s}?
{p} outline was the idea of {a} | was conceived by {a} | By whom was {s} conceived?
{a} signed {p} blueprint | was drawn up by {a} | Who drew up {s}?
"""
_OPENED = """
{s} welcomed its first guests in {a} | was opened in {a} | When was {s} opened?
the ribbon in front of {o} was cut in {a} | was completed in {a} | In which year was {s} completed?
{p} last stone was set in {a} | was finished in {a} | When was {s} finished?
{p} builders packed their tools in {a} | dated from {a} | From what year did {s} date?
{a} was the year in which {s} came into use | was inaugurated in {a} | When was {s} inaugurated?
"""
_HIGH = """
{s} rises {a} above the water | was {a} tall | How tall was {s}?
{p} top is {a} from the ground | had a height of {a} | What was the height of {s}?
it takes a ladder of {a} to climb {o} | measured {a} | What did {s} measure from top to bottom?
whoever falls from {o} falls {a} | was {a} high | How high was {s}?
{a} of brick make up {o} from foot to roof | reached up {a} | How far up did {s} reach?
"""
_STOOD = """
{s} looks down on the roofs of {a} | was built in {a} | Where was {s} built?
{p} shadow falls on the market of {a} | stood in {a} | In which town did {s} stand?
the skyline of {a} owes much to {o} | was located in {a} | Where was {s} located?
{s} graces the postcards of {a} | belonged to {a} | To which city did {s} belong?
in {a} every child can draw {o} | was erected in {a} | In which place was {s} erected?
"""
_FOUNDED = """
{s} goes back to a loan that {a} took out | was founded by {a} | Who founded {s}?
{a} hung the first sign over {p} door | was established by {a} | Who established {s}?
{s} began as the one-room shop of {a} | was set up by {a} | Who set up {s}?
{p} first boss was {a} | had {a} as its founder | Who was the founder of {s}?
{a} gave {o} its name and its first coins | was created by {a} | By whom was {s} created?
"""
_BASED = """
{p} chimneys smoke over {a} | was based in {a} | Where was {s} based?
letters to {o} are addressed to {a} | had its seat in {a} | In which town did {s} have its seat?
{s} pays its taxes in {a} | had headquarters in {a} | Where were the headquarters of {s}?
{p} directors meet in {a} | resided in {a} | In which city did {s} reside?
{a} lives off {o} | operated from {a} | From which place did {s} operate?
"""
_SINCE = """
{s} has been in the register since {a} | was formed in {a} | In which year was {s} formed?
{p} first invoice is from {a} | was launched in {a} | When was {s} launched?
{p} anniversary is counted from {a} | came into being in {a} | When did {s} come into being?
{s} lit its first furnace in {a} | started trading in {a} | When did {s} start trading?
{a} is carved over {p} gate as the first year | originated in {a} | In what year did {s} originate?
"""
_EMPLOYED = """
{s} has {a} people on its payroll | had a staff of {a} | How large was the staff of {s}?
{a} hands keep {o} running | had {a} workers | How many workers did {s} have?
{p} canteen serves {a} workmates | employed {a} persons | How many persons did {s} employ?
{a} families get their wages from {o} | gave jobs to {a} | To how many did {s} give jobs?
{s} prints {a} payslips a month | had {a} employees | What number of employees did {s} have?
"""

TOPICS = (
    Topic(
        ("painter", "botanist", "composer", "chemist", "poet"),
        (),
        (
            _relation("place", _BORN),
            _relation("place", _WORKED),
            _relation("late", _DIED),
            _relation("early", _FAMOUS),
            _relation("person", _TAUGHT),
            _relation("count", _WROTE),
        ),
        _lines("""
A biographer who was born in {place} wrote about all of them.
The teacher {person} collected what is known.
An exhibition of {year} made them famous again.
The main source is a book of {count} pages by {person}, who was employed in {place}.
The critic {person}, who was raised in {place}, died before the work was done.
"""),
        _lines("""
The journals are kept in {place}, where the archivist {person} found work.
A well known collector, {person}, was buried beside them in {year}.
A society with {count} members, founded in {year}, studied these volumes.
Their rival {person} grew up in {place} and never became famous.
Who taught the rival {person}, who had a career in {place}, is not recorded.
"""),
    ),
    Topic(
        ("contest",),
        (COLOURS, CONTESTS),
        (
            _relation("place", _HELD),
            _relation("date", _DATED),
            _relation("person", _WON),
            _relation("count", _SEEN),
        ),
        _lines("""
It was a year of sport, which started in {place} on {date}.
The journalist {person}, winner of a prize for writers, saw all of it.
The season had an audience of {count} in {place} before it was well under way.
A meeting of the clubs took place in {place} on {date}.
The federation, run by {person}, had planned for {count} spectators in all.
"""),
        _lines("""
A dinner for the visitors was held in {place} on {date}.
The former champion {person}, who won in {year}, watched from a balcony.
A smaller contest attracted {count} onlookers but was staged without prizes.
The next season was scheduled to begin on {date}.
The chairman {person} started a fund of {count} crowns.
"""),
    ),
    Topic(
        ("landmark",),
        (SITES, LANDMARKS),
        (
            _relation("person", _DESIGNED),
            _relation("year", _OPENED),
            _relation("height", _HIGH),
            _relation("place", _STOOD),
        ),
        _lines("""
The guide was finished in {year} by the architect {person}.
A model of them, {height} high, was built in {place}.
The travel writer {person} completed a book on them in {year}.
A society to protect what was built by others stood up in {place}.
They were drawn, at a height of {height}, from a balloon.
"""),
        _lines("""
A fence around all of them was planned by {person} in {year}.
The museum in {place}, opened in {year}, has a room about them.
A hill in {place} that measured {height} was the place to see them from.
The engineer {person} inspected what the others designed.
A tall mast of {height} was erected nearby but belonged to nobody.
"""),
    ),
    Topic(
        ("firm",),
        (BRANDS, FIRMS),
        (
            _relation("person", _FOUNDED),
            _relation("place", _BASED),
            _relation("year", _SINCE),
            _relation("count", _EMPLOYED),
        ),
        _lines("""
The bank that lent to all was founded by {person} in {place}.
A trade union with {count} persons in it was formed in {place}.
The economist {person} established in {year} how they trade.
The stock exchange of {place}, launched in {year}, lists them all.
A strike of {count} workers came into being in {year}.
"""),
        _lines("""
A rival created by {person} had a staff of {count} but was bankrupt in {year}.
Their dealer {person} operated from {place}.
The inspector {person} had a seat on every board.
A union of their employees was set up in {place} in {year}.
Their lawyers, based in {place}, gave jobs to {count} clerks.
"""),
    ),
)
LISTS = ("This is an account of {}.", "Few people know {}.", "Here {} are compared.", "Much is said of {}.")
CONTRASTS = (("While ", ", "), ("", ", whereas "), ("", "; "), ("", ", but "), ("", ", and "))
ORDINALS = ("the former", "the latter")
CORRECTIONS = (
    "Some accounts wrongly say {}.",
    "Guidebooks that print {} are mistaken.",
    "An older source has {}, which proved false.",
    "Contrary to rumour it was not {}.",
)
BY_NAMES = ("Which {} {}?", "What was the name of the {} that {}?", "Of which {} is it said that it {}?")
BY_WHOM = ("Who {}?", "Which {1} {0}?", "What was the name of the {1} who {0}?")
