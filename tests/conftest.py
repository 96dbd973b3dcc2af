"""One setting for all property tests: the same examples on every run, and no clock."""

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
