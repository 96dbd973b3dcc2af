"""What README and docs show, runs: every page is followed from top to bottom, as a reader would.

A page's code blocks run in order, in an empty folder of the page's own: ``python`` blocks in one namespace,
the lines of ``sh``, ``bash`` and ``console`` blocks (and of indented ones) that call ``lrn`` through the real
command line. To keep it short, commands are made small by the tables below. Whatever they do not cover fails
rather than being left out. When a page shows something new:

- a new command, or a new task for a command: say in ``SMALL`` what makes it small ("" if it is); if it is for
  runs of one task alone, say so in ``ONLY``;
- a new task: write small data for it in ``DATA``, and say in ``BUILT_IN`` what makes its built-in data small;
- a new word in capitals that stands for something of the reader's own (RUN, DIR, UNIT): ``Reader.fill``;
- a page whose commands take hours, or many trainings: add it to ``DRY``; its settings are read and checked,
  but nothing runs;
- a page about a run that it does not train: RUN is one of the task that ``TASK_OF`` gives the page, else of
  the page's own, else a language model;
- another program than ``lrn``: ``check_other``.
"""

import functools
import io
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from elmo_files import write_elmo
from runs import write_text

from lrn import bench, cli, commands, compare, doctor, survey
from lrn.names import FIRST_TASK, TASKS
from lrn.serve import Server
from lrn.tasks import repeating
from lrn.tasks.ner import generator
from lrn.training.run import FORMAT

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

DRY = ("docs/results.md", "docs/compare.md")
TASK_OF = {"docs/memory.md": "doc", "docs/serve.md": "doc"}
SILENT = ("text", "yaml", "json", "csv", "html", "bibtex", "tex", "diff", "")  # blocks that nobody runs

STEPS = "--epochs 1 --max_steps 2 --threads 1 --overwrite"
LM = (
    "--embedding 8 --hidden 12 --last 8 --layers 2 --experts 1 --drop_weights 0"
    " --batch_size 4 --small_batch 0 --bptt 10"
)
NER = "--word_width 8 --char_width 4 --char_hidden 4 --hidden 8 --dense 8"
DOC = "--word_width 8 --char_width 4 --hidden 8 --batch_size 8"
NLI = f"{DOC} --heads 2"
RC = f"{DOC} --char_hidden 4"
MT = "--hidden 8 --heads 2 --merges 60 --batch_tokens 200"
PAIR = "--units lstm,lrn --seeds 1 --data DIR"  # every run of a comparison is a process of its own
SMALL = {
    "bench": "--shape 2,1,4 --seconds 0.05",
    "doctor": "--seconds 0.1",
    "gradients": "--units lstm,lrn --steps 5 --hidden 4 --overwrite",
    "params": "",
    "train lm": f"{LM} {STEPS}",
    "train ner": f"{NER} {STEPS}",
    "train doc": f"{DOC} {STEPS}",
    "train nli": f"{NLI} {STEPS}",
    "train rc": f"{RC} {STEPS}",
    "train mt": f"{MT} --threads 1 --overwrite --epochs 2",
    "train --resume": "",
    "compare --tasks": "",  # whose tasks are not made small: nothing is trained
    "compare lm": f"{LM} {STEPS} {PAIR}",
    "compare ner": f"{NER} {STEPS} {PAIR}",
    "compare doc": f"{DOC} {STEPS} {PAIR}",
    "compare nli": f"{NLI} {STEPS} {PAIR}",
    "compare rc": f"{RC} {STEPS} {PAIR}",
    "compare mt": f"{MT} {STEPS} {PAIR}",
    "evaluate lm": "--words 20 --threads 1",
    "evaluate ner": "",
    "evaluate doc": "--threads 1",
    "evaluate nli": "--threads 1",
    "evaluate rc": "--threads 1",
    "evaluate mt": "--threads 1",
    "predict lm": "",
    "predict ner": "",
    "predict doc": "",
    "predict nli": "",
    "predict rc": "",
    "predict mt": "",
    "memory doc": "--overwrite",
    "average": "",
    "export": "",
    "serve": "--threads 1",
    "import": "",
    "results": "",
    "paper": "",
}
BUILT_IN = {
    "lm": "--fraction 0.02",
    "ner": "--sentences 60",
    "doc": "--documents 100",
    "nli": "--pairs 100",
    "rc": "--paragraphs 50",
    "mt": "--pairs 100",
}
ONLY = {"memory": "doc"}  # commands for runs of one task alone
WHOLE = (
    "bench",
    "doctor",
    "gradients",
    "params",
    "average",
    "export",
    "import",
    "serve",
    "results",
    "paper",
)  # commands that are the same for all tasks
LINE = "Anna Becker works for Borealis in Lugano.\n"  # on standard input if a page does not say what
PAIR_LINE = "A dog sleeps. ||| An animal sleeps.\n"  # the same where pairs are read


# Small data --------------------------------------------------------------------------------------


def write_lm(folder):
    """With <unk>, so that any text can be continued and scored."""
    write_text(folder)
    with (folder / "train.txt").open("a") as file:
        file.write("<unk>\n")


def write_ner(folder):
    folder.mkdir()
    for part in ("train", "valid", "test"):
        with (folder / f"{part}.txt").open("w") as file:
            for words, tags in generator.sentences(30, part=part):
                file.writelines(f"{w} {t}\n" for w, t in zip(words, tags, strict=True))
                file.write("\n")


def write_doc(folder):
    folder.mkdir()
    for part, count in (("train", 60), ("test", 20)):
        rows = (f'"{n % 2 + 1}","a title","it was {("good", "bad")[n % 2]} indeed"\n' for n in range(count))
        (folder / f"{part}.csv").write_text("".join(rows))
    (folder / "classes.txt").write_text("good\nbad\n")


def write_nli(folder):
    folder.mkdir()
    for part in ("train", "dev", "test"):
        rows = [
            f"{n % 3}\ta dog sleeps\t{('an animal', 'a cat', 'no dog')[n % 3]} sleeps\n" for n in range(60)
        ]
        (folder / f"{part}.tsv").write_text("label\tpremise\thypothesis\n" + "".join(rows))


def write_rc(folder):
    """Thirty articles of a paragraph each."""
    folder.mkdir()
    asked = {"question": "Where was Anna Novak born?", "answers": [{"text": "Linz", "answer_start": 23}]}
    articles = [
        {"title": f"{n}", "paragraphs": [{"context": f"Anna Novak was born in Linz in {n}.", "qas": [asked]}]}
        for n in range(1900, 1930)
    ]
    (folder / "articles.json").write_text(json.dumps({"version": "1.1", "data": articles}))


def write_mt(folder):
    folder.mkdir()
    for part in ("train", "valid", "test_2017_flickr"):
        for language, lamp in (("en", "a lamp costs"), ("de", "eine Lampe kostet")):
            lines = [f"{lamp} {n} dollars .\n" for n in range(20)]
            (folder / f"{part}.{language}").write_text("".join(lines))


def write_bert(folder):
    """A small one with random weights."""
    import transformers

    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *"abcdefghilmnopst",
        *(f"##{c}" for c in "abcdefghilmnopst"),
    ]
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=len(pieces), **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")


DATA = {
    "lm": write_lm,
    "ner": write_ner,
    "doc": write_doc,
    "nli": write_nli,
    "rc": write_rc,
    "mt": write_mt,
}


# Reading a page ----------------------------------------------------------------------------------


def blocks(page):
    """Line number, language and lines of every block of code, in order; indented blocks are ``indented``."""
    language, start, lines = None, 0, []
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        fence = re.match(r"```(\w*)", line)
        if fence and language is None:
            language, start, lines = fence[1], number, []
        elif fence:
            yield start, language, lines
            language = None
        elif language is not None:
            lines.append(line)
        elif re.match(r" {4}\S", line):
            yield number, "indented", [line[4:]]


def shell_lines(language, lines):
    """The commands of a block, without comments and prompts; in ``console`` the rest is what they print."""
    if language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    if language == "indented":
        lines = [line for line in lines if re.match(rf"(\$ )?([A-Z_]+=\S+ )*({PROGRAMS})\b", line)]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while "&&" in words:
            yield words[: words.index("&&")]
            words = words[words.index("&&") + 1 :]
        if words:
            yield words


PROGRAMS = r"lrn|make|pip|git|echo|python3?|\.venv/bin/\w+"


def headings(page):
    """The headings of a page, each with its level."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    return [(len(marks), heading) for marks, heading in re.findall(r"^(#+) (.+)$", text, re.M)]


def anchors(page):
    """What links can lead to in a page: its headings, as GitHub writes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for _, heading in headings(page)}


def inline(page):
    """Commands in the running text."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    return re.findall(rf"`((?:{PROGRAMS}) [^`]+)`", text)


# Following it ------------------------------------------------------------------------------------


class Reader:
    """Someone who types what a page shows, in a folder of their own."""

    def __init__(self, page, folder, patch, *, dry):
        self.page, self.folder, self.patch, self.dry = page, folder, patch, dry
        self.task = TASK_OF.get(page, Path(page).stem if Path(page).stem in TASKS else "lm")
        self.runs = []  # task and folder of each that the page has trained

    def type(self, words):
        """One command line."""
        while re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            self.patch.setenv(*words.pop(0).split("=", 1))
        given = LINE
        if words[0] == "echo":
            assert words.count("|") == 1, f"{self.page}: {words}: expected echo … | lrn …"
            given = " ".join(words[1 : words.index("|")]) + "\n"
            words = words[words.index("|") + 1 :]
        if Path(words[0]).name != "lrn":
            return check_other(words, self.page)
        words = self.fill(words[1:])
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        try:
            code = cli.main(words)
        except SystemExit as left:  # --help, --print_config
            code = left.code
        assert code == 0, f"{self.page}: lrn {shlex.join(words)} ends with {code}"
        if words[:1] == ["train"] and not self.dry:
            made = max(self.folder.glob("**/config.json"), key=lambda path: path.stat().st_mtime)
            self.runs.append((self.task, str(made.parent.relative_to(self.folder))))
        return None

    def fill(self, words):
        """The words with what stands for something of the reader's own, and small."""
        if not words or "--help" in words:
            return words
        command = words[0]
        if command in ("train", "compare") and words[1:] and words[1] in TASKS:
            self.task = words[1]
        elif command == "compare":
            self.task = FIRST_TASK
        places = [False, *(word == "--out" for word in words)]  # where a run goes is no run yet
        words = [
            word if new else self.thing(word, ONLY.get(command))
            for word, new in zip(words, places, strict=False)
        ]
        if command in ("evaluate", "predict", "memory"):
            self.task = json.loads((self.folder / words[1] / "config.json").read_text())["task"]
        if not self.dry:
            words = self.shrink(command, words)
        for flag in ("--data", "--vectors", "--bert", "--elmo", "--start", "--config", "--file", "--text"):
            if flag == "--text" and self.task != "rc":  # elsewhere it is the text itself
                continue
            for place in [n for n, word in enumerate(words) if word == flag]:
                words[place + 1] = self.value(flag, words[place + 1])
        for word in words[words.index("--files") + 1 :] if "--files" in words else []:
            self.file(word, PAIR_LINE if self.task == "nli" else LINE)
        if any("my_module:" in word for word in words):
            self.module()
        unknown = [word for word in words if re.fullmatch(r"[A-Z]{2,}", word)]
        assert not unknown, f"{self.page}: what does {unknown} stand for in {words}?"
        return words

    def shrink(self, command, words):
        kind = command if command in WHOLE else f"{command} {self.task}"
        for flag in ("--resume", "--tasks"):
            if flag in words:
                kind = f"{command} {flag}"
        assert kind in SMALL, f"{self.page}: SMALL does not say how to make `lrn {kind}` small"
        small = SMALL[kind].split()
        if kind == f"train {self.task}" and "--data" not in words:
            small += BUILT_IN[self.task].split()
        return words + small

    def thing(self, word, task=None):
        if word == "RUN" or word.startswith("runs/"):
            return self.some_run(word, task)
        return {
            "DIR": self.data,
            "UNIT": lambda: "lrn",
            "FOLDER": lambda: "bert",
            "LR": lambda: "0.01",
            "SEED": lambda: "2",
        }.get(word, lambda: word)()

    def value(self, flag, value):
        if flag == "--data":
            return value if value.startswith("builtin:") else self.data()
        if flag == "--vectors":
            return self.file("vectors.txt", ". 1 2 3 4\nin 0 0 0 1\nit 1 0 0 1\na 0 1 0 1\n")
        if flag == "--bert":
            if not (self.folder / "bert").exists():
                write_bert(self.folder / "bert")
            return "bert"
        if flag == "--elmo":
            return write_elmo(self.folder / "elmo").name
        if flag == "--start":
            return self.some_run(value)
        return self.file(value, "seed: 2\n" if flag == "--config" else LINE)

    def file(self, name, content):
        path = self.folder / name
        if not path.exists():
            path.write_text(content)
        return name

    def data(self):
        folder = self.folder / f"data-{self.task}"
        if not folder.exists():
            DATA[self.task](folder)
        return folder.name

    def module(self):
        """The one with a unit of the reader's own."""
        code = next(
            "\n".join(lines) for _, _, lines in blocks("docs/units.md") if "class MyUnit" in str(lines)
        )
        self.patch.syspath_prepend(self.folder)
        self.patch.setenv("LRN_UNITS", "")
        self.patch.delitem(sys.modules, "my_module", raising=False)
        self.file("my_module.py", code)

    def some_run(self, name, task=None):
        """The run of that name; for RUN the last, of ``task`` if given. A new one if there is none."""
        fitting = [folder for trained, folder in self.runs if task in (None, trained)]
        if name == "RUN" and fitting:
            return fitting[-1]
        if name != "RUN" and (self.folder / name / "config.json").exists():
            return name
        task = task or self.task if name == "RUN" else name.removeprefix("runs/").partition("-")[0]
        folder = f"runs/{task}-of-mine" if name == "RUN" else name
        if self.dry:
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
            settings = {"task": task, "format": FORMAT}
            (self.folder / folder / "config.json").write_text(json.dumps(settings))
            (self.folder / folder / "best.ckpt").touch()
        else:
            self.type(["lrn", "train", task, "--data", "DIR", "--out", folder])
        return folder


def check_other(words, page):
    """A program that is not run: what it names exists."""
    line = " ".join(words)
    program = Path(words[0]).name
    if program == "make":
        for target in (word for word in words[1:] if "=" not in word):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), f"{page} shows `{line}`"
    elif program == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extras in re.findall(r"\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= set(known), f"{page} shows `{line}`"
    elif program in ("python", "python3"):
        for path in (word for word in words[1:] if "/" in word):
            assert (ROOT / path).exists(), f"{page} shows `{line}`"
    else:
        assert program in ("git", "cd"), f"{page} shows `{line}`: check_other does not know {program}"


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Makes one; leaves folder, threads and streams as they were."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Server, "serve_forever", lambda self: None)  # as if Ctrl-C came at once
    monkeypatch.setattr(survey, "survey", lambda *args: 0)  # which takes an hour
    threads = torch.get_num_threads()
    yield lambda page, dry=False: Reader(page, tmp_path, monkeypatch, dry=dry)
    torch.set_num_threads(threads)


@pytest.fixture
def nothing_runs(monkeypatch):
    """Commands stop where their settings have been read and checked."""
    places = [(commands, name) for name in ("train", "resume", "evaluate", "predict", "memory")]
    places += [(commands, name) for name in ("gradients", "params", "average", "export", "import_", "serve")]
    places += [(commands, "results"), (commands, "paper"), (compare, "compare")]
    for module, name in [*places, (bench, "run"), (doctor, "run")]:
        monkeypatch.setattr(module, name, lambda *args, **more: 0, raising=False)


def follow(reader):
    namespace = {"__name__": "example"}
    for start, language, lines in blocks(reader.page):
        if language == "python":
            code = "\n" * start + "\n".join(lines)  # so that an error has the page's own line
            exec(compile(code, str(ROOT / reader.page), "exec"), namespace)
        elif language in ("sh", "bash", "console", "indented"):
            for words in shell_lines(language, lines):
                reader.type(words)
        else:
            assert language in SILENT, f"{reader.page}, line {start}: what is to be done with {language}?"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in DRY])
def test_page(page, reader, monkeypatch):
    monkeypatch.setattr(compare, "time_units", functools.partial(compare.time_units, seconds=0.1))
    follow(reader(page))


@pytest.mark.parametrize("page", DRY)
def test_page_of_long_runs(page, reader, nothing_runs):
    follow(reader(page, dry=True))


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_text(page, reader, nothing_runs, capsys):
    """Those in backticks: with settings they are read and checked, the bare name of a command must exist."""
    typist = reader(page, dry=True)
    for line in inline(page):
        words = shlex.split(line)
        if "…" in line or Path(words[0]).name != "lrn":
            continue
        if len(words) == 2 or words[1:] in (["train", name] for name in TASKS):
            words += ["--help"]
        typist.type(words)


@pytest.mark.parametrize("entry", repeating.ENTRIES, ids=repeating.NAMES)
def test_commands_that_repeat_the_paper(entry, reader, nothing_runs):
    """What `lrn paper` prints is read and checked like what a page shows."""
    typist = reader("README.md", dry=True)
    for command in entry.commands:
        typist.type(shlex.split(command.line))


@pytest.mark.parametrize("page", PAGES)
def test_other_programs_in_the_text(page):
    for line in inline(page):
        words = shlex.split(line)
        if Path(words[0]).name not in ("lrn", "echo"):
            check_other(words, page)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_has_one_title_and_begins_with_it(page):
    assert (ROOT / page).read_text().startswith("# ")
    assert [level for level, _ in headings(page)].count(1) == 1


@pytest.mark.parametrize("entry", repeating.ENTRIES, ids=repeating.NAMES)
def test_links_beside_the_paper_lead_somewhere(entry):
    for link in [*(found.page for found in entry.measured), *([entry.settings] if entry.settings else [])]:
        page, _, anchor = link.partition("#")
        assert page in PAGES, link
        assert anchor in anchors(page), link


# The reader itself -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("lrn tran lm", "lrn tran lm"),
        ("lrn train lm --hiden 3", "--hiden"),
        ("lrn train lm --unit NONE", "stand for"),
        ("lrn train lm --unit lrm", "--unit lrm"),
        ("lrn predict RUN --lenght 3", "--lenght"),
        ("make tset", "make tset"),
        ("pip install 'lrn-torch[trian]'", "trian"),
        ("python no/such/file.py", "no/such/file.py"),
        ("curl example.org", "does not know curl"),
        ("cat text | lrn predict RUN", "does not know cat"),
    ],
)
def test_what_is_wrong_is_found(line, says, reader, nothing_runs):
    (words,) = shell_lines("sh", [line])
    with pytest.raises(AssertionError, match=re.escape(says)):
        reader("README.md", dry=True).type(words)


def test_a_command_that_no_table_knows(reader, monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "dance", lambda words: 0)
    with pytest.raises(AssertionError, match="SMALL does not say how to make `lrn dance lm` small"):
        reader("README.md").type(["lrn", "dance"])


def test_lines_of_a_shell():
    lines = ["$ lrn a \\", "  --b 'c d'  # why", "# only this", "git x && cd y"]
    assert [*shell_lines("sh", lines)] == [["lrn", "a", "--b", "c d"], ["git", "x"], ["cd", "y"]]
    assert [*shell_lines("console", ["$ lrn a", "what it says"])] == [["lrn", "a"]]
    assert [*shell_lines("indented", ["make test  # all", "h = g(x)"])] == [["make", "test"]]
