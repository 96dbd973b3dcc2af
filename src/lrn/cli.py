"""``lrn …``: thin; every command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

EXTRAS = {"rich": "train", "matplotlib": "plot"}  # which extra brings a package
OVERVIEW = """\
lrn: lightweight recurrent networks for PyTorch

  lrn demo     train LRN and nn.LSTM side by side for two minutes
  lrn bench    measure speed against nn.LSTM, nn.GRU and others on this machine

`lrn COMMAND --help` explains a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lrn", description=OVERVIEW, add_help=True)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_demo(commands)
    _add_bench(commands)
    args = parser.parse_args(argv)
    if args.version:
        from importlib.metadata import version

        print(f"lrn {version('lrn')}")
    elif args.command is None:
        print(OVERVIEW)
    else:
        try:
            args.run(args)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            return _fail(f"this command needs {package}: pip install 'lrn[{EXTRAS[package]}]'")
        except (OSError, ValueError) as error:
            return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"lrn: {message}", file=sys.stderr)
    return 2


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser("demo", help="train LRN and nn.LSTM side by side for two minutes")
    demo.add_argument("--width", type=int, default=256, help="hidden size of both (default 256)")
    demo.add_argument("--layers", type=int, default=2, help="layers of both (default 2)")
    demo.add_argument("--steps", type=int, default=300, help="training steps at the most (default 300)")
    demo.add_argument("--seconds", type=float, default=90.0, help="stop after this time (default 90)")
    demo.add_argument("--seed", type=int, default=1, help="for weights and batches (default 1)")

    def run(args: argparse.Namespace) -> None:
        from lrn import demo

        demo.run(demo.Settings(args.width, args.layers, args.steps, seconds=args.seconds, seed=args.seed))

    demo.set_defaults(run=run)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bench = commands.add_parser("bench", help="measure speed against nn.LSTM, nn.GRU and others")
    bench.add_argument(
        "--shape",
        action="append",
        metavar="T,B,H",
        help="steps, batch, width of your own; may be given more than once (default: eight shapes and more)",
    )
    bench.add_argument("--seconds", type=float, default=12.0, help="for each shape and mode (default 12)")
    bench.add_argument("--out", default="bench", help="folder for bench.json and bench.png (default bench)")

    def run(args: argparse.Namespace) -> None:
        from pathlib import Path

        shapes = tuple(_shape(text) for text in args.shape or ())
        from lrn import bench

        bench.run(bench.Settings(shapes, args.seconds, Path(args.out)))

    bench.set_defaults(run=run)


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--shape must be three positive whole numbers T,B,H, like 32,128,300; got {text!r}")
    steps, batch, width = map(int, parts)
    return steps, batch, width
