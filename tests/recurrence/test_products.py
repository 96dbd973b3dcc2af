"""Products by oneDNN are those of the definition, gradients too, and are taken only where they should be.

The machine may be one where nothing is gained: the tests switch the choice on, so that the way through oneDNN
is taken on every processor that has it.
"""

import pytest
import torch
import torch.nn.functional as F
from helpers import randn
from torch.utils._python_dispatch import TorchDispatchMode

import lrn
from lrn.nn import Linear
from lrn.recurrence import modes, products

if modes.onednn_linear is None:
    pytest.skip("this torch has no oneDNN", allow_module_level=True)

CLOSE = {"rtol": 0, "atol": 1e-4}  # of sums of some hundred products of normal numbers


class Seen(TorchDispatchMode):
    """Which libraries' products are called."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls.append(str(function))
        return function(*args, **(kwargs or {}))

    def __exit__(self, *args):
        super().__exit__(*args)
        self.onednn = sum("mkldnn::" in call or "mkldnn." in call for call in self.calls)
        self.torchs = sum(call.split(".")[1] in ("mm", "addmm", "addmm_", "bmm") for call in self.calls)


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    monkeypatch.setattr(products, "GAINS", True)


def floats(*shape, seed=1):
    return randn(*shape, seed=seed, dtype=torch.float32)


def assert_product(found, a, b):
    """That it is a @ b, to 1e-6 of the sizes of what is added up."""
    exact, sizes = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    assert ((found - exact).abs() <= 1e-6 * sizes).all()


LAYOUTS = {
    "rows": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "with gaps": lambda x: F.pad(x, (3, 5))[:, 3:-5],
    "repeated": lambda x: x[:1].expand(x.shape),
}


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("sizes", [(64, 200, 96), (300, 64, 80), (80, 64, 300)])
def test_a_product_of_any_layout(first, second, sizes):
    rows, inner, columns = sizes
    a, b = LAYOUTS[first](floats(rows, inner)), LAYOUTS[second](floats(inner, columns, seed=2))
    with Seen() as seen:
        found = products.product(a, b)
    assert seen.onednn == 1
    assert_product(found, a, b)
    out, total = torch.full((rows, columns), torch.nan), floats(rows, columns, seed=3)
    assert products.product_into(out, a, b) is out
    assert_product(out, a, b)
    torch.testing.assert_close(products.add_product(total.clone(), a, b), total + found, **CLOSE)


@pytest.mark.parametrize("leading", [(256,), (4, 64), (2, 8, 16)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_linear_and_its_gradients(leading, bias, transposed):
    x, weight = floats(*leading, 96), floats(80, 96, seed=2)
    if transposed:
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    given = [x, weight, *([floats(80, seed=3)] if bias else [])]
    grad = floats(*leading, 80, seed=4)
    found, wanted = [], []
    for function, results, kind in (
        (products.linear, found, torch.float32),
        (F.linear, wanted, torch.float64),
    ):
        leaves = [value.detach().to(kind).requires_grad_() for value in given]
        with Seen() as seen:
            output = function(*leaves)
            results += [output, *torch.autograd.grad(output, leaves, grad.to(kind))]
        assert seen.onednn == (3 if function is products.linear else 0)
    for ours, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, exact.float(), rtol=1e-6, atol=5e-5)


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2)])
def test_some_of_the_gradients(needed):
    leaves = [floats(256, 96), floats(80, 96, seed=2), floats(80, seed=3)]
    for n in needed:
        leaves[n].requires_grad_()
    wanted = [leaves[n] for n in needed]
    ours, plain = (
        torch.autograd.grad(f(*leaves).square().sum(), wanted) for f in (products.linear, F.linear)
    )
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-2)


def test_what_comes_out_can_be_changed_in_place():
    """As what ``F.linear`` returns can, with padded rows and without."""
    for rows in (256, 300):
        layer, x = Linear(96, 80), floats(rows, 96)
        assert (layer(x).relu_() >= 0).all()
        with torch.no_grad():
            found = layer(x)
        found.add_(layer.bias).sum().backward()
        torch.testing.assert_close(layer.bias.grad, torch.full((80,), float(rows)))
        layer(x).detach_()


@pytest.mark.parametrize("learns", ["x", "weight"])
def test_only_what_gradients_need_is_kept(learns):
    x, weight = floats(256, 96), floats(80, 96, seed=2)
    (x if learns == "x" else weight).requires_grad_()
    other = weight if learns == "x" else x
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        products.linear(x, weight)
    assert [tensor.shape for tensor in kept] == [other.shape]


def test_second_gradients():
    """Of a function of x and of a weight that is computed from x."""
    x = (floats(96, 96) / 20).requires_grad_()
    found = []
    for linear in (products.linear, F.linear):
        (first,) = torch.autograd.grad(linear(x, x.t() * x).tanh().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


def test_many_gradients_at_once():
    x, weight = floats(256, 96).requires_grad_(), floats(80, 96, seed=2)
    grads = floats(3, 256, 80, seed=3)
    (found,) = torch.autograd.grad(products.linear(x, weight), x, grads, is_grads_batched=True)
    torch.testing.assert_close(found, grads @ weight, **CLOSE)


def test_the_same_bits_every_time_and_with_any_number_of_threads():
    a, b = floats(5000, 64), floats(5000, 192, seed=2)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 2, 1):
            torch.set_num_threads(threads)
            found.append(products.product(a.t(), b))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("sizes", [(64, 96), (96, 64)])
def test_few_shapes_come_up(sizes, monkeypatch):
    """oneDNN compiles a kernel for each of them, and every batch has another number of rows."""
    shapes, multiply = set(), modes.onednn_linear

    def count(x, weight, *rest):
        shapes.add((*x.shape, *weight.shape))
        return multiply(x, weight, *rest)

    monkeypatch.setattr(modes, "onednn_linear", count)
    weight = floats(*sizes, seed=2)
    for rows in range(512, 1024, 7):
        x, grad = floats(rows, sizes[1]), floats(rows, sizes[0], seed=3)
        assert_product(products.linear(x, weight), x, weight.t())
        assert_product(products.product(grad, weight), grad, weight)
        assert_product(products.product(grad.t(), x), grad.t(), x)
    assert len(shapes) <= 3 * 17


# What goes to torch as ever ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    {
        "small": lambda x, w: (x[:8], w),
        "narrow": lambda x, w: (x.repeat(8, 1), w[:8]),
        "float64": lambda x, w: (x.double(), w.double()),
        "bfloat16": lambda x, w: (x.bfloat16(), w.bfloat16()),
        "elsewhere": lambda x, w: (x.to("meta"), w.to("meta")),
        "nothing": lambda x, w: (x[:0], w),
        "sparse": lambda x, w: (x, w.to_sparse_coo()),
    }.items(),
    ids=lambda item: item[0],
)
def test_left_alone(change):
    x, weight = change[1](floats(256, 96), floats(80, 96, seed=2))
    with Seen() as seen:
        products.linear(x, weight)
        products.product(x, weight.t())
    assert not seen.onednn


def test_left_alone_where_shapes_do_not_fit():
    x, weight = floats(256, 96), floats(80, 96, seed=2)
    torch.testing.assert_close(products.linear(x, weight, torch.ones(1)), x @ weight.t() + 1, **CLOSE)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        products.linear(x[:, :40], weight)


@pytest.mark.filterwarnings("error::torch.jit.TracerWarning")
def test_left_alone_while_it_is_traced():
    layer, x = Linear(96, 80), floats(256, 96)
    traced = torch.jit.trace(layer, x)
    torch.testing.assert_close(traced(x[:100]), layer(x[:100]), **CLOSE)


def test_left_alone_where_onednn_is_switched_off():
    with torch.backends.mkldnn.flags(enabled=False), Seen() as seen:
        products.linear(floats(256, 96), floats(80, 96))
    assert not seen.onednn


def test_left_alone_under_autocast():
    with torch.autocast("cpu", torch.bfloat16), Seen() as seen:
        assert products.linear(floats(256, 96), floats(80, 96)).dtype == torch.bfloat16
    assert not seen.onednn


def test_torch_s_transforms_and_the_compiler_see_plain_operations():
    x, weight = floats(256, 96), floats(80, 96, seed=2)
    wanted = F.linear(x, weight)
    found = torch.func.vmap(lambda row: products.linear(row, weight))(x.unflatten(0, (4, 64)))
    torch.testing.assert_close(found.flatten(0, 1), wanted, **CLOSE)
    _, along = torch.func.jvp(lambda y: products.linear(y, weight), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(along, F.linear(torch.ones_like(x), weight), **CLOSE)
    graph = torch.fx.symbolic_trace(lambda y: products.linear(y, weight))
    torch.testing.assert_close(graph(x), wanted, **CLOSE)
    exported = torch.export.export(Linear(96, 80), (x,), dynamic_shapes=[{0: torch.export.Dim.DYNAMIC}])
    assert "mkldnn" not in str(exported.graph)


# The processor ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "capability", "gains"),
    [
        ("vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n", "AVX512", True),
        ("vendor_id\t: AuthenticAMD\n", "AVX2", False),
        ("vendor_id\t: GenuineIntel\n", "AVX512", False),
        ("CPU implementer\t: 0x41\n", "AVX512", False),
        (None, "AVX512", False),
    ],
)
@pytest.mark.parametrize("mkl", [True, False])
def test_which_processors_gain(text, capability, gains, mkl, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    assert products._gains(file) is (gains and mkl)


# Those who call it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", lrn.UNITS)
@pytest.mark.parametrize("steps", [160, 40], ids=["in chunks", "in one piece"])
def test_units_are_the_same_by_either_library(name, steps, monkeypatch):
    """Output and gradients. LSTM and GRU are torch's own, whose products are torch's choice."""
    unit, x = lrn.make_unit(name, 64, 64), floats(steps, 32, 64).requires_grad_()
    found = []
    for gains in (True, False):
        monkeypatch.setattr(products, "GAINS", gains)
        with Seen() as seen:
            output, _ = unit(x)
            leaves = [x, *unit.parameters()]
            found.append([output, *torch.autograd.grad(output.square().mean(), leaves)])
        assert bool(seen.onednn) == (gains and name not in ("lstm", "gru"))
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)
