"""A real JupyterLab in a headless Chromium, for tests and for screenshots.

    python tests/lab.py shot notebooks/01_attention.ipynb out/lesson01 [--dark] [--width 1280]

runs every cell of a notebook and writes out/lesson01-01.png, out/lesson01-02.png, ...

    python tests/lab.py readme

makes the README's screenshot, figures/screenshot.png, again.

JupyterLab never works on the repository's own notebooks: it is given a copy of them, in a temporary
folder that has the same shape, so that nothing it saves can change a file of the repository. Its
settings, workspaces and the learner's answers are in temporary folders too.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from urllib.parse import quote

REPOSITORY = Path(__file__).resolve().parents[1]

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
]
CHROMIUM_NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
CHROMIUM_PLACES = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
]


class ChromiumMissing(RuntimeError):
    """No browser was found; the message says how to get one."""


def find_chromium():
    """The path of an installed Chromium or Chrome; the variable CHROMIUM overrides the search."""
    given = os.environ.get("CHROMIUM")
    if given:
        found = shutil.which(given)
        if found is None:
            raise ChromiumMissing(f"the variable CHROMIUM says {given!r}, which is not a program")
        return found
    for name in CHROMIUM_NAMES:
        found = shutil.which(name)
        if found:
            return found
    for place in CHROMIUM_PLACES:
        if Path(place).is_file():
            return place
    raise ChromiumMissing(
        "the browser tests need Chromium or Chrome. Debian and Ubuntu: sudo apt-get install "
        "chromium. macOS: brew install --cask google-chrome. Elsewhere install Chrome. If it is "
        "installed already, set the variable CHROMIUM to the path of its program."
    )


# ---------------------------------------------------------------- the server


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def copy_classroom(folder, notebooks=()):
    """Make `folder` look like the repository: its notebooks and figures, and nothing to run.

    `notebooks` are further notebooks, copied into the folder's `notebooks/`.
    """
    folder = Path(folder)
    for name in ("notebooks", "solutions"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path in sorted((REPOSITORY / name).glob("*.ipynb")):
            shutil.copy(path, folder / name / path.name)
    if (REPOSITORY / "figures").is_dir():
        shutil.copytree(
            REPOSITORY / "figures",
            folder / "figures",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*.py", "__pycache__"),
        )
    for path in notebooks:
        # With a kernelspec JupyterLab starts the kernel without asking which one.
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        notebook["metadata"].setdefault(
            "kernelspec", {"display_name": "Python 3", "language": "python", "name": "python3"}
        )
        copy = folder / "notebooks" / Path(path).name
        copy.write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def write_settings(folder, dark):
    """JupyterLab's user settings: theme, no autosave, no news, every cell drawn."""
    settings = {
        "apputils-extension/themes": {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"},
        "apputils-extension/notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
            "doNotDisturbMode": True,
        },
        "docmanager-extension/plugin": {"autosave": False},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }
    for name, values in settings.items():
        path = Path(folder) / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


@dataclass
class Server:
    """A running JupyterLab: its address and the folder that it shows."""

    url: str
    root: Path
    log: Path

    def address(self, notebook):
        """Where a notebook opens; `notebook` is relative to the server's folder."""
        return f"{self.url}/lab/tree/{quote(str(notebook).replace(os.sep, '/'))}?reset"

    def connected(self, notebook):
        """Whether the notebook has a kernel, idle, to which a page is connected."""
        with urllib.request.urlopen(f"{self.url}/api/sessions", timeout=10) as answer:
            sessions = json.load(answer)
        return any(
            session["path"] == str(notebook).replace(os.sep, "/")
            and session["kernel"]["connections"] > 0
            and session["kernel"]["execution_state"] == "idle"
            for session in sessions
        )

    def stop_kernels(self):
        """Shut down the kernels of all notebooks; the server goes on."""
        with urllib.request.urlopen(f"{self.url}/api/sessions", timeout=10) as answer:
            sessions = json.load(answer)
        for session in sessions:
            request = urllib.request.Request(
                f"{self.url}/api/sessions/{session['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def jupyterlab(notebooks=(), dark=False, env=None, arguments=(), timeout=90):
    """Start JupyterLab on a copy of the repository's notebooks, yield a Server, and stop it.

    `notebooks` are copied beside the lessons; `arguments` are added to the command line.
    """
    temporary = Path(tempfile.mkdtemp(prefix="encoder-course-lab-"))
    try:
        root = copy_classroom(temporary / "classroom", notebooks)
        write_settings(temporary / "settings", dark)
        port = free_port()
        environment = {
            **os.environ,
            "JUPYTERLAB_SETTINGS_DIR": str(temporary / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(temporary / "workspaces"),
            "JUPYTER_CONFIG_DIR": str(temporary / "config"),
            "JUPYTER_DATA_DIR": str(temporary / "data"),
            "JUPYTER_RUNTIME_DIR": str(temporary / "runtime"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "IPYTHONDIR": str(temporary / "ipython"),
            "COURSE_HOME": str(temporary / "learner"),
            **(env or {}),
        }
        log = temporary / "server.log"
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
            "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={root}",
            "--LabApp.news_url=", "--ServerApp.terminals_enabled=False",
            "--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True",
            *arguments,
        ]  # fmt: skip
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for_server(url, process, log, timeout)
            yield Server(url, root, log)
        finally:
            _stop(process, f"http://127.0.0.1:{port}")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _wait_for_server(url, process, log, timeout):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"JupyterLab stopped at once:\n{log.read_text(errors='replace')}")
        try:
            with urllib.request.urlopen(f"{url}/api/status", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(
        f"JupyterLab did not answer in {timeout} s:\n{log.read_text(errors='replace')}"
    )


def _stop(process, url):
    """Ask the server to shut down, so that it stops its kernels; then make sure."""
    with contextlib.suppress(urllib.error.URLError, OSError):
        request = urllib.request.Request(f"{url}/api/shutdown", method="POST", data=b"")
        urllib.request.urlopen(request, timeout=5).close()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---------------------------------------------------------------- the browser


@contextlib.contextmanager
def browser_page(width=1280, height=900, dark=False):
    """A page of a headless Chromium; it makes no request to another computer."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        try:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
            )
            context.route(
                lambda url: not url.startswith(("http://127.0.0.1", "data:", "blob:")),
                lambda route: route.abort(),
            )
            yield context.new_page()
        finally:
            browser.close()


@dataclass
class Notebook:
    """A notebook that is open in JupyterLab, and what one does with it."""

    page: object
    server: Server
    problems: list = field(default_factory=list)  # errors that the page's own scripts reported

    @property
    def panel(self):
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    @property
    def code_cells(self):
        return self.panel.locator(".jp-CodeCell")

    def cell(self, text):
        """The first code cell whose source contains `text`."""
        found = self.code_cells.filter(
            has=self.page.locator(".jp-Cell-inputArea", has_text=text)
        ).first
        found.wait_for(state="attached", timeout=10_000)
        return found

    def output(self, cell):
        return cell.locator(".jp-Cell-outputArea")

    def sliders(self, cell=None):
        return (cell or self.panel).locator(".jp-OutputArea [role=slider]")

    def menu(self, menu, command):
        """Click an entry of the menu bar, as a reader does."""
        self.page.locator(".lm-MenuBar-item", has_text=menu).first.click()
        self.page.locator(f'.lm-Menu-item[data-command="{command}"]').click()

    def run_all(self, timeout=300):
        """Run > Run All Cells, and wait for the last cell."""
        before = self.prompts()
        for _ in range(3):  # a kernel that is just connecting takes no request
            self.menu("Run", "runmenu:run-all")
            end = time.monotonic() + 10
            while time.monotonic() < end:
                if self.prompts() != before:
                    self.wait_idle(timeout)
                    if any(any(map(str.isdigit, one)) for one in self.prompts()):
                        return
                    break  # the request was lost with the kernel's first connection
                self.page.wait_for_timeout(100)
        raise TimeoutError("Run All Cells ran no cell")

    def prompts(self):
        """What stands beside the code cells."""
        return self.code_cells.locator(".jp-InputPrompt").all_text_contents()

    def run_cell(self, cell, timeout=60):
        """Run one cell with Ctrl+Enter."""
        cell.locator(".cm-content").click()
        before = prompt(cell)
        self.page.keyboard.press("Control+Enter")
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            now = prompt(cell)
            if now != before and "*" not in now and now.strip("[]: "):
                self.page.wait_for_timeout(100)  # the output is drawn after the prompt
                return
            self.page.wait_for_timeout(30)
        raise TimeoutError(f"a cell did not finish in {timeout} s: {prompt(cell)}")

    def wait_idle(self, timeout=300):
        """Wait until no cell is waiting and the kernel is idle, twice in a row."""
        end = time.monotonic() + timeout
        quiet = 0
        while time.monotonic() < end:
            self.page.wait_for_timeout(250)
            quiet = quiet + 1 if self._is_idle() else 0
            if quiet >= 3:
                return
        raise TimeoutError(f"the notebook was still running after {timeout} s")

    def wait_until(self, condition, timeout=10):
        """Wait until `condition()` is true."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                shown = self.page.locator("dialog").all_inner_texts()
                raise TimeoutError(f"nothing happened in {timeout} s; dialogs shown: {shown}")
            self.page.wait_for_timeout(20)

    def _is_idle(self):
        return self.page.evaluate(
            """() => {
                const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
                if (!panel) return false;
                const mark = panel.querySelector('.jp-Notebook-ExecutionIndicator');
                if (!mark || mark.dataset.status !== 'idle') return false;
                const prompts = [...panel.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
                return prompts.every(prompt => !prompt.textContent.includes('*'));
            }"""
        )

    def type_into(self, cell, source):
        """Replace a cell's source, through the clipboard-free way of inserting text."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(source)

    def theme(self, dark):
        """Change JupyterLab's theme in the open page; nothing runs again."""
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})",
            "JupyterLab Dark" if dark else "JupyterLab Light",
        )
        wanted = "false" if dark else "true"
        self.wait_until(
            lambda: self.page.evaluate("() => document.body.dataset.jpThemeLight") == wanted
        )

    def unfold(self):
        """Open every folded part, so that what is in it can be looked at."""
        self.panel.locator("details:not([open])").evaluate_all(
            "parts => parts.forEach(part => { part.open = true; })"
        )

    def looks(self, call, *given):
        """Call a function of tests/looks.js in the page."""
        if not self.page.evaluate("() => 'looks' in window"):
            self.page.evaluate((Path(__file__).parent / "looks.js").read_text(encoding="utf-8"))
        return self.page.evaluate(f"given => looks.{call}(...given)", list(given))

    def axe(self, *parts):
        """What axe-core finds: [{"rule", "impact", "where", "why"}].

        parts: CSS selectors inside the notebook; without any, all outputs and texts.
        """
        if not self.page.evaluate("() => 'axe' in window"):
            script = resources.files("axe_playwright_python") / "axe.min.js"
            self.page.evaluate(script.read_text(encoding="utf-8"))
        self.unfold()
        # JupyterLab's body is 0 pixels high, its shell as high as the window, and both cut off what
        # overflows: axe takes all that is scrolled away for hidden, and looks at no contrast there.
        # So let them overflow meanwhile.
        found = self.page.evaluate(
            """parts => {
                const frames = [document.body, document.querySelector('.jp-LabShell')];
                frames.forEach(frame => { frame.style.overflow = 'visible'; });
                return axe.run(
                    {include: parts.map(
                        part => ['.jp-NotebookPanel:not(.lm-mod-hidden) ' + part])
                        .filter(([part]) => document.querySelector(part))},
                    {resultTypes: ['violations']}
                ).then(results => results.violations)
                .finally(() => frames.forEach(frame => { frame.style.overflow = ''; }));
            }""",
            parts or (".jp-OutputArea-output", ".jp-MarkdownOutput"),
        )
        return [
            {
                "rule": rule["id"],
                "impact": node["impact"] or rule["impact"],
                "where": node["html"][:300],
                "why": node["failureSummary"].replace("\n", " ")[:400],
            }
            for rule in found
            for node in rule["nodes"]
        ]

    def press(self, explorer, key):
        """Press a key in a picture's controls, and wait for the kernel's answer.

        `explorer` is the handle of one `explore`; the control that has the focus gets the key.
        Returns what looks.js calls `after`: "milliseconds" to the new picture, None if it stays
        the same, and what is shown then.
        """
        self.looks("before", explorer)
        self.page.keyboard.press(key)
        return self.looks("after")

    def errors(self):
        """The tracebacks that the notebook shows."""
        shown = self.panel.locator(
            '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]'
        )
        return shown.all_inner_texts()

    def unrun(self):
        """How many code cells with a source have no number: they were not run."""
        return self.code_cells.evaluate_all(
            """cells => cells.filter(cell => {
                const source = cell.querySelector('.cm-content');
                // a folded source shows neither text nor number; what it ran shows
                if (!source) return !cell.querySelector('.jp-OutputArea-output');
                return source.innerText.trim() &&
                    !/\\d/.test(cell.querySelector('.jp-InputPrompt').textContent);
            }).length"""
        )


def prompt(cell):
    """What stands beside a code cell, for example "[3]:"."""
    return cell.locator(".jp-InputPrompt").first.inner_text().strip()


def open_notebook(page, server, name, timeout=90):
    """Open a notebook, wait for its kernel, and return a Notebook."""
    notebook = Notebook(page, server)
    page.on("pageerror", lambda error: notebook.problems.append(str(error)))
    page.goto(server.address(name), timeout=timeout * 1000)
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for(timeout=timeout * 1000)
    # The page says "idle" before it has asked for a kernel; the server knows better.
    notebook.wait_until(lambda: server.connected(name), timeout)
    notebook.wait_idle(timeout)
    return notebook


def median_latency(notebook, slider, image, times=20, timeout=5.0):
    """Median milliseconds from an arrow key on `slider` to new pixels in `image` (an <img>).

    Right and left take turns, so that every press changes the value; the clock starts before the
    press and stops in the browser's first frame after the picture's source has changed.
    """
    page = notebook.page
    slider.focus()
    elapsed = []
    picture = image.element_handle()
    for number in range(times):
        key = "ArrowRight" if number % 2 == 0 else "ArrowLeft"
        # The picture may be a new element after each redraw: look for it in its cell each time.
        page.evaluate(
            """picture => {
                const output = picture.isConnected
                    ? picture.closest('.jp-OutputArea') : window.__output;
                window.__output = output;
                const before = [...output.querySelectorAll('img')].map(i => i.src).join('|');
                window.__changed = new Promise(resolve => {
                    const start = performance.now();
                    const look = () => {
                        const now = [...output.querySelectorAll('img')].map(i => i.src).join('|');
                        if (now !== before && now) resolve(performance.now() - window.__pressed);
                        else if (performance.now() - start > 10000) resolve(-1);
                        else requestAnimationFrame(look);
                    };
                    document.addEventListener('keydown',
                        () => { window.__pressed = performance.now(); },
                        {once: true, capture: true});
                    requestAnimationFrame(look);
                });
            }""",
            picture,
        )
        page.keyboard.press(key)
        milliseconds = page.evaluate("() => window.__changed")
        if milliseconds < 0:
            raise TimeoutError(f"{key} on a slider changed no picture in 10 s")
        elapsed.append(milliseconds)
    return sorted(elapsed)[len(elapsed) // 2]


# ---------------------------------------------------------------- screenshots


def shots(notebook, prefix, piece=1600):
    """Photograph the notebook from top to bottom; return the paths written."""
    page = notebook.page
    page.keyboard.press("Escape")
    # Scroll the notebook itself: its panel is the size of the window.
    scroller = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer").first
    box = scroller.bounding_box()
    page.set_viewport_size(
        {"width": page.viewport_size["width"], "height": piece + round(box["y"]) + 30}
    )
    page.wait_for_timeout(600)
    # Where cells end: a picture is cut there if that costs it less than a third of its height.
    ends = scroller.evaluate(
        """e => [...e.querySelectorAll('.jp-Cell')].map(cell => Math.ceil(
            cell.getBoundingClientRect().bottom - e.getBoundingClientRect().top + e.scrollTop))"""
    )
    visible = scroller.evaluate("e => e.clientHeight")
    total = ends[-1] + 24
    box = scroller.bounding_box()
    prefix = Path(prefix)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for old in prefix.parent.glob(f"{prefix.name}-[0-9][0-9].png"):
        old.unlink()
    written = []
    top = 0
    while top < total:
        scroller.evaluate("(e, y) => e.scrollTo({top: y, behavior: 'instant'})", top)
        page.wait_for_timeout(200)
        reached = scroller.evaluate("e => e.scrollTop")
        skip = max(0, top - reached)  # the last piece cannot scroll a whole piece further
        height = min(visible - skip, total - top)
        if top + height < total:
            fitting = [end for end in ends if top + height * 2 / 3 < end <= top + height]
            height = max(fitting) - top if fitting else height
        if height < 2:
            break
        path = prefix.parent / f"{prefix.name}-{len(written) + 1:02d}.png"
        page.screenshot(
            path=path,
            clip={"x": box["x"], "y": box["y"] + skip, "width": box["width"], "height": height},
        )
        written.append(path)
        top += height
    return written


def shoot(path, prefix, dark=False, width=1280, run=True, timeout=300, strict=False):
    """Open a notebook file in JupyterLab, run it, photograph it; (paths, errors, unrun cells)."""
    path = Path(path).resolve()
    env = {"COURSE_STRICT": "1"} if strict else {}
    with jupyterlab([path], dark=dark, env=env) as server, browser_page(width, 900, dark) as page:
        notebook = open_notebook(page, server, f"notebooks/{path.name}")
        if run:
            notebook.run_all(timeout)
        page.wait_for_timeout(500)
        paths = shots(notebook, prefix)
        return paths, notebook.errors() + notebook.problems, notebook.unrun() if run else 0


FORGOT_THE_MAXIMUM = '''\
@exercise
def softmax(scores, axis=-1):
    """Positive weights that sum to 1 along `axis`; a row of -inf gives zeros."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)'''


def readme(path=REPOSITORY / "figures" / "screenshot.png"):
    """Photograph lesson 01 for the README: a wrong softmax with its message, a slider below it."""
    with jupyterlab() as server, browser_page(1280, 1090) as page:
        notebook = open_notebook(page, server, "notebooks/01_attention.ipynb")
        notebook.type_into(notebook.cell("def softmax"), FORGOT_THE_MAXIMUM)
        notebook.run_all()
        picture = notebook.cell("temperature_picture")
        bar = notebook.sliders(picture).first
        bar.focus()
        for _ in range(3):
            notebook.press(picture.locator(".course-explore").element_handle(), "ArrowLeft")
        bar.evaluate("bar => bar.blur()")
        cells = notebook.panel.locator(".jp-Cell")
        first = cells.filter(has_text="Exercise: softmax").first
        first.evaluate("cell => cell.scrollIntoView({block: 'start', behavior: 'instant'})")
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        page.screenshot(path=path)
    return path


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    shot = commands.add_parser("shot", help="run a notebook and photograph it")
    shot.add_argument("notebook")
    shot.add_argument("prefix", help="the pictures are PREFIX-01.png, PREFIX-02.png, ...")
    shot.add_argument("--dark", action="store_true", help="JupyterLab's dark theme")
    shot.add_argument("--width", type=int, default=1280, help="width of the window in pixels")
    shot.add_argument("--no-run", action="store_true", help="show the notebook as it is saved")
    shot.add_argument("--strict", action="store_true", help="run it under COURSE_STRICT=1")
    shot.add_argument("--timeout", type=float, default=300, help="seconds for all cells")
    commands.add_parser("readme", help="make figures/screenshot.png again")
    given = parser.parse_args(arguments)
    if given.command == "readme":
        print(readme())
        return 0
    paths, errors, unrun = shoot(
        given.notebook, given.prefix, given.dark, given.width, not given.no_run, given.timeout,
        given.strict,
    )  # fmt: skip
    for path in paths:
        print(path)
    for error in errors:
        print("ERROR SHOWN:", error[:2000], file=sys.stderr)
    if unrun:
        print(f"{unrun} code cells were not run", file=sys.stderr)
    return 1 if errors or unrun else 0


if __name__ == "__main__":
    sys.exit(main())
