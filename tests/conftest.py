"""One setting for all property tests: the same examples on every run, and no clock."""

from accelerator import THERE
from hypothesis import HealthCheck, settings

settings.register_profile(
    "lrn",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lrn")


def pytest_collection_modifyitems(config, items):
    """Tests on the made-up device have a process of their own, which runs nothing else.

    The test that starts it takes longest and comes first, so that no worker waits for another in the end.
    """
    left_out = [item for item in items if bool(item.get_closest_marker("accelerator")) != THERE]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    items.sort(key=lambda item: item.path.name != "test_accelerator.py")
