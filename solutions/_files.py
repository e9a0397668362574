"""Models on disk: one .npz file of numbers and a line of JSON, which needs no pickle to read."""

import contextlib
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from solutions.encoder import Encoder, EncoderConfig


@contextlib.contextmanager
def whole_file(path):
    """A binary file that appears under its name only when all of it has been written.

    After an error in the block, or a full disk, the file that stood there is as it was.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def save_model(path, model, about):
    """Write an encoder with its head: `model.params` and the settings `about`, a dict for JSON.

    Numbers are kept as float16: half the size, and three digits are enough for any decision.
    """
    about = {"config": asdict(model.encoder.config), **about}
    arrays = {name: array.astype(np.float16) for name, array in model.params.items()}
    with open(path, "wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)


def load_model(path, who, setting):
    """What `save_model` wrote: the settings, the encoder, {name: array} of the head, in float32.

    who: the class that reads, for messages. setting: one that only its files have. Raises
    ValueError for any other file, and FileNotFoundError where there is none.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            params = {n: file[n].astype(np.float32) for n in file.files if n != "about"}
        if setting not in about:
            raise ValueError(f"it has no {setting!r}")
        encoder = Encoder(
            EncoderConfig(**about.pop("config")),
            {n.removeprefix("encoder."): a for n, a in params.items() if n.startswith("encoder.")},
        )
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{who}.load: expected a file that {who}.save wrote, got {path} ({error})"
        ) from None
    return about, encoder, {n: a for n, a in params.items() if not n.startswith("encoder.")}
