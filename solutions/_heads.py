"""What the models of lessons 05 to 09 have in common: an encoder below, a head on top, a file.

What a lesson explains stands in its own module: which hidden states the head reads, its logits, its
loss, and the way back.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Collection, Iterable
from dataclasses import asdict

import numpy as np

from solutions._checks import describe
from solutions._files import whole_file
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig

# --- Parameters -----------------------------------------------------------------------------------


def check_tokenizer(tokenizer, encoder):
    """Raise unless every token of the tokenizer has a row in the encoder's embedding table."""
    rows = encoder.config.vocab_size
    if len(tokenizer) > rows:
        raise ValueError(
            f"tokenizer: expected at most {rows} tokens, the rows of the embedding table, "
            f"got {len(tokenizer)}"
        )


def of_encoder(arrays):
    """{"encoder." + name: array}, of the encoder's parameters or gradients; no array is copied."""
    return {f"encoder.{name}": array for name, array in arrays.items()}


def linear_head(encoder, outputs, seed):
    """{name: array} of a linear layer on the hidden states: normal(0, 0.02) weights, biases 0."""
    dtype = encoder.params["embeddings.token"].dtype
    weight = np.random.default_rng(seed).normal(0, 0.02, (encoder.config.d_model, outputs))
    return {"head.weight": weight.astype(dtype), "head.bias": np.zeros(outputs, dtype)}


# --- What comes in and goes out -------------------------------------------------------------------


def as_list(name, values):
    """The values as a list. Raises ValueError for a string, and for what has no values."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        got = "one string" if isinstance(values, str) else describe(values)
        raise ValueError(f"{name}: expected a list of {name}, got {got}")
    return list(values)


def check_examples(examples, kind):
    """Raise unless there are examples, all of the class that `prepare` makes."""
    if isinstance(examples, (str, bytes)) or not isinstance(examples, Collection):
        raise ValueError(f"examples: expected what prepare returns, got {describe(examples)}")
    if len(examples) == 0:
        raise ValueError("examples: expected at least one, got none")
    for example in examples:
        if not isinstance(example, kind):
            raise ValueError(f"examples: expected what prepare returns, got {describe(example)}")


def check_logits(logits):
    """Raise FloatingPointError if some are no numbers: an argmax would make an answer of them."""
    if not np.isfinite(logits).all():
        raise FloatingPointError(
            "logits: expected finite numbers, got NaN or infinity; the parameters are broken, "
            "perhaps by a learning rate that is too high"
        )


def by_length(lengths, batch_size):
    """Arrays of places, `batch_size` at a time, the shortest first, to save on padding."""
    order = np.argsort(lengths, kind="stable")
    return [order[first : first + batch_size] for first in range(0, len(order), batch_size)]


# --- On disk --------------------------------------------------------------------------------------


def _digest(tokenizer):
    """A short name of the vocabulary; another order of the same tokens has another."""
    return hashlib.sha256("\n".join(tokenizer.tokens).encode()).hexdigest()[:16]


def _head(model):
    return {n: a for n, a in model.params.items() if not n.startswith("encoder.")}


def save_model(path, model, **more):
    """Write one .npz file: encoder, head, the settings named in `model.SETTINGS`, and `more`.

    Numbers are kept as float16, which has three digits: a quarter or half of the size, and logits
    that move a little in the third. Raises ValueError, before anything is written, where that does
    not do: a number that is not finite, or beyond 65504.
    """
    who = type(model).__name__
    encoder = getattr(model.encoder, "encoder", model.encoder)  # FrozenBelow has only its top's
    settings = {name: getattr(model, name) for name in model.SETTINGS} | more
    about = {
        "kind": who,
        "config": asdict(encoder.config),
        "vocabulary": _digest(model.tokenizer),
        **settings,
    }
    try:
        text = json.dumps(about)
        kept = json.loads(text) == about
    except TypeError:
        kept = False
    if not kept:
        raise ValueError(f"{who}.save: expected settings that JSON can hold, got {settings}")
    arrays = {}
    for name, array in {**of_encoder(encoder.params), **_head(model)}.items():
        with np.errstate(over="ignore"):
            arrays[name] = array.astype(np.float16)
        if not np.isfinite(arrays[name]).all():
            worst = array[~np.isfinite(arrays[name])][0]
            raise ValueError(
                f"{who}.save: {name}: expected numbers that float16 can hold, up to 65504, "
                f"got {worst:g}"
            )
    with whole_file(path) as file:
        np.savez_compressed(file, about=np.array(text), **arrays)


def load_model(path, cls, tokenizer=None):
    """The model of class `cls` that `save_model` wrote, in float32.

    tokenizer: as when the model was made; None if the file has its tokens. Raises ValueError for a
    file that is not as `save_model` writes it and for a tokenizer of another vocabulary, and
    FileNotFoundError where there is no file.
    """
    try:
        about, arrays = _read(path)
        if about.pop("kind", cls.__name__) != cls.__name__:  # the older files have none
            raise ValueError("it holds a model of another kind")
        encoder = Encoder(
            EncoderConfig(**about.pop("config")),
            {n.removeprefix("encoder."): a for n, a in arrays.items() if n.startswith("encoder.")},
        )
        vocabulary = about.pop("vocabulary", None)  # nor this
        tokenizer = tokenizer or WordPieceTokenizer(about.pop("tokens"))
        if about.keys() != set(cls.SETTINGS):
            raise ValueError(f"its settings are {sorted(about)}, not {sorted(cls.SETTINGS)}")
        if vocabulary in (None, _digest(tokenizer)):
            model = cls(encoder, tokenizer, **about)
            _fill(model, {n: a for n, a in arrays.items() if not n.startswith("encoder.")})
            return model
    except (
        zipfile.BadZipFile, zlib.error, AttributeError, EOFError, KeyError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise ValueError(
            f"{cls.__name__}.load: expected a file that {cls.__name__}.save wrote, "
            f"got {path} ({error})"
        ) from None
    raise ValueError(
        f"{cls.__name__}.load: tokenizer: expected the vocabulary that the model was saved with, "
        f"got another, of {len(tokenizer)} tokens"
    )


def _read(path):
    """The settings, a dict, and {name: array} in float32."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name} is not of finite floats")
    return about, {name: array.astype(np.float32) for name, array in arrays.items()}


def _fill(model, arrays):
    """Put arrays into the head's parameters: exactly its names and shapes."""
    head = _head(model)
    for name in sorted(head.keys() | arrays.keys()):
        expected, got = (d[name].shape if name in d else "none" for d in (head, arrays))
        if expected != got:
            raise ValueError(f"{name}: expected {expected}, got {got}")
        head[name][...] = arrays[name]
