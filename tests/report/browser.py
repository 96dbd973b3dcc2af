"""A real browser without a window: Chromium, told what to do over WebDriver's HTTP by chromedriver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "headless disable-gpu disable-quic no-first-run disable-background-networking disable-component-update "
    "disable-sync disable-dev-shm-usage"
)


class Browser:
    """One browser with a profile of its own in ``folder``; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.driver = subprocess.Popen(
            [str(DRIVER), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.address = ""
        flags = [*FLAGS.split(), f"user-data-dir={folder}"]
        if os.geteuid() == 0:
            flags.append("no-sandbox")
        options = {"binary": PROGRAM, "args": [f"--{flag}" for flag in flags]}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            base = f"http://127.0.0.1:{self._port()}/session"
            self.address = f"{base}/{_call(base, {'capabilities': {'alwaysMatch': wanted}})['sessionId']}"
        except BaseException:
            self.driver.kill()
            raise

    def _port(self) -> int:
        assert self.driver.stdout is not None
        for line in self.driver.stdout:
            if "successfully on port" in line:
                return int(line.rstrip(".\n").rsplit(" ", 1)[1])
        raise OSError("chromedriver does not start")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _call(self.address, method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait(10)

    def open(self, where: Path | str) -> None:
        """Open a file, or an address."""
        address = where.resolve().as_uri() if isinstance(where, Path) else where
        _call(f"{self.address}/url", {"url": address})

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.devtools("Input.insertText", text=text)

    def ask(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return _call(f"{self.address}/execute/sync", {"script": f"return {script}", "args": []})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was said since last asked: ``browser`` (the console) or ``performance`` (requests, too)."""
        return list(_call(f"{self.address}/se/log", {"type": kind}))

    def requests(self) -> list[str]:
        """The addresses that were asked for since last asked."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def devtools(self, method: str, **params: Any) -> Any:
        return _call(f"{self.address}/goog/cdp/execute", {"cmd": method, "params": params})

    def screen(self, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        """Be a screen of this size; a phone's shows pages as phones do."""
        sizes = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.devtools("Emulation.setDeviceMetricsOverride", **sizes)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """The whole page, also what is below the screen, as PNG."""
        found = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    def printed(self) -> bytes:
        """The page on A4 with a centimetre of margin, as PDF."""
        sizes = {"paperWidth": 8.27, "paperHeight": 11.69}
        margins = {f"margin{side}": 0.4 for side in ("Top", "Bottom", "Left", "Right")}
        return base64.b64decode(self.devtools("Page.printToPDF", **sizes, **margins)["data"])


def _call(address: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    with direct.open(request, timeout=60) as answer:
        return json.load(answer)["value"]
