"""A checkpoint's files, read: the numbers, their names, the sizes, the vocabulary.

Lesson 09. A BERT checkpoint is a folder with three files that matter:

    config.json           the sizes                     -> EncoderConfig
    vocab.txt             the tokens in order of id     -> WordPieceTokenizer
    model.safetensors     {name: array}                 -> the encoder's params

`load_checkpoint(folder)` reads them; what our encoder cannot represent is refused, and the message
says what was found. Nothing here reads pickle or runs code that came with a checkpoint.

The format: https://huggingface.co/docs/safetensors
"""

import contextlib
import json
import os
import re
from pathlib import Path

import numpy as np

from solutions import _checks
from solutions._checks import checked, describe
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, parameter_shapes

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


def read_json(path):
    """What a JSON file holds; ValueError if it is not JSON."""
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
    about = read_json(about_path) if about_path.exists() else {}
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
    content = read_json(path)
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


# --- 4. All of it ---------------------------------------------------------------------------------


def load_checkpoint(folder):
    """The Encoder and the WordPieceTokenizer of a folder, which is a Path."""
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
    config = config_from_checkpoint(read_json(folder / CONFIG))
    tokenizer = tokenizer_from_checkpoint(folder)
    if len(tokenizer) > config.vocab_size:
        raise ValueError(
            f"{folder}: expected at most {config.vocab_size} tokens, as config.json says, "
            f"got {len(tokenizer)}"
        )
    params = params_from_checkpoint(read_safetensors(folder / WEIGHTS), config)
    return Encoder(config, params), tokenizer
