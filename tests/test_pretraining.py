"""Masked-word pretraining: what is hidden, gradients, what it learns, fill-in, files."""

import numpy as np
import pytest

from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretraining import SPECIAL, MaskedWordModel, mask_tokens
from solutions.training import fit

WORDS = ["the", "soup", "was", "cold", "hot", "tea", "a", "cat", "sat", "here", "."]
TOKENIZER = WordPieceTokenizer([*SPECIAL, *WORDS])


def new_model(dtype=np.float64, tied=True, rate=0.3, scale=5.0, **sizes):
    config = EncoderConfig(**{
        "vocab_size": len(TOKENIZER), "d_model": 8, "num_layers": 1, "num_heads": 2, "d_ff": 12,
        "max_length": 12, "dropout": 0.0, "attention_dropout": 0.0, **sizes,
    })  # fmt: skip
    params = {n: a * scale if a.ndim == 2 else a for n, a in init_params(config, 1, dtype).items()}
    return MaskedWordModel(Encoder(config, params), TOKENIZER, tied=tied, rate=rate)


def ids_and_special(shape=(200, 40), seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 500, size=shape)
    special = rng.random(shape) < 0.2
    return ids, special


# --- mask_tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.15, 0.4, 1.0])
def test_shares_of_hidden_tokens(rate):
    ids, special = ids_and_special()
    hidden, labels = mask_tokens(ids, special, 500, 4, np.random.default_rng(1), rate)
    chosen = labels != -100
    assert not (chosen & special).any()
    np.testing.assert_array_equal(hidden[~chosen], ids[~chosen])
    np.testing.assert_array_equal(labels[chosen], ids[chosen])
    assert chosen[~special].mean() == pytest.approx(rate, abs=0.03)
    shares = [(hidden == 4)[chosen].mean(), (hidden == ids)[chosen].mean()]
    assert shares == pytest.approx([0.8, 0.1], abs=0.04)


def test_nothing_hidden_and_same_seed():
    ids, special = ids_and_special((3, 9))
    before = ids.copy(), special.copy()
    hidden, labels = mask_tokens(ids, special, 500, 4, np.random.default_rng(0), rate=0)
    np.testing.assert_array_equal(hidden, ids)
    assert (labels == -100).all()
    one, two = (mask_tokens(ids, special, 500, 4, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(ids, before[0])
    np.testing.assert_array_equal(special, before[1])


@pytest.mark.parametrize("change", [
    {"input_ids": np.array([[1.0]])}, {"input_ids": np.array([[500]])}, {"vocab_size": 0},
    {"special_tokens_mask": np.array([[0]])}, {"special_tokens_mask": np.array([True, False])},
    {"mask_id": 500}, {"rng": 3}, {"rate": -0.1}, {"rate": 1.1}, {"rate": "much"},
])
def test_mask_tokens_refuses(change):
    good = {"input_ids": np.array([[7]]), "special_tokens_mask": np.array([[False]]),
            "vocab_size": 500, "mask_id": 4, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=r"mask_tokens: .*expected .*got "):
        mask_tokens(**{**good, **change})


# --- The model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_gradients_equal_differences(tied, dropout):
    model = new_model(tied=tied, dropout=dropout, attention_dropout=dropout)
    batch = model.prepare(["the soup was cold .", "a cat sat here", "hot tea"])

    def loss():
        return model.loss_and_grads(batch, np.random.default_rng(5))

    _, grads, count = loss()
    assert count >= 2
    assert grads.keys() == model.params.keys()
    rng = np.random.default_rng(0)
    for name, array in model.params.items():
        assert grads[name].shape == array.shape
        direction = rng.normal(size=array.shape)
        sides = []
        for sign in (1, -1):
            array += sign * 1e-6 * direction
            sides.append(loss()[0])
            array -= sign * 1e-6 * direction
        expected = (sides[0] - sides[1]) / 2e-6
        assert (grads[name] * direction).sum() == pytest.approx(expected, rel=2e-4, abs=1e-7), name


def test_training_changes_the_encoder_itself():
    model = new_model(np.float32)
    assert all(model.params[f"encoder.{n}"] is a for n, a in model.encoder.params.items())


@pytest.mark.parametrize("tied", [True, False])
def test_it_starts_near_a_blind_guess_and_learns_what_stands_where(tied):
    model = new_model(np.float32, tied=tied, scale=5.0, d_model=32, num_heads=4)
    texts = ["the soup was hot .", "a cat sat here .", "the tea was cold ."] * 20
    train = model.prepare(texts)
    start = model.score(train)
    assert start["loss"] == pytest.approx(np.log(len(TOKENIZER)), abs=1.0)
    fit(model, train, steps=300, lr=5e-3, warmup=0.1)
    end = model.score(train)
    assert end["loss"] < 0.6 * start["loss"]
    assert end["accuracy"] > 0.6
    assert model.fill("a [MASK] sat here .")[0][0][0] == "cat"
    assert {t for t, _ in model.fill("the [MASK] was cold .", 2)[0]} <= {"tea", "soup"}


def test_score_counts_every_hidden_token_once():
    model = new_model()
    texts = ["the soup was hot .", "a cat sat here .", "tea"] * 30
    encodings = model.prepare(texts)
    score = model.score(encodings)
    logs, labels, guesses = model.guesses(encodings)
    assert score["count"] == len(labels) == len(logs) == len(guesses)
    assert score["loss"] == pytest.approx(-logs.mean())
    assert score == model.score(encodings)
    assert model.evaluate(encodings) == -score["loss"]
    assert not set(labels) & {TOKENIZER.vocab[t] for t in SPECIAL}
    assert model.score([]) == {"loss": 0.0, "accuracy": 0.0, "count": 0}


def test_what_is_hidden_of_a_text_without_an_rng_is_its_own():
    model = new_model(rate=0.5)
    batch = model.prepare(["the soup was hot .", "a cat sat here .", "tea", "the tea was hot here"])
    together = model.loss_and_grads(batch)
    alone = [model.loss_and_grads([encoding]) for encoding in batch]
    assert together[2] == sum(count for *_, count in alone)
    assert together[0] == pytest.approx(sum(loss * n for loss, _, n in alone) / together[2])
    assert together[0] == model.loss_and_grads(batch)[0]
    places = [model._hide([encoding], None)[1][1].tolist() for encoding in batch]
    assert places[0] != places[3] or places[0] != places[1]


def test_a_batch_in_which_nothing_is_hidden():
    model = new_model(rate=1e-9)
    loss, grads, count = model.loss_and_grads(model.prepare(["tea"]), np.random.default_rng(0))
    assert (loss, count) == (0.0, 0)
    assert all((grad == 0).all() for grad in grads.values())


# --- Fill in --------------------------------------------------------------------------------------


def test_fill_gives_words_best_first():
    model = new_model()
    two = model.fill("the [MASK] was [MASK]", top_k=20)
    assert len(two) == 2
    for guesses in two:
        chances = [p for _, p in guesses]
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) == pytest.approx(1)
        assert sorted(t for t, _ in guesses) == sorted(WORDS)


@pytest.mark.parametrize("text", ["the soup", "", "tea " * 30 + "[MASK]", "[MASK] tea " * 9])
def test_fill_refuses(text):
    with pytest.raises(ValueError, match="fill: text: expected"):
        new_model().fill(text)


# --- On disk, and wrong inputs --------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_saved_and_loaded(tmp_path, tied):
    model = new_model(np.float32, tied=tied)
    model.params["head.bias"] += 0.5
    model.save(tmp_path / "m.npz")
    again = MaskedWordModel.load(tmp_path / "m.npz", TOKENIZER)
    assert again.params.keys() == model.params.keys()
    assert (again.tied, again.rate) == (model.tied, model.rate)
    for name, array in model.params.items():
        np.testing.assert_array_equal(again.params[name], array.astype(np.float16))
        assert again.params[name].dtype == np.float32
    assert all(again.params[f"encoder.{n}"] is a for n, a in again.encoder.params.items())


def test_load_refuses_another_file(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(2))
    np.savez(tmp_path / "y.npz", about=np.array('{"config": {}}'))
    for name in ("x.npz", "y.npz"):
        with pytest.raises(ValueError, match=r"MaskedWordModel\.load: expected"):
            MaskedWordModel.load(tmp_path / name, TOKENIZER)


def test_model_refuses():
    model = new_model()
    with pytest.raises(ValueError, match="tokenizer: expected at most"):
        MaskedWordModel(model.encoder, WordPieceTokenizer([*SPECIAL, *WORDS, "more"]))
    with pytest.raises(ValueError, match=r"\[MASK\]"):
        MaskedWordModel(model.encoder, WordPieceTokenizer(["[UNK]", "[CLS]", "[SEP]"]))
    with pytest.raises(ValueError, match="tokenizer: expected"):
        MaskedWordModel(model.encoder, WORDS)
    for rate in (0, 1.5):
        with pytest.raises(ValueError, match="rate: expected"):
            MaskedWordModel(model.encoder, TOKENIZER, rate=rate)
    with pytest.raises(ValueError, match="texts: expected a list"):
        model.prepare("one string")
