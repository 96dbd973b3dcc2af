"""The settings of the commands that are the same for all tasks; their docstrings are the help."""

from __future__ import annotations

from dataclasses import dataclass, field

from lrn import checks, names
from lrn.training.config import ACCELERATORS


@dataclass
class Resume:
    """Train a task's model, or go on with a run that was interrupted, to the same result.

    To train, name a task (TASKS): `lrn train TASK --help` explains its settings. To go on, name the run; of
    its settings only these can change.

    Args:
        resume: the folder of the run.
        data: where the data is now, if it has moved.
        epochs: passes over the training data in all, to go further than the run was told.
        accelerator: what computes: auto, cpu, cuda or mps.
        devices: processes on this machine, a device each, which share every batch.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
    """

    resume: str = field(metadata=checks.RUN)
    data: str = field(metadata=checks.FOLDER)
    epochs: int
    accelerator: str
    devices: int
    threads: int


@dataclass
class Compare:
    """Train the same model with several units, measure, and report.

    Args:
        units: the units to compare, those of your own among them: my_module:MyUnit.
        seeds: a run of every unit for each.
        lrs: learning rates to try, like 0.001,0.003,0.01: every unit gets the one that validates best;
            without them all have lr.
        match: what the units have in common: width; or parameters or time, with widths for which the model
            has about as many parameters as with LRN, or a training step takes about as long.
        against: paper shows the paper's figures beside these, on whatever data and in whatever size.
        out: the folder for runs, tables and page; by default comparisons/TASK-PRESET.
        overwrite: throw away what is in that folder.
    """

    units: str = names.COMPARED
    seeds: str = "1"
    lrs: str | None = None
    match: str = "width"
    against: str | None = None
    out: str | None = field(default=None, metadata=checks.FOLDER)
    overwrite: bool = False


@dataclass
class Survey:
    """Compare units on several tasks, each with its quick preset on built-in data: one page, a row a task.

    Args:
        tasks: the tasks.
        units: the units to compare, those of your own among them: my_module:MyUnit.
        seeds: a run of every unit for each.
        threads: threads of a training, at most the cores there are; 0 leaves it to torch.
        out: the folder for the page, and for a folder for every task.
        overwrite: throw away what is in those folders.
    """

    tasks: str = ",".join(names.TASKS)
    units: str = names.COMPARED
    seeds: str = "1"
    threads: int = 0
    out: str = field(default="comparisons/tasks", metadata=checks.FOLDER)
    overwrite: bool = False

    def __post_init__(self) -> None:
        checks.threads(self.threads)


@dataclass
class Export:
    """Write what a run has learnt for other programs; what is written goes by the ending of the file's name.

    model.safetensors has the best weights and all that they need, for lrn.load and lrn import. model.onnx has
    the whole model, with model.json beside it, which says what goes in and comes out. model.pt2 has the same,
    compiled for processors like this one (this takes a minute). Both are checked against the run before they
    are there.

    Args:
        run: the run folder.
        file: the file to write, .safetensors, .onnx or .pt2.
        data: where the data is now, if it has moved: a model is checked on it.
        overwrite: replace files that are there.
    """

    run: str
    file: str
    data: str | None = field(default=None, metadata=checks.FOLDER)
    overwrite: bool = False


@dataclass
class Import:
    """Take a safetensors file's weights as the best weights of a run.

    Args:
        run: the run folder.
        file: the file to read.
        overwrite: replace the best weights that are there.
    """

    run: str
    file: str
    overwrite: bool = False


@dataclass
class Serve:
    """Open a page on this machine to try a model in: type, and see what it says while you do.

    Only this machine can reach it (127.0.0.1), and nothing that is typed leaves it. Ctrl-C ends it.

    Args:
        run: the run folder, or a file that lrn export has written (.safetensors).
        port: where the page is; by default 8000, or the next one that is free.
        open: open the page in the browser.
        accelerator: what computes: cpu, cuda or mps; auto takes a GPU where there is one.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
    """

    run: str
    port: int | None = None
    open: bool = False
    accelerator: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        checks.threads(self.threads)
        self.accelerator = checks.choice("accelerator", self.accelerator, ACCELERATORS)
        if self.port is not None and not 0 <= self.port <= 65_535:
            raise ValueError(f"--port must be from 0, which is any free one, to 65535, got {self.port}")


@dataclass
class Average:
    """Make a run whose weights are the mean of those after the latest epochs of another.

    The run must have been trained with --keep_epochs. What comes of it can be evaluated, used and exported
    like any other run.

    Args:
        run: the run folder.
        last: epochs to take the mean of.
        out: the run folder to make; by default that of the run with -average behind its name.
    """

    run: str
    last: int = 5
    out: str | None = field(default=None, metadata=checks.FOLDER)

    def __post_init__(self) -> None:
        checks.at_least(self, "last", 1)
        checks.at_most(self, "last", 10**9)


@dataclass
class Bench:
    """Measure the units' speed against nn.LSTM, nn.GRU and others, taking turns.

    Args:
        shape: steps, batch and width of your own, like 32,128,300; may be several. Without: eight and more.
        seconds: for each shape and mode.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
        out: folder for bench.json and bench.png.
        device: the type of device to measure on, cpu or cuda; beside floors that its memory sets.
    """

    shape: list[str] = field(default_factory=list, metadata={"names": "T,B,H"})
    seconds: float = 12.0
    threads: int = 0
    out: str = field(default="bench", metadata=checks.FOLDER)
    device: str = "cpu"

    def __post_init__(self) -> None:
        checks.threads(self.threads)
        if not self.seconds > 0:
            raise ValueError(f"--seconds must be positive, got {self.seconds}")
        self.shapes()

    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """What the texts say, as numbers."""
        return tuple(_shape(text) for text in self.shape)


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--shape must be three positive whole numbers T,B,H, like 32,128,300; got {text!r}")
    steps, batch, width = map(int, parts)
    return steps, batch, width


@dataclass
class Gradients:
    """Draw how gradients shrink or grow on their way back through time, by unit.

    Args:
        units: the units to compare, those of your own among them: my_module:MyUnit.
        steps: length of the sequence.
        hidden: width of every unit.
        keep: first bias of the gates that keep the state.
        seed: for weights and input.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
        out: the picture to write, .png or .svg.
        overwrite: replace a picture that is there.
    """

    units: str = names.COMPARED
    steps: int = 100
    hidden: int = 64
    keep: float = 0.0
    seed: int = 1
    threads: int = 0
    out: str = field(default="gradients.png", metadata={"names": "picture"})
    overwrite: bool = False

    def __post_init__(self) -> None:
        checks.threads(self.threads)
        for name, least, most in (("steps", 1, 10**6), ("hidden", 1, 65_536), ("seed", 0, 2**63 - 1)):
            checks.at_least(self, name, least)
            checks.at_most(self, name, most)
        if not self.out.lower().endswith((".png", ".svg")):
            raise ValueError(f"--out {self.out}: the name must end in .png or .svg")


@dataclass
class Results:
    """Print what runs have come to as a table, a row for each, so that no figure has to be typed by hand.

    Runs that differ in nothing but the seed are one row, with mean and deviation. Of the settings those are
    shown that differ and that the preset does not explain. A run that is not finished says so in its row.
    Runs of several tasks are a table for each. The paper's figures stand beside them, headed by its own data
    where that is another.

    Args:
        run: the run folders.
        format: md, csv or json, which has the value of every seed.
        validation: the figure on the validation data after each epoch, the best or the last.
        test: figures on the test data by name, like f1,exact; by default the one that counts.
        paper: the preset whose figures of the paper are shown; by default that of each run.
        single: a row for every run, also where only the seed differs.
    """

    run: list[str] = field(default_factory=list, metadata=checks.RUN)
    format: str = "md"
    validation: str = "each"
    test: str = ""
    paper: str | None = None
    single: bool = False

    def __post_init__(self) -> None:
        self.format = checks.choice("format", self.format, ("md", "csv", "json"))
        self.validation = checks.choice("validation", self.validation, ("each", "best", "last"))
        if not self.run:
            raise ValueError("name a run folder, or several: lrn results RUN…")

    def tests(self) -> list[str]:
        """The names of figures on the test data, as typed."""
        return [name.strip() for name in self.test.split(",") if name.strip()]


@dataclass
class Paper:
    """Say how each table and figure of the paper is repeated: the commands, the data, and what is measured.

    Args:
        table: one of them, like table-5 (or 5) or figure-1; all if there is none.
        format: text, or json.
    """

    table: str | None = None
    format: str = "text"

    def __post_init__(self) -> None:
        from lrn.tasks import repeating

        self.format = checks.choice("format", self.format, ("text", "json"))
        if self.table is not None:
            name = f"table-{self.table}" if self.table.isdigit() else self.table.lower()
            self.table = checks.choice("table", name, repeating.NAMES)


@dataclass
class Params:
    """Exact parameter counts of every unit in the paper's settings, beside the paper's.

    Args:
        task: one of the tasks; all if there is none.
    """

    task: str | None = None

    def __post_init__(self) -> None:
        if self.task is not None:
            checks.choice("task", self.task, names.TASKS)


@dataclass
class Doctor:
    """Say what is installed, and check the engine against the definition.

    Args:
        seconds: for the check.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
    """

    seconds: float = 5.0
    threads: int = 0

    def __post_init__(self) -> None:
        checks.at_least(self, "seconds", 0)
        checks.threads(self.threads)
