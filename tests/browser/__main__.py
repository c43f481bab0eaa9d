"""Walks every page with a real browser, at 20 and at 5,000 nodes, and as a hostile tenant: `make web-test`.

Fails for an error in the console, a first paint after 1.5 s, an update of more than 100 ms of the main thread, and
anything that axe-core finds. Writes the screenshots of docs/web.md into a folder.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tests.web.clusters import HOSTILE, cluster

FIRST_PAINT, UPDATE = 1_500, 100  # milliseconds
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PAGES = {
    "map": "#/map",
    "queue": "#/queue",
    "job": "#/job/vision/wait-0/gang",
    "placed": "#/job/vision/llama-0-0",
    "gangs": "#/gangs",
    "gang": "#/gang/vision/llama-0",
    "decisions": "#/decisions",
    "whatif": "#/whatif",
    "compare": "#/compare",
}
PICTURES = {"map": 5_000, "job": 20, "gang": 5_000, "queue": 20}
LONG_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach((each) => window.longTasks.push(each.duration)))
    .observe({ type: "longtask" });
}"""


@contextmanager
def serving(folder: Path, dump: bytes, *more: str) -> Iterator[str]:
    """Runs `kubenexus web` for a cluster. Returns its address."""
    file = folder / "cluster.json"
    file.write_bytes(dump)
    command = [sys.executable, "-m", "kubenexus", "web", "--cluster", str(file), *more]
    with Popen(command, stdout=PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            (address,) = re.findall(r"http\S+", child.stdout.readline())
            yield address
        finally:
            child.terminate()


class Walk:
    """One browser on one cluster. `problems` has what went wrong, in words."""

    def __init__(self, page: Page, title: str) -> None:
        self.page, self.title, self.problems = page, title, list[str]()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problem(f"error: {error}"))

    def problem(self, text: str) -> None:
        self.problems.append(f"{self.title}: {text}")

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problem(f"console: {message.text}")

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        paints = self.page.evaluate("performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)")
        if not paints or paints[0] > FIRST_PAINT:
            self.problem(f"first paint after {paints} ms")
        print(f"{self.title}: first paint after {paints[0]:.0f} ms")

    def visit(self, name: str, pictures: Path | None = None) -> None:
        page = self.page
        page.evaluate("(to) => { delete document.documentElement.dataset.ready; location.hash = to; }", PAGES[name])
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.wait_for_timeout(400)
        if page.locator("#notice").is_visible():
            self.problem(f"{name}: {page.locator('#notice').inner_text()}")
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)
            for found in Axe().run(page).response["violations"]:
                nodes = [each["html"][:120] for each in found["nodes"][:3]]
                self.problem(f"{name}, {theme}: axe {found['id']}: {found['help']} {nodes}")
        if pictures is not None:
            page.screenshot(path=str(pictures / f"web-{name}.png"))

    def updates(self, count: int = 3) -> None:
        """Waits for some updates of the map. The first frame after a visit draws for the first time and is not one."""
        page = self.page
        page.evaluate("() => { location.hash = '#/map'; }")
        page.wait_for_timeout(1_500)
        page.evaluate("() => { performance.clearMeasures(); }")
        page.evaluate(LONG_TASKS)
        wait = "(n) => performance.getEntriesByName('kubenexus-draw').length >= n"
        page.wait_for_function(wait, arg=count, timeout=60_000)
        tasks = page.evaluate("() => window.longTasks")
        spent = "(name) => performance.getEntriesByName(name).map((e) => e.duration)"
        both = [max(page.evaluate(spent, name)) for name in ("kubenexus-update", "kubenexus-draw")]
        print(f"{self.title}: an update takes {both[0]:.0f} ms and its drawing {both[1]:.0f} ms; long tasks: {tasks}")
        if sum(both) > UPDATE or max(tasks, default=0) > UPDATE:
            self.problem(f"an update takes {both} ms, long tasks {tasks}")

    def keyboard(self) -> None:
        """Selects a node on the map and goes into its zone without a mouse."""
        page = self.page
        page.evaluate("() => { location.hash = '#/map'; }")
        page.wait_for_selector(".stats dd")
        page.locator("canvas.map").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(".details h3")
        page.keyboard.press("Enter")
        page.wait_for_selector(".crumbs button")
        page.keyboard.press("Escape")
        page.wait_for_selector(".crumbs button", state="detached")

    def what_if(self) -> None:
        page = self.page
        page.evaluate("() => { location.hash = '#/whatif'; }")
        page.locator("button[type=submit]").click()
        page.wait_for_selector("article.outcome", timeout=60_000)


def walk(browser: Any, nodes: int, folder: Path, pictures: Path | None, report: Path) -> list[str]:
    with serving(folder, cluster(nodes), "--report", str(report)) as address:
        page = browser.new_page(viewport={"width": 1360, "height": 860})
        found = Walk(page, f"{nodes} nodes")
        found.open(address)
        for name in PAGES:
            found.visit(name, pictures if PICTURES.get(name) == nodes else None)
        found.updates()
        found.keyboard()
        found.what_if()
        page.close()
    return found.problems


def walk_as_hostile_tenant(browser: Any, folder: Path) -> list[str]:
    """Every name and label that takes any text has markup in it: none of it may become an element, or run."""
    with serving(folder, cluster(12, HOSTILE)) as address:
        page = browser.new_page(viewport={"width": 1360, "height": 860})
        found = Walk(page, "hostile")
        found.open(address)
        for name in PAGES:
            found.visit(name)
            if page.locator("main img, main script").count() or page.title() == "1":
                found.problem(f"{name}: text became markup")
        page.goto("about:blank")
        page.goto(address.partition("#")[0].replace("127.0.0.1", "localhost") + "#token=wrong")
        page.wait_for_selector("main h1")
        if "No access" not in page.locator("main").inner_text() and "Sign in" not in page.locator("main").inner_text():
            found.problem("a wrong token shows something")
        found.problems = [each for each in found.problems if "401 (Unauthorized)" not in each]
        page.close()
    return found.problems


def main() -> int:
    pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("make web-test: no Chromium; install it (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        report = folder / "comparison.html"
        report.write_text("<!doctype html><html lang='en'><title>a against b</title><h1>a against b</h1></html>")
        browser = driver.chromium.launch(executable_path=program, args=FLAGS.split())
        for nodes in (20, 5_000):
            problems += walk(browser, nodes, folder, pictures, report)
        problems += walk_as_hostile_tenant(browser, folder)
        browser.close()
    print("\n".join(problems) or "all pages are fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
