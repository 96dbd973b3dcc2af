"""``lrn demo``: LRN and nn.LSTM of equal width learn the same text, side by side, in two minutes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

from lrn.text.builtin import python_topics
from lrn.units import LRN


@dataclass(frozen=True)
class Settings:
    """What the demonstration does; ``seconds`` ends it early on a slow machine."""

    width: int = 256
    layers: int = 2
    steps: int = 300
    batch: int = 32
    length: int = 96
    lr: float = 3e-3
    seconds: float = 90.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("width", "layers", "steps", "batch", "length", "seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


class CharModel(nn.Module):
    """Predicts the next character; only the recurrent layer differs between the two."""

    def __init__(self, rnn: nn.Module, characters: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.rnn = rnn
        self.decoder = nn.Linear(width, characters)

    def forward(self, text: Tensor) -> Tensor:
        output, _ = self.rnn(self.embedding(text))
        logits: Tensor = self.decoder(output)
        return logits


@dataclass
class Contestant:
    name: str
    model: CharModel
    optimizer: torch.optim.Optimizer
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """Mean over the last 20 steps."""
        recent = self.losses[-20:]
        return sum(recent) / len(recent)

    def train_step(self, text: Tensor) -> None:
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = bits_per_character(self.model, text)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss.item())


def bits_per_character(model: CharModel, text: Tensor) -> Tensor:
    """Mean loss over ``text [T + 1, B]``, in bits."""
    logits = model(text[:-1])
    return F.cross_entropy(logits.flatten(0, 1), text[1:].flatten()) / torch.log(torch.tensor(2.0))


def read_text() -> tuple[Tensor, Tensor, int]:
    """The built-in text as character numbers: training part, held-out last tenth, number of characters."""
    text = python_topics()
    number = {character: i for i, character in enumerate(sorted(set(text)))}
    data = torch.tensor([number[character] for character in text])
    cut = len(data) * 9 // 10
    return data[:cut], data[cut:], len(number)


def run(settings: Settings | None = None) -> list[Contestant]:
    """Train both, show it, and print what came of it."""
    settings = settings or Settings()
    console = Console()
    train, held_out, characters = read_text()
    contestants = []
    for name, make in {"LRN": LRN, "nn.LSTM": nn.LSTM}.items():
        torch.manual_seed(settings.seed)
        rnn = make(settings.width, settings.width, settings.layers)
        model = CharModel(rnn, characters, settings.width)
        contestants.append(Contestant(name, model, torch.optim.Adam(model.parameters(), settings.lr)))

    console.print(
        f"LRN against nn.LSTM: {settings.layers} layers of {settings.width}, character language model, "
        f"{len(train):,} characters of Python's own documentation, seed {settings.seed}"
    )
    try:
        _train(contestants, train, settings, console)
    except KeyboardInterrupt:
        console.print("stopped; this is what there is so far")
    if all(len(c.seconds) > 1 for c in contestants):
        console.print(_table(contestants, held_out, settings))
    return contestants


def _train(contestants: list[Contestant], train: Tensor, settings: Settings, console: Console) -> None:
    generator = torch.Generator().manual_seed(settings.seed)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeRemainingColumn(),
    )
    start = time.perf_counter()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=settings.steps, losses="")
        for _ in range(settings.steps):
            begin = torch.randint(len(train) - settings.length - 1, (settings.batch,), generator=generator)
            text = train[begin + torch.arange(settings.length + 1)[:, None]]
            for contestant in contestants:
                contestant.train_step(text)
            losses = "  ".join(f"{c.name} {c.loss:.2f} bits" for c in contestants)
            progress.update(task, advance=1, losses=losses)
            if time.perf_counter() - start > settings.seconds:
                progress.update(task, total=progress.tasks[0].completed)
                break


def _table(contestants: list[Contestant], held_out: Tensor, settings: Settings) -> Table:
    table = Table(title="the same model, only the recurrent layer changed")
    for column in ("layer", "parameters", "training loss", "held-out loss", "tokens/s", "time"):
        table.add_column(column, justify="left" if column == "layer" else "right")
    columns = held_out[: len(held_out) // 16 * 16].view(16, -1).t()[:2001]
    fastest = min(_median(c.seconds) for c in contestants)
    for c in contestants:
        with torch.no_grad():
            final = bits_per_character(c.model, columns).item()
        seconds = _median(c.seconds)
        parameters = sum(p.numel() for p in c.model.rnn.parameters())
        table.add_row(
            c.name,
            f"{parameters:,}",
            f"{c.loss:.3f} bits/char",
            f"{final:.3f} bits/char",
            f"{settings.batch * settings.length / seconds:,.0f}",
            f"{seconds / fastest:.2f}x",
        )
    return table


def _median(values: list[float]) -> float:
    return sorted(values[1:])[len(values[1:]) // 2]
