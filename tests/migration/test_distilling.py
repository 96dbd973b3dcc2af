"""`lrn.distill`: a student learns to imitate, the report is plain arithmetic, nothing else changes."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from helpers import says
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

import lrn
from lrn import progress
from lrn.migration.distilling import Report


class Scorer(nn.Module):
    """Scores of every step, with a state behind them if asked for."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.rnn = nn.LSTM(3, 6, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(6, 4)

    def forward(self, x, lengths=None, with_state=False):
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, state = self.rnn(x)
        if lengths is not None:
            output, _ = pad_packed_sequence(output, batch_first=True)
        scores = self.head(self.drop(output))
        return (scores, state) if with_state else scores


def pair(unit="lrn", **kwargs):
    torch.manual_seed(1)
    teacher = Scorer(**kwargs)
    with torch.no_grad():
        for parameter in teacher.rnn.parameters():
            parameter.mul_(2)
    return teacher, lrn.replace(copy.deepcopy(teacher), unit, verbose=False)


def inputs(count=12, *shape):
    source = torch.Generator().manual_seed(3)
    return [torch.randn(*(shape or (8, 6, 3)), generator=source) for _ in range(count)]


def distill(teacher, student, batches, **kwargs):
    return lrn.distill(teacher, student, batches, **({"verbose": False, "seed": 1} | kwargs))


def plain_agreement(teacher, student, batches):
    """Variance explained and equal arg max, all batches at once."""
    with torch.no_grad():
        theirs, mine = (
            torch.cat([model.eval()(x).flatten(0, 1) for x in batches]).double()
            for model in (teacher, student)
        )
    left = (mine - theirs).square().sum() / (theirs - theirs.mean(0)).square().sum()
    return 1 - left.item(), (mine.argmax(-1) == theirs.argmax(-1)).double().mean().item()


# What it does -----------------------------------------------------------------------------------


def test_a_student_learns_to_imitate():
    teacher, student = pair()
    report = distill(teacher, student, inputs(60), steps=250, lr=0.02, valid=inputs(4, 16, 6, 3))
    assert report.before.explained < 0.5
    assert report.after.explained > 0.85
    assert report.after.same > report.before.same
    assert report.steps == 250
    assert not report.interrupted


def test_the_figures_are_those_of_plain_arithmetic():
    teacher, student = pair()
    held = inputs(3, 5, 6, 3)
    first = plain_agreement(teacher, student, held)
    report = distill(teacher, student, inputs(), steps=10, valid=held)
    last = plain_agreement(teacher, student, held)
    assert (report.before.explained, report.before.same) == pytest.approx(first, abs=1e-6)
    assert (report.after.explained, report.after.same) == pytest.approx(last, abs=1e-6)
    assert first != last
    assert report.batches == 3


def test_without_valid_the_first_batches_are_measured():
    teacher, student = pair()
    batches = inputs(11)
    expected = plain_agreement(teacher, student, batches[:8])
    report = distill(teacher, student, batches, epochs=1)
    assert (report.before.explained, report.before.same) == pytest.approx(expected, abs=1e-6)
    assert (report.batches, report.steps) == (8, 11)


def test_the_teacher_and_the_modes_stay():
    teacher, student = pair(dropout=0.3)
    teacher.train()
    teacher.head.eval()
    student.eval()
    student.rnn.train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    frozen = student.head.weight.requires_grad_(False).clone()
    drawn = torch.get_rng_state()
    distill(teacher, student, inputs(), steps=5)
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())
    assert [m.training for m in (teacher, teacher.rnn, teacher.head)] == [True, True, False]
    assert [m.training for m in (student, student.rnn, student.head)] == [False, True, False]
    assert torch.equal(student.head.weight, frozen)
    assert all(parameter.grad is None for model in (teacher, student) for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), drawn)


def test_the_teacher_evaluates_and_the_student_trains():
    """Dropout is the student's alone; agreement is measured without any."""
    teacher, student = pair(dropout=0.3)
    seen = []

    def run(model, batch):
        seen.append((model is teacher, model.training, model.drop.training))
        return model(batch)

    distill(teacher.train(), student.eval(), inputs(2), steps=1, call=run)
    measured = [(True, False, False), (False, False, False)] * 2
    assert seen == [*measured, (True, False, False), (False, True, True), *measured]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_seed_decides(seed):
    """Dropout, and the order of a DataLoader."""

    def trained(seed):
        teacher, student = pair(dropout=0.3)
        loader = DataLoader([x[0] for x in inputs(12)], batch_size=3, shuffle=True)
        distill(teacher, student, loader, epochs=2, seed=seed)
        return student.rnn.weight_ih_l0

    one, again, other = trained(seed), trained(seed), trained(seed + 2)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_loss_of_ones_own():
    def divergence(student, teacher):
        seen.append(teacher.requires_grad)
        return nn.functional.kl_div(
            student.log_softmax(-1), teacher.log_softmax(-1), log_target=True, reduction="batchmean"
        )

    seen = []
    teacher, student = pair()
    report = distill(teacher, student, inputs(), steps=150, lr=0.02, loss=divergence)
    assert report.after.same > report.before.same
    assert seen == [False] * 150


# Batches ----------------------------------------------------------------------------------------


def test_kinds_of_batches():
    """Arguments, keywords, and what comes behind the output is a state and not imitated."""
    x, lengths = inputs(1)[0], torch.tensor([6, 2, 5, 1, 6, 3, 4, 6])
    for batch in (x, (x,), (x, lengths), {"x": x, "lengths": lengths}, {"x": x, "with_state": True}):
        teacher, student = pair()
        report = distill(teacher, student, [batch] * 3, steps=60, lr=0.02)
        assert report.after.explained > max(0.5, report.before.explained)


def test_packed_sequences():
    torch.manual_seed(1)
    teacher = nn.GRU(3, 5, bidirectional=True)
    student = lrn.replace(copy.deepcopy(teacher), "lrn", verbose=False)
    batches = [pack_sequence([x[0], x[1, :4], x[2, :1]]) for x in inputs()]
    report = distill(teacher, student, batches, steps=120, lr=0.02)
    assert report.after.explained > 0.7 > report.before.explained


def test_call():
    """For models that are not simply called."""
    teacher, student = pair()
    report = distill(
        teacher,
        student,
        list(zip(inputs(), range(12), strict=True)),
        call=lambda model, batch: model(batch[0]),
    )
    assert report.steps == 12


def test_iterators_are_gone_through_once():
    teacher, student = pair()
    assert distill(teacher, student, iter(inputs(10)), steps=50).steps == 10
    assert distill(teacher, student, iter(inputs(10)), steps=4).steps == 4
    assert distill(teacher, student, inputs(10), steps=23).steps == 23
    assert distill(teacher, student, inputs(10), epochs=2).steps == 20
    assert distill(teacher, student, inputs(10)).steps == 10


# States -----------------------------------------------------------------------------------------


def test_states_are_imitated():
    """Layers of the same name come closer than by the outputs alone."""
    found = {}
    for weight in (False, 5.0):
        teacher, student = pair()
        report = distill(teacher, student, inputs(), steps=150, lr=0.02, states=weight)
        with torch.no_grad():
            theirs, mine = (torch.cat([m.eval().rnn(x)[0] for x in inputs()]) for m in (teacher, student))
        found[weight] = (mine - theirs).square().mean().item()
        assert list(report.after.states) == (["rnn"] if weight else [])
    assert found[5.0] < 0.8 * found[False]
    assert report.after.states["rnn"] > report.before.states["rnn"]
    assert not teacher.rnn._forward_hooks
    assert not student.rnn._forward_hooks


def test_states_need_layers_of_the_same_name():
    class Other(Scorer):
        def __init__(self):
            super().__init__()
            self.layer = self.rnn
            del self.rnn

        def forward(self, x):
            return self.head(self.layer(x)[0])

    with pytest.raises(ValueError, match="no recurrent layer of the same name"):
        distill(Scorer(), Other(), inputs(), states=True)


# Ending early -----------------------------------------------------------------------------------


def test_ctrl_c_leaves_a_usable_student():
    teacher, student = pair()
    begin = student.rnn.weight_ih_l0.detach().clone()

    def batches():
        yield from inputs(30)
        raise KeyboardInterrupt

    report = distill(teacher, student, batches(), steps=100, lr=0.02)
    assert (report.steps, report.interrupted) == (30, True)
    assert "interrupted after 30 steps" in str(report)
    assert report.after.explained > report.before.explained
    assert not torch.equal(student.rnn.weight_ih_l0, begin)
    assert all(p.isfinite().all() for p in student.parameters())
    assert not student.head.weight.grad


def test_a_loss_that_is_no_number_ends_it():
    teacher, student = pair()
    good = {name: value.clone() for name, value in student.state_dict().items()}
    with pytest.raises(FloatingPointError, match=says("the loss is nan at step 1", "smaller lr than 0.5")):
        distill(teacher, student, inputs(), lr=0.5, loss=lambda mine, theirs: mine.sum() * float("nan"))
    assert all(torch.equal(value, good[name]) for name, value in student.state_dict().items())


def test_a_teacher_whose_output_is_no_number_is_named():
    teacher, student = pair()
    with torch.no_grad():
        teacher.head.bias[0] = torch.nan
    with pytest.raises(FloatingPointError, match=says("the loss is nan at step 1", "the teacher's output")):
        distill(teacher, student, inputs())


# What it says -----------------------------------------------------------------------------------


def test_progress(monkeypatch, capsys):
    """On standard error, a line now and then, with the time that is left."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    distill(*pair(), inputs(), steps=3, verbose=True)
    out, said = capsys.readouterr()
    assert out == ""
    assert len(said.splitlines()) == 3
    assert said.startswith("imitating: step 1/3  loss ")
    assert said.splitlines()[0].endswith(" left")
    distill(*pair(), inputs(), steps=3)
    assert capsys.readouterr() == ("", "")


def test_a_student_that_has_become_worse_is_warned_of():
    teacher, _ = pair()
    student = copy.deepcopy(teacher)
    with pytest.warns(
        UserWarning, match=says("agrees less with the teacher than before", "100.00% to", "lr")
    ):
        distill(teacher, student, inputs(), steps=3, lr=0.5, loss=lambda mine, theirs: (mine + theirs).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distill(*pair(), inputs(), steps=60, lr=0.02)


def test_the_report_prints_well():
    report = Report(
        1200,
        75.4,
        0.01234,
        lrn.migration.agreement.Agreement(-3.2, 0.21, {"rnn": -1.0}),
        lrn.migration.agreement.Agreement(0.971, 0.955, {"rnn": 0.9}),
        8,
    )
    assert str(report).splitlines() == [
        "imitated in 1,200 steps, 1:15; loss 0.01234",
        "agreement on 8 batches            before     after",
        "variance explained              -320.00%    97.10%",
        "same largest entry                21.00%    95.50%",
        "states of rnn                   -100.00%    90.00%",
    ]


# What is refused --------------------------------------------------------------------------------


def test_wrong_models():
    teacher, student = pair()
    with pytest.raises(ValueError, match=says("same model", "copy.deepcopy(teacher)")):
        distill(teacher, teacher, inputs())
    with pytest.raises(TypeError, match=says("teacher must be an nn.Module, got a function")):
        distill(lambda x: x, student, inputs())
    student.head = teacher.head
    with pytest.raises(ValueError, match=says("they share head.weight")):
        distill(teacher, student, inputs())
    with pytest.raises(ValueError, match="all of them are frozen"):
        distill(teacher, copy.deepcopy(student).requires_grad_(False), inputs())


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"steps": 3, "epochs": 2}, "steps or epochs, not both"),
        ({"steps": 0}, "steps must be a positive whole number, got 0"),
        ({"epochs": 1.5}, "epochs must be a positive whole number, got 1.5"),
        ({"lr": 0}, "lr must be a positive number, got 0"),
        ({"clip": float("nan")}, "clip must be a positive number, got nan"),
        ({"valid": []}, "valid is empty"),
        ({"states": -1}, "states must be a weight of 0 or more, got -1"),
        ({"states": float("nan")}, "states must be a weight of 0 or more, got nan"),
    ],
)
def test_wrong_settings(kwargs, text):
    with pytest.raises(ValueError, match=text):
        distill(*pair(), inputs(), **kwargs)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda mine, theirs: (mine - theirs).square(), "a tensor of one number, got shape [8, 6, 4]"),
        (lambda mine, theirs: (mine - theirs).square().mean().item(), "a tensor of one number, got a float"),
        (lambda mine, theirs: None, "got a NoneType"),
    ],
    ids=["matrix", "float", "nothing"],
)
def test_a_loss_that_is_no_number_at_all(loss, said):
    with pytest.raises(TypeError, match=says("loss must return", said)):
        distill(*pair(), inputs(), loss=loss)


def test_labels_in_a_batch():
    """What a loader of labelled data gives is not what the model takes, and the way out is said."""

    class Plain(Scorer):
        def forward(self, x):
            return super().forward(x)

    teacher = Plain()
    student = lrn.replace(copy.deepcopy(teacher), verbose=False)
    x = inputs(1, 12, 6, 3)[0]
    loader = DataLoader(TensorDataset(x, torch.zeros(12)), batch_size=4)
    with pytest.raises(
        TypeError, match=says("a batch of 2 is", "the model's arguments", "with labels", "call=")
    ):
        distill(teacher, student, loader)
    assert distill(teacher, student, loader, call=lambda model, batch: model(batch[0])).steps == 3


def test_an_error_of_the_model_is_left_as_it_is():
    def forward(x, other):
        raise TypeError("its own")

    teacher, student = pair()
    teacher.forward = forward
    with pytest.raises(TypeError, match=r"^its own$"):
        distill(teacher, student, [(inputs(1)[0], 1)])


def test_wrong_batches():
    with pytest.raises(ValueError, match="batches is empty"):
        distill(*pair(), [])
    with pytest.raises(TypeError, match=says("batches must be several inputs", "got a Tensor")):
        distill(*pair(), inputs()[0])
    with pytest.raises(ValueError, match=says("iterator", "once and not 3 times")):
        distill(*pair(), iter(inputs()), epochs=3)


def test_outputs_that_do_not_fit():
    teacher, student = pair()
    student.head = nn.Linear(6, 5)
    with pytest.raises(
        ValueError, match=says("the teacher gives [8, 6, 4] where the student gives [8, 6, 5]")
    ):
        distill(teacher, student, inputs())
    with pytest.raises(TypeError, match="whole numbers"):
        distill(*pair(), inputs(), call=lambda model, x: model(x).argmax(-1))
    with pytest.raises(TypeError, match=says("returned a NoneType", "give call=")):
        distill(*pair(), inputs(), call=lambda model, x: None)
