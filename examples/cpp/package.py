"""Compiles a model with one of lrn's units into a package that main.cpp runs.

    python examples/cpp/package.py FOLDER

It writes model.pt2, an example of its inputs (inputs.pt) and what Python makes of it (expected.pt).
"""

import sys
from pathlib import Path

import torch

import lrn


class Model(torch.nn.Module):
    """Reads sequences in both directions, and says a number at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = lrn.LRN(5, 8, num_layers=2, bidirectional=True)
        self.output = torch.nn.Linear(16, 1)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        read, state = self.rnn(x, lengths=lengths)
        return self.output(read), state


def main(folder: Path) -> None:
    torch.manual_seed(1)
    model = Model().eval()
    steps, rows = torch.export.Dim("steps", min=1), torch.export.Dim("rows", min=1)
    shapes = ({0: steps, 1: rows}, {0: rows})
    with torch.no_grad():
        program = torch.export.export(
            model, (torch.randn(6, 3, 5), torch.tensor([6, 2, 4])), dynamic_shapes=shapes
        )
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
        inputs = [torch.randn(9, 4, 5), torch.tensor([9, 0, 3, 7])]  # other sizes than it was compiled with
        torch.save(inputs, folder / "inputs.pt")
        torch.save(model(*inputs), folder / "expected.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
