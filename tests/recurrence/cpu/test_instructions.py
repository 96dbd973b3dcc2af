"""The kernels of every instruction set, of which a process chooses one when it loads them."""

from recurrence.processes import python


def test_baseline_instructions():
    """The kernels for processors without AVX agree with the definition as well."""
    done = python(
        """
        import torch
        from recurrence.cases import NAMES, assert_as_defined, kinds
        for cell in NAMES:
            for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
                for hidden in (1, 3, 4, 5, 18):
                    for case in kinds(cell, steps=4, batch=9, hidden=hidden, dtype=dtype)[1:3]:
                        assert_as_defined(case)
        """,
        LRN_CPU="baseline",
        LRN_ENGINE="cpu",
    )
    assert done.returncode == 0, done.stderr


def test_unknown_instructions():
    done = python(
        """
        import lrn, torch
        try:
            lrn.LRN(3, 4)(torch.zeros(5, 2, 3))
        except RuntimeError as error:
            print(error)
        """,
        LRN_CPU="bogus",
    )
    assert "environment variable LRN_CPU: this processor does not run 'bogus'" in done.stdout, done.stderr
