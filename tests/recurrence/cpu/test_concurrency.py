"""Many callers at once: Python threads, forked processes, and the engine that each chooses for itself."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from recurrence.cases import NAMES, Case, assert_equal, call_case, randn, run
from recurrence.processes import python
from torch.utils.data import DataLoader, Dataset

import lrn
from lrn.recurrence import dispatch


@pytest.mark.parametrize("cell", NAMES)
def test_threads_do_not_meet(cell):
    """Forward and backward from several threads at once give each the bits it gets alone."""
    cases = [Case(cell, 20, 9, 65, "both", "lengths", seed=n, dtype=torch.float32) for n in range(4)]
    alone = [call_case(case) for case in cases]
    start = threading.Barrier(len(cases))

    def work(case):
        start.wait()
        return [call_case(case) for _ in range(5)]

    with ThreadPoolExecutor(len(cases)) as pool:
        for expected, results in zip(alone, pool.map(work, cases), strict=True):
            for result in results:
                assert_equal(result, expected)


def test_autograd_from_threads():
    """The same through autograd, whose backward runs on threads of its own choosing."""
    case = Case("lrn_tanh", 30, 8, 64, "both", dtype=torch.float32)
    alone = run(case)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: run(case), range(12)):
            assert_equal(result, alone)


def test_threads_change_at_run_time():
    """Another number of threads between forward and backward is no trouble."""
    case = Case("sru", 20, 9, 129, "both", "lengths", dtype=torch.float32)
    x, state, weight, *rest = case.positional()
    expected = call_case(case)
    _, memory, _ = torch.ops.lrn.scan(x, state, weight, *rest)
    above = case.gradients()
    for threads in (1, 8, 3):
        torch.set_num_threads(threads)
        args = (above["output"], above["final"], x, state, weight, memory, *rest)
        gradients = torch.ops.lrn.scan_backward(*args)
        assert_equal({"grad_x": gradients[0]}, {"grad_x": expected["grad_x"]})


def test_engine_stays_in_its_thread():
    """A ``with`` block in one thread is not seen by another that runs meanwhile."""
    inside, looked = threading.Event(), threading.Event()
    seen = {}

    def other():
        inside.wait(30)
        seen["other"] = dispatch.choose(torch.device("cpu"))
        looked.set()

    before = dispatch.choose(torch.device("cpu"))
    thread = threading.Thread(target=other)
    thread.start()
    with lrn.engine("torch" if before == "cpu" else "cpu"):
        inside.set()
        looked.wait(30)
        assert dispatch.choose(torch.device("cpu")) != before
    thread.join()
    assert seen == {"other": before}


class Outputs(Dataset):
    """Samples that a unit has already read, as a feature extractor would do it."""

    def __init__(self):
        torch.manual_seed(0)
        self.unit = lrn.LRN(8, 64, bidirectional=True)

    def __len__(self):
        return 6

    def __getitem__(self, n):
        x = randn(50, 4, 8, seed=n, dtype=torch.float32).requires_grad_()
        output, _ = self.unit(x)
        output.sum().backward()
        return output.detach(), x.grad


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_data_loader_workers():
    """A unit works in forked workers, after the parent has already run it on several threads."""
    data = Outputs()
    expected = [data[n] for n in range(len(data))]
    loader = DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
    for got, wanted in zip(loader, expected, strict=True):
        torch.testing.assert_close(tuple(got), wanted, rtol=0, atol=1e-6)  # the matrix product is torch's


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_after_fork():
    """A bare fork: the child runs the engine and gets its parent's bits."""
    done = python(
        """
        import os, sys, torch
        from recurrence.cases import Case, assert_equal, call_case
        torch.set_num_threads(2)
        case = Case("lrn_tanh", 40, 16, 64, "both", dtype=torch.float32)
        expected = call_case(case)
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)  # as DataLoader's workers do: OpenMP's threads do not survive a fork
            assert_equal(call_case(case), expected)
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.returncode == 0, done.stderr
