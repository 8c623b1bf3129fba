"""A real Chromium without a window, driven over its own protocol."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
WAIT_SECONDS = 20.0


class Browser:
    """One page; every console error, exception and refused request is kept in `errors`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)  # a page without a window has no focus to give

    def send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=WAIT_SECONDS))
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._hear(message)

    def open(self, path: Path) -> None:
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState === 'complete' && document.querySelector('section.run') !== null")

    def run(self, code: str) -> Any:
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, code: str) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not self.run(code):
            assert time.monotonic() < end, f"never true: {code}"
            time.sleep(0.05)

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def picture(self, path: Path, whole: bool = True) -> None:
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def _hear(self, message: dict[str, Any]) -> None:
        what, said = message.get("method"), message.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.errors.append(str(said["exceptionDetails"]))
        elif what == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.errors.append(str(said["args"]))
        elif what == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.errors.append(said["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"][:100])


@contextmanager
def chromium() -> Iterator[Browser]:
    """A fresh browser, ended afterwards."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions", "--mute-audio"]
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [CHROMIUM, *options, *sandbox, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(_address(Path(profile), process), max_size=None, proxy=None) as socket:
                yield Browser(socket)
        finally:
            process.terminate()
            process.wait(timeout=WAIT_SECONDS)


def _address(profile: Path, process: "subprocess.Popen[bytes]") -> str:
    """Of the first page, once the browser has written down its port."""
    import http.client

    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, f"{CHROMIUM} ended with {process.returncode}"
        try:
            port = int((profile / "DevToolsActivePort").read_text().split()[0])
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            link.request("GET", "/json/list")
            pages = [page for page in json.loads(link.getresponse().read()) if page["type"] == "page"]
            link.close()
            return str(pages[0]["webSocketDebuggerUrl"])
        except (OSError, ValueError, IndexError):
            time.sleep(0.05)
    raise AssertionError("the browser never opened its port")
