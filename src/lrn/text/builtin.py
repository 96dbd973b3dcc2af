"""Text that every Python brings along, so that everything runs without a download."""

from __future__ import annotations

import importlib


def python_topics() -> str:
    """The language reference behind ``help()``, as one text of about 465,000 characters.

    It differs a little from one Python version to the next.

    >>> "assert" in python_topics()
    True
    """
    topics = importlib.import_module("pydoc_data.topics").topics
    return "\n\n".join(topics[name] for name in sorted(topics))
