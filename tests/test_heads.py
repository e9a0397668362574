"""What the heads have in common: files, broken models, wrong examples. Each test runs for each."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from solutions._heads import by_length, linear_head
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretrained import FrozenBelow
from solutions.pretraining import MaskedWordModel
from solutions.question_answering import QuestionAnswerer
from solutions.text_classification import TextClassifier
from solutions.token_classification import TokenClassifier
from solutions.training import SideBySide, fit

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] ana met good bad rome the .".split()
TOKENIZER = WordPieceTokenizer(TOKENS)
LABELS = ("O", "B-PER", "I-PER")
SENTENCES = [["ana", "met", "the", "good"], ["rome"], ["the", "bad", "met", "ana", "."]] * 4
TEXTS = [" ".join(words) for words in SENTENCES]


def an_encoder(dtype=np.float32):
    config = EncoderConfig(len(TOKENS), 8, 2, 2, 12, 16)
    return Encoder(config, init_params(config, 0, dtype))


MAKE = {
    "text": lambda encoder: TextClassifier(encoder, TOKENIZER, ["x", "y"]),
    "token": lambda encoder: TokenClassifier(encoder, TOKENIZER, LABELS),
    "answer": lambda encoder: QuestionAnswerer(encoder, TOKENIZER),
    "word": lambda encoder: MaskedWordModel(encoder, TOKENIZER, tied=False, rate=0.5),
}
heads = pytest.mark.parametrize("head", MAKE)


def examples(model):
    if isinstance(model, TextClassifier):
        return model.prepare(TEXTS, ["x", "y", "y"] * 4)
    if isinstance(model, TokenClassifier):
        return model.prepare(SENTENCES, [["B-PER" if w == "ana" else "O" for w in s]
                                         for s in SENTENCES])
    if isinstance(model, QuestionAnswerer):
        return model.prepare([
            SimpleNamespace(question="met", passage=text, answers=[]) for text in TEXTS
        ])
    return model.prepare(TEXTS)


def use(model):
    """What a model says, whichever it is."""
    if isinstance(model, TextClassifier):
        return model.predict(TEXTS)
    if isinstance(model, TokenClassifier):
        return model.label_words(SENTENCES)
    if isinstance(model, QuestionAnswerer):
        return model.answer("met", TEXTS[0])
    return model.fill("ana [MASK] rome")


def loaded(model, path, tokenizer=TOKENIZER):
    if isinstance(model, QuestionAnswerer):
        return QuestionAnswerer.load(path)
    return type(model).load(path, tokenizer)


def changed(path, change):
    """The saved file again, with its arrays and settings changed in place."""
    with np.load(path) as file:
        arrays = dict(file)
    about = json.loads(str(arrays.pop("about")))
    change(arrays, about)
    np.savez(path, about=np.array(json.dumps(about)), **arrays)


def test_a_frozen_table_cannot_be_tied():
    with pytest.raises(ValueError, match="tied: expected an encoder that trains its embedding"):
        MaskedWordModel(FrozenBelow(an_encoder(), 0), TOKENIZER)


# --- On disk --------------------------------------------------------------------------------------


@heads
@pytest.mark.parametrize("frozen", [None, 0, 1, 2])
def test_what_is_saved_comes_back_with_frozen_layers_too(head, frozen, tmp_path):
    encoder = an_encoder()
    model = MAKE[head](encoder if frozen is None else FrozenBelow(encoder, frozen))
    fit(model, examples(model), steps=3, batch_size=4, lr=1e-2)
    model.save(tmp_path / "model.npz")
    again = loaded(model, tmp_path / "model.npz")
    assert again.encoder.params.keys() == encoder.params.keys()
    for name, array in encoder.params.items():
        assert np.array_equal(again.encoder.params[name], array.astype(np.float16)), name
        assert again.params[f"encoder.{name}"] is again.encoder.params[name]
    for name, array in model.params.items():
        assert np.array_equal(again.params[name], array.astype(np.float16)), name
        assert again.params[name].dtype == np.float32
    for name in model.SETTINGS:
        assert getattr(again, name) == getattr(model, name), name
    use(again)


@heads
@pytest.mark.parametrize("value", [1e5, np.nan, -np.inf])
def test_a_save_that_fails_leaves_the_good_file(head, value, tmp_path):
    model, path = MAKE[head](an_encoder()), tmp_path / "model.npz"
    model.save(path)
    good = path.read_bytes()
    model.params["head.weight"][0, 0] = value
    with pytest.raises(ValueError, match=r"save: head.weight: expected numbers that float16 can"):
        model.save(path)
    assert path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]


@heads
def test_numpy_numbers_as_settings_are_saved(head, tmp_path):
    config = EncoderConfig(np.int64(12), np.int32(8), 1, 2, 12, 16, dropout=np.float32(0.5),
                           causal=np.False_)  # fmt: skip
    encoder = Encoder(config, init_params(config, 0))
    model = {
        "text": lambda: TextClassifier(
            encoder, TOKENIZER, np.unique([3, 1, 3]), dropout=np.float64(0.1)
        ),
        "token": lambda: TokenClassifier(
            encoder, TOKENIZER, np.array(LABELS), dropout=np.float32(0.5), all_pieces=np.True_
        ),
        "answer": lambda: QuestionAnswerer(
            encoder, TOKENIZER, word_dropout=np.float32(0.5), max_answer_length=np.int64(3),
            threshold=np.float32(0.5), overlap=np.int8(2),
        ),
        "word": lambda: MaskedWordModel(encoder, TOKENIZER, tied=np.True_, rate=np.float32(0.5)),
    }[head]()  # fmt: skip
    model.save(tmp_path / "model.npz")
    again = loaded(model, tmp_path / "model.npz")
    assert again.encoder.config == config
    for name in model.SETTINGS:
        assert getattr(again, name) == getattr(model, name), name
        assert not isinstance(getattr(model, name), np.generic), name


def test_names_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    for names in ([("a", "b"), ("c", "d")], [object(), object()]):
        model = TextClassifier(an_encoder(), TOKENIZER, names)
        with pytest.raises(ValueError, match="expected settings that JSON can hold"):
            model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def _without(name):
    return lambda arrays, about: arrays.pop(name)


def _with(name, array):
    return lambda arrays, about: arrays.update({name: array})


@heads
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without("head.weight"), r"head\.weight: expected \(.*\), got none"),
        (_without("head.bias"), r"head\.bias: expected \(.*\), got none"),
        (_without("encoder.embeddings.token"), r"1 missing \['embeddings\.token'\]"),
        (_with("more", np.zeros(1)), r"more: expected none, got \(1,\)"),
        (_with("encoder.more", np.zeros(1)), r"1 unknown \['more'\]"),
        (_with("head.bias", np.zeros(1)), r"head\.bias: expected .*, got \(1,\)"),
        (_with("head.bias", np.array(0.0)), r"head\.bias: expected .*, got \(\)"),
        (_with("head.bias", np.full(12, np.nan)), r"head\.bias is not of finite floats"),
        (_with("head.bias", np.zeros(2, int)), r"head\.bias is not of finite floats"),
        (_with("encoder.embeddings.norm.gamma", np.ones(7)), "expected floats of shape"),
        (lambda arrays, about: about.pop("config"), "config"),
        (lambda arrays, about: about["config"].update(num_heads=3), "3 heads"),
        (lambda arrays, about: about["config"].update(other=3), "other"),
        (lambda arrays, about: about.update(other=3), "its settings are"),
        (lambda arrays, about: about.update(kind="Other"), "a model of another kind"),
        (lambda arrays, about: about.update(kind=[]), "a model of another kind"),
    ],
)
def test_load_takes_no_broken_file(head, change, words, tmp_path):
    model, path = MAKE[head](an_encoder()), tmp_path / "model.npz"
    model.save(path)
    changed(path, change)
    with pytest.raises(ValueError, match=words) as caught:
        loaded(model, path)
    who = type(model).__name__
    assert f"{who}.load: expected a file that {who}.save wrote, got {path} (" in str(caught.value)


@heads
def test_load_takes_no_damaged_file(head, tmp_path):
    """Bytes cut off or changed: a ValueError, or the model as it was."""
    model, path = MAKE[head](an_encoder()), tmp_path / "model.npz"
    model.save(path)
    good, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for number in range(60):
        data = bytearray(good)
        if number % 3 == 0:
            del data[rng.integers(len(data)) :]
        else:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            again = loaded(model, path)
        except ValueError:
            refused += 1
            continue
        for name, array in model.params.items():
            assert np.array_equal(again.params[name], array.astype(np.float16)), name
    assert refused > 40


@heads
def test_a_file_is_not_taken_for_another_head(head, tmp_path):
    MAKE[head](an_encoder()).save(tmp_path / "model.npz")
    for other in MAKE.keys() - {head}:
        with pytest.raises(ValueError, match="a model of another kind"):
            loaded(MAKE[other](an_encoder()), tmp_path / "model.npz")


@pytest.mark.parametrize("head", ["text", "token", "word"])
def test_the_vocabulary_must_be_that_of_the_file(head, tmp_path):
    model, path = MAKE[head](an_encoder()), tmp_path / "model.npz"
    model.save(path)
    swapped = TOKENS.copy()
    swapped[7], swapped[8] = swapped[8], swapped[7]
    for tokens in (swapped, TOKENS[:-1]):
        with pytest.raises(ValueError, match=r"load: tokenizer: expected the vocabulary that the"):
            loaded(model, path, WordPieceTokenizer(tokens))
    changed(path, lambda arrays, about: (about.pop("vocabulary"), about.pop("kind")))
    use(loaded(model, path))  # a file from before these were kept


# --- Broken models --------------------------------------------------------------------------------


@heads
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_model_gives_no_answer(head, value):
    model = MAKE[head](an_encoder())
    prepared = examples(model)
    model.params["head.bias"][...] = value
    for call in (use, lambda model: model.evaluate(prepared)):
        with pytest.raises(FloatingPointError, match="expected finite numbers, got NaN or inf"):
            call(model)


@heads
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_breaks_the_model_ends_the_run_and_the_best_is_kept(head):
    model = MAKE[head](an_encoder())
    prepared = examples(model)
    before = {}

    def score(model, dev):
        if before:  # after the first look the next step goes too far
            for array in model.params.values():
                array *= np.float32(1e38)
            return model.evaluate(dev)
        before.update({name: array.copy() for name, array in model.params.items()})
        return model.evaluate(dev)

    history = fit(model, prepared, prepared, steps=9, batch_size=4, dev_every=1, score=score)
    assert history.stopped.startswith("diverged at step 2 of 9: logits: expected finite numbers")
    assert history.dev_steps == [history.best_step] == [1]
    for name, array in model.params.items():
        assert np.array_equal(array, before[name]), name
    use(model)


# --- What comes in --------------------------------------------------------------------------------


@heads
@pytest.mark.parametrize("wrong", [["good"], [None], "good", None, 3, iter([1])])
def test_examples_are_those_of_prepare(head, wrong):
    model = MAKE[head](an_encoder())
    with pytest.raises(ValueError, match=r"examples: expected what prepare returns, got "):
        model.loss_and_grads(wrong)
    if head != "word":
        with pytest.raises(ValueError, match=r"examples: expected what prepare returns, got "):
            model.evaluate(wrong)
        with pytest.raises(ValueError, match=r"examples: expected at least one, got none"):
            model.evaluate([])


@heads
@pytest.mark.parametrize("wrong", ["good", None, 3, b"good"])
def test_texts_are_a_list(head, wrong):
    model = MAKE[head](an_encoder())
    arguments = (wrong, []) if head == "token" else (wrong,)
    with pytest.raises(ValueError, match=r"(texts|sentences|items): expected a list of .*, got"):
        model.prepare(*arguments)


@heads
def test_a_tokenizer_larger_than_the_table_is_refused(head, monkeypatch):
    monkeypatch.setitem(globals(), "TOKENIZER", WordPieceTokenizer([*TOKENS, "more"]))
    with pytest.raises(ValueError, match=r"tokenizer: expected at most 12 tokens, .* got 13"):
        MAKE[head](an_encoder())


@heads
def test_parts_side_by_side_count_the_labels_of_the_whole_batch(head):
    encoder = an_encoder(np.float64)
    model = MAKE[head](encoder)
    prepared = examples(model)
    loss, grads, labels = model.loss_and_grads(prepared)
    for parts in (2, 3, 5):
        part_loss, part_grads, part_labels = SideBySide(model, parts).loss_and_grads(prepared)
        assert part_labels == labels > 0
        assert part_loss == pytest.approx(loss)
        for name, grad in grads.items():
            np.testing.assert_allclose(part_grads[name], grad, atol=1e-12, err_msg=name)


# --- Beginnings and batches -----------------------------------------------------------------------


def test_a_head_starts_small_and_in_the_dtype_of_its_encoder():
    for dtype in (np.float32, np.float64):
        head = linear_head(an_encoder(dtype), 300, 3)
        assert {name: a.shape for name, a in head.items()} == {
            "head.weight": (8, 300), "head.bias": (300,)
        }  # fmt: skip
        assert all(array.dtype == dtype for array in head.values())
        assert head["head.weight"].std() == pytest.approx(0.02, rel=0.05)
        assert not head["head.bias"].any()


def test_batches_by_length_keep_the_order_of_equal_ones():
    assert [batch.tolist() for batch in by_length([3, 1, 3, 2, 1], 2)] == [[1, 4], [3, 0], [2]]
    assert by_length([], 2) == []
