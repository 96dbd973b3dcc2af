"""The page as a file: whole, its own style and script allowed by their content, nothing from elsewhere."""

import base64
import hashlib
import json
import re

from lrn.report import palette
from lrn.serve import page

ABOUT = {
    "title": "Document classification",
    "said": "lrn, 3 parameters; </title><script>alert(1)</script>",
    "fields": [{"name": "text", "most": 10, "lines": 2}],
    "options": [],
    "example": ["</script><script>alert(1)</script>"],
}


def test_its_policy_allows_its_own_style_and_script_alone():
    shown = page.render(ABOUT)
    for tag in ("style", "script"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", shown, re.S)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy()


def test_nothing_comes_from_elsewhere():
    shown = page.render(ABOUT)
    assert not re.search(r"(src|href|action)=(?!\"data:,\")", shown)
    assert not re.search(r"https?://|@import|url\(", shown)


def test_what_is_said_of_a_model_is_text():
    shown = page.render(ABOUT)
    assert shown.count("<script") == 2
    assert "&lt;/title&gt;&lt;script&gt;" in shown
    data = shown.partition('id="about">')[2].partition("</script>")[0]
    assert json.loads(data) == ABOUT


def test_its_script_writes_no_markup():
    """Nor does it run text, or keep any."""
    script = page.script()
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        'setAttribute("on',
    ):
        assert way not in script
    for place in ("localStorage", "sessionStorage", "cookie", "indexedDB"):
        assert place not in script


def test_it_has_the_colours_of_all_pictures():
    style = page.style()
    assert f"--accent: {palette.ACCENT};" in style
    for rank, colour in enumerate(palette.RANKS):
        assert f"--rank-{rank}: {colour};" in style
    assert f"part.rank % {len(palette.RANKS)}" in page.script()
    assert len(re.findall(r"--paper: #\w+", style)) == 2
