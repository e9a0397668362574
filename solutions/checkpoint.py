"""A checkpoint's files, read: the numbers, their names, the sizes, the vocabulary.

Lesson 09. A BERT checkpoint is a folder with three files that matter:

    config.json           the sizes                     -> EncoderConfig
    vocab.txt             the tokens in order of id     -> WordPieceTokenizer
    model.safetensors     {name: array}                 -> the encoder's params

`load_checkpoint(folder)` reads them; what our encoder cannot represent is refused, and the message
says what was found. Nothing here reads pickle or runs code that came with a checkpoint.

The format: https://huggingface.co/docs/safetensors
"""

import json
import math
import re
from pathlib import Path

import numpy as np

from solutions import _checks
from solutions._checks import checked, describe
from solutions._files import whole_file
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


def _header(data):
    """What the header of a safetensors file says, {name: entry}, and where the numbers begin.

    Raises ValueError, whose message says what was found in place of a header.
    """
    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        raise ValueError(f"{len(data)} bytes, fewer than its header announces")
    try:
        header = json.loads(data[8:start].decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("a header that is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("a header that is not a JSON object")
    header.pop("__metadata__", None)
    return header, start


def _entry(name, entry):
    """(dtype, shape, first, stop) of an entry of the header; ValueError says what it is instead."""
    try:
        kind, shape, (first, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise ValueError("an entry without dtype, shape and data_offsets") from None
    if not isinstance(kind, str) or any(type(n) is not int for n in (*shape, first, stop)):
        raise ValueError(f"{name} with a dtype, shape or data_offsets of another kind")
    if kind not in _FORMATS:
        raise ValueError(f"{name} in the number format {kind}; read are {', '.join(_FORMATS)}")
    room = math.prod(shape) * np.dtype(_FORMATS[kind]).itemsize
    if min((first, *shape)) < 0 or stop - first != room:
        raise ValueError(f"{name}, {kind} of shape {shape}, at bytes {first} to {stop}")
    return kind, shape, first, stop


def _tensor_from_bytes_input(data, name):
    if not isinstance(data, bytes) or len(data) < 8:
        raise ValueError(
            f"tensor_from_bytes: data: expected the bytes of a file, got {describe(data)}"
        )
    if not isinstance(name, str):
        raise ValueError(f"tensor_from_bytes: name: expected a str, got {describe(name)}")
    try:
        header, start = _header(data)
        if name not in header:
            raise ValueError(f"{len(header)} tensors, none of this name")
        kind, _, _, stop = _entry(name, header[name])
        if kind != "F32":
            raise ValueError(f"the number format {kind}")
        if stop > len(data) - start:
            raise ValueError(f"{len(data) - start} bytes of numbers, fewer than it announces")
    except ValueError as found:
        raise ValueError(
            f"tensor_from_bytes: data: expected a safetensors file with the float32 tensor "
            f"{name!r}, got {found}"
        ) from None


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

    tensors, at = {}, 0
    try:
        header, start = _header(data)
        body = memoryview(data)[start:]
        entries = [(name, *_entry(name, entry)) for name, entry in header.items()]
        for name, kind, shape, first, stop in sorted(entries, key=lambda entry: entry[3:]):
            if first != at or stop > len(body):
                raise ValueError(
                    f"{name}, {kind} of shape {shape}, at bytes {first} to {stop} of {len(body)}"
                )
            at = stop
            numbers = np.frombuffer(body[first:stop], _FORMATS[kind])
            tensors[name] = _widened(numbers.reshape(shape), kind)
        if at != len(body):
            raise ValueError(f"{len(body) - at} bytes at the end that belong to no tensor")
    except ValueError as found:
        raise ValueError(f"{path}: expected a safetensors file, got {found}") from None
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
    with whole_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(parts))


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
    if config.num_layers > len(tensors):  # before millions of names are made
        raise ValueError(
            f"checkpoint: expected the tensors of a BERT with {config.num_layers} layers, "
            f"got {len(tensors)} tensors in all"
        )
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
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"checkpoint: {ours}: expected finite numbers, got NaN or infinity")
    return array


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

    A rate of dropout that is missing, null or 1 becomes BERT's own, 0.1: it counts in training
    alone, and says nothing about the numbers in the file. Raises ValueError for an architecture,
    activation or kind of position that is not ours.
    """
    about = _of(dict, CONFIG, about)
    if "model_type" not in about:
        raise ValueError("config.json: expected model_type 'bert', got none")
    for name, (default, fine) in _FIXED.items():
        found = about.get(name, default)
        if found not in fine:
            raise ValueError(f"config.json: expected {name} {default!r}, got {found!r}")
    missing = [name for name in _SIZES if name not in about]
    if missing:
        raise ValueError(f"config.json: expected {', '.join(_SIZES)}, got no {missing[0]}")
    rates = [about.get(f"{name}_dropout_prob") for name in ("hidden", "attention_probs")]
    dropout, attention_dropout = (0.1 if rate is None or rate == 1 else rate for rate in rates)
    try:
        return EncoderConfig(
            **{ours: about[theirs] for theirs, ours in _SIZES.items()},
            dropout=dropout,
            attention_dropout=attention_dropout,
            eps=about.get("layer_norm_eps", 1e-12),
        )
    except OverflowError:
        raise ValueError("config.json: expected layer_norm_eps above 0, got too large") from None


def read_json(path):
    """The JSON object that a file holds, a dict; ValueError if it holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON, got {error}") from None
    return _of(dict, path, content)


# How JSON calls what Python has these types for.
_KINDS = {dict: "a JSON object", list: "a list", str: "a text", int: "a whole number"}


def _of(kind, name, value):
    """The value, if it is of this kind; else ValueError, with the name."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name}: expected {_KINDS[kind]}, got {describe(value)}")
    return value


def tokenizer_from_checkpoint(folder):
    """The WordPieceTokenizer of a folder with vocab.txt or tokenizer.json.

    All that the folder says about its tokenizer is read: both files, if both are there, must have
    the same tokens. Raises ValueError for a tokenizer that keeps upper case, or is no WordPiece.
    """
    folder = Path(folder)
    about_path = folder / "tokenizer_config.json"
    about = read_json(about_path) if about_path.exists() else {}
    for name, fine in {
        "do_lower_case": (True,),
        "strip_accents": (None, True),
        "tokenize_chinese_chars": (True,),
        "clean_text": (True,),
    }.items():
        if about.get(name, fine[0]) not in fine:
            raise ValueError(
                f"{about_path}: expected {name} {fine[-1]!r} (our tokenizer is BERT's uncased "
                f"one), got {about[name]!r}"
            )
    listed, path = None, folder / VOCAB
    if path.exists():
        try:
            listed = WordPieceTokenizer.from_file(path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected text in UTF-8, got {error}") from None
    if not (folder / TOKENIZER).exists():
        if listed is None:
            raise ValueError(f"{folder}: expected {VOCAB} or {TOKENIZER}, got neither")
        if "do_lower_case" not in about:
            _refuse_capitals(path, listed.tokens)
        return listed
    tokenizer = _from_tokenizer_json(folder / TOKENIZER)
    if listed is not None and tokenizer.tokens[: len(listed)] != listed.tokens:
        raise ValueError(f"{folder}: expected the same tokens in {VOCAB} and {TOKENIZER}")
    return tokenizer


def _refuse_capitals(path, tokens):
    """ValueError if a vocabulary holds words that lower case can never reach."""
    words = [token for token in tokens if token.removeprefix("##").isalpha()]
    cased = [word for word in words if word != word.lower()]
    if cased:
        raise ValueError(
            f"{path}: expected words in lower case (our tokenizer is BERT's uncased one), got "
            f"{len(cased)} with capitals, such as {cased[0]!r}, and no do_lower_case that says how "
            "they are meant"
        )


def _from_tokenizer_json(path):
    """The WordPieceTokenizer that a tokenizer.json describes; ValueError if it describes another.

    https://huggingface.co/docs/tokenizers/api/tokenizer
    """
    content = read_json(path)
    parts = {}
    for name in ("model", "normalizer", "pre_tokenizer"):
        parts[name] = _of(dict, f"{path}: {name}", content.get(name) or {})
    model, normalizer = parts["model"], parts["normalizer"]
    # Old versions of the library wrote no type; of the models only WordPiece has this setting.
    type_of = model.get("type", "WordPiece" if "max_input_chars_per_word" in model else None)
    for name, found, fine in (
        ("model", type_of, ("WordPiece",)),
        ("continuing_subword_prefix", model.get("continuing_subword_prefix", "##"), ("##",)),
        ("unk_token", model.get("unk_token", "[UNK]"), ("[UNK]",)),
        ("normalizer", normalizer.get("type"), ("BertNormalizer",)),
        ("lowercase", normalizer.get("lowercase"), (True,)),
        ("strip_accents", normalizer.get("strip_accents"), (True, None)),
        ("handle_chinese_chars", normalizer.get("handle_chinese_chars", True), (True,)),
        ("clean_text", normalizer.get("clean_text", True), (True,)),
        ("pre_tokenizer", parts["pre_tokenizer"].get("type"), ("BertPreTokenizer", None)),
    ):
        if found not in fine:
            raise ValueError(f"{path}: expected {name} {fine[0]!r}, got {found!r}")
    places = dict(_of(dict, f"{path}: vocab", model.get("vocab")))
    for token in _of(list, f"{path}: added_tokens", content.get("added_tokens") or []):
        token = _of(dict, f"{path}: added_tokens", token)
        text = _of(str, f"{path}: added_tokens: content", token.get("content"))
        places[text] = token.get("id")
    for text, place in places.items():
        _of(int, f"{path}: the id of {text!r}", place)
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
