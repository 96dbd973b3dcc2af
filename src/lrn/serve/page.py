"""The page to try a model in: one file, made of style.css and script.js, that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from lrn.report import palette


def render(about: Mapping[str, Any]) -> str:
    """The page for a model that ``about`` describes, which the script reads from it as JSON."""
    title = escape(f"lrn: {about['title']}")
    data = json.dumps(about).replace("<", "\\u003c")  # so that no text can end the element
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{style()}</style></head><body>'
        f'<header><h1>{escape(about["title"])}</h1><p class="about">{escape(about["said"])}</p></header>'
        '<main><form id="form"></form><p id="status" role="status"></p>'
        '<div id="result" aria-live="polite"></div></main>'
        "<footer>Whatever is typed here stays on this machine.</footer>"
        f'<script type="application/json" id="about">{data}</script>'
        f"<script>{script()}</script></body></html>\n"
    )


def policy() -> str:
    """The Content-Security-Policy of the page: its own style and script, by their content, and no other."""
    return (
        f"default-src 'none'; style-src {_digest(style())}; script-src {_digest(script())}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def style() -> str:
    """The style sheet, with the colours of all other pictures."""
    ranks = " ".join(f"--rank-{rank}: {colour};" for rank, colour in enumerate(palette.RANKS))
    return f"{palette.SCHEMES}:root {{ --accent: {palette.ACCENT}; {ranks} }}\n{_file('style.css')}"


def script() -> str:
    """The script, which puts what is typed or answered into the page as text alone."""
    return _file("script.js")


def _file(name: str) -> str:
    return files("lrn.serve").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
