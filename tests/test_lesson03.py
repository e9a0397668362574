"""Lesson 03: what its text claims, its exercises' messages, and what its sliders show."""

import inspect

import course
import numpy as np
import pytest
from course.exercises import get
from course.exercises import lesson03 as exercises
from course.sliders import lesson03 as play
from course.texts import load_conll, load_reviews, load_squad, load_tokenizer

from solutions.embeddings import normalize, pad_batch, sinusoidal_positions, wordpiece
from solutions.encoder import Encoder, EncoderConfig, init_params, layer_norm

TOKENIZER = load_tokenizer()


def _encoder(seed=0, spread=1.0, **options):
    config = EncoderConfig(vocab_size=50, d_model=12, num_layers=3, num_heads=3, d_ff=20,
                           max_length=16, **options)
    params = {name: spread * array if array.ndim == 2 else array
              for name, array in init_params(config, seed, np.float64).items()}
    return Encoder(config, params)


# --- Order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_without_positions_reordering_tokens_only_reorders_vectors(seed):
    """f(Px) = P f(x), for every order, whatever the weights; and so the set stays the same."""
    rng = np.random.default_rng(seed)
    encoder = _encoder(seed, spread=30.0, positions=False)
    ids = rng.integers(0, 50, size=(3, 9))
    kinds = rng.integers(0, 2, size=(3, 9))
    mask = np.arange(9) < rng.integers(1, 10, size=(3, 1))
    before = encoder(ids, mask, kinds)
    for _ in range(5):
        order = rng.permutation(9)
        after = encoder(ids[:, order], mask[:, order], kinds[:, order])
        np.testing.assert_allclose(after, before[:, order], rtol=0, atol=1e-10)
    assert np.abs(before[:, 0] - before[:, 1]).max() > 1e-3  # the vectors do differ


@pytest.mark.parametrize("options", [{"positions": True}, {"positions": False, "causal": True}])
def test_positions_and_a_causal_mask_each_give_order_away(options):
    encoder = _encoder(3, spread=30.0, **options)
    ids = np.array([[4, 8, 15, 16, 23]])
    order = np.array([4, 2, 0, 1, 3])
    assert np.abs(encoder(ids[:, order]) - encoder(ids)[:, order]).max() > 1e-2


def test_order_slider_shows_no_move_without_positions_and_a_move_with_them():
    for order in play.ORDERS:
        assert play.order_matters(order, 0.0).facts["moved"].max() < 1e-12
    moved = play.order_matters("man bites dog", 1.0).facts["moved"]
    assert moved.argmin() == 1 and moved[[0, 2]].min() > 1.0  # bites keeps its place


# --- Positions -----------------------------------------------------------------------------------


def test_dot_products_of_positions_depend_on_their_distance_only():
    table = sinusoidal_positions(60, 24)
    dots = table @ table.T
    for gap in range(60):
        line = np.diagonal(dots, gap)
        np.testing.assert_allclose(line, line[0], atol=1e-9)
    assert dots[20, 20] == pytest.approx(12)


def test_waves_as_the_lesson_says():
    row = sinusoidal_positions(4, 4)[3]
    np.testing.assert_allclose(row, [0.1411, -0.9900, 0.0300, 0.9996], atol=5e-5)
    fastest = sinusoidal_positions(64, 32)[:, :2]
    assert np.abs(fastest[44] - fastest[0]).max() < 0.02  # the fastest wave alone: 44 looks like 0
    dots = play.position_dots(20, 10000, 4).facts["dots"]
    assert np.sort(dots)[-2] > dots[21]  # width 4: a far place is more alike than a neighbor
    dots = play.position_dots(20, 10000, 64).facts["dots"]
    assert np.sort(dots)[-2] == pytest.approx(dots[21])


# --- Pieces and places ---------------------------------------------------------------------------


def test_located_pieces_equal_the_tokenizer_on_the_courses_texts():
    texts = {review.text for review in load_reviews()}
    questions, _ = load_squad()
    texts |= {q.passage for q in questions} | {q.question for q in questions}
    texts |= {" ".join(sentence.words) for sentence in load_conll()}
    for text in texts:
        found = TOKENIZER.encode(text, add_special_tokens=False)
        assert exercises.locate(text, TOKENIZER.vocab) == (found.tokens, found.offsets,
                                                           found.word_ids)


def test_ana_is_found_in_code_points():
    text = "Zoë met 👍🏽 Ana"
    pieces, offsets, word_ids = exercises.locate(text, {"zoe", "met", "ana"})
    assert pieces == ["zoe", "met", "[UNK]", "ana"]
    assert offsets[-1] == (11, 14) and word_ids == [0, 1, 2, 3]
    assert exercises._utf16_places(text)[11] == 13
    assert exercises._byte_places(text)[11] == 18


def test_word_ids_skip_a_word_that_leaves_nothing():
    found = TOKENIZER.encode_words(["john", "\u200b", "google"])
    assert found.word_ids == [None, 0, 2, None]


@pytest.mark.parametrize("length", range(3, 30))
def test_fit_pair_keeps_every_special_token(length):
    for first, second in ((4, 12), (12, 4), (8, 8), (0, 9), (9, 0)):
        tokens, segments = exercises.fit_pair(["a"] * first, ["b"] * second, length)
        assert len(tokens) == len(segments) == min(length, first + second + 3)
        assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]" and tokens.count("[SEP]") == 2


def test_sum_and_layer_norm_are_what_the_encoder_starts_from():
    encoder = _encoder(spread=20.0)
    rng = np.random.default_rng(0)
    ids, kinds = rng.integers(0, 50, size=(4, 7)), rng.integers(0, 2, size=(4, 7))
    p = encoder.params
    total = exercises.embed(ids, kinds, p["embeddings.token"], p["embeddings.segment"],
                            p["embeddings.position"])
    mine = layer_norm(total, p["embeddings.norm.gamma"], p["embeddings.norm.beta"])
    states, _ = encoder.layers_and_attention(ids, token_type_ids=kinds)
    np.testing.assert_allclose(mine, states[0], rtol=0, atol=1e-12)


def test_mask_makes_a_sentence_independent_of_its_batch():
    config = EncoderConfig(vocab_size=len(TOKENIZER), d_model=16, num_layers=2, num_heads=2,
                           d_ff=32, max_length=64)
    encoder = Encoder(config, init_params(config, 0, np.float64))
    encodings = [TOKENIZER.encode(t) for t in ("Zoë met Ana.", "The critics were unhappy with it.")]
    batch = pad_batch(encodings)
    alone = encoder(**pad_batch(encodings[:1]))[0]
    np.testing.assert_allclose(encoder(**batch)[0, :len(alone)], alone, rtol=0, atol=1e-12)
    without = encoder(batch["input_ids"], None, batch["token_type_ids"])[0, :len(alone)]
    assert np.abs(without - alone).max() > 1e-3


# --- What a learner is told ----------------------------------------------------------------------


def _told(name, source):
    """The report on an answer that is typed in, its names those of the lesson."""
    space = dict(vars(exercises))
    exec(source, space)
    return course.check(name, space[name])


@pytest.mark.parametrize(("name", "mistake", "source"), [
    ("wordpiece", "no_prefix_at_all", """
def wordpiece(word, vocab, unknown="[UNK]", max_chars=100):
    pieces = []
    if len(word) > max_chars:
        return [unknown]
    while word:
        for stop in range(len(word), 0, -1):
            if word[:stop] in vocab:
                pieces.append(word[:stop])
                word = word[stop:]
                break
        else:
            return [unknown]
    return pieces
"""),
    ("fit_pair", "separator_cut_off", """
def fit_pair(first, second, max_length):
    tokens, segments = add_specials(first, second)
    return tokens[:max_length], segments[:max_length]
"""),
    ("pad_batch", "mask_by_pad_id", """
def pad_batch(encodings, length=None, pad_id=0):
    length = length or max(len(e.input_ids) for e in encodings)
    ids = np.array([e.input_ids + [pad_id] * (length - len(e.input_ids)) for e in encodings])
    kinds = np.array([e.token_type_ids + [0] * (length - len(e.input_ids)) for e in encodings])
    return {"input_ids": ids, "attention_mask": ids != pad_id, "token_type_ids": kinds}
"""),
    ("sinusoidal_positions", "exponent_doubled", """
def sinusoidal_positions(length, d_model):
    table = np.zeros((length, d_model))
    for p in range(length):
        for i in range(0, d_model, 2):
            table[p, i] = np.sin(p / 10000 ** (2 * i / d_model))
            if i + 1 < d_model:
                table[p, i + 1] = np.cos(p / 10000 ** (2 * i / d_model))
    return table
"""),
    ("locate", "pieces_counted", """
def locate(text, vocab):
    normal, origins = normalize_letters(text)
    pieces, offsets = [], []
    for word, (at, end) in pre_tokenize(normal):
        for piece in wordpiece(word, vocab):
            stop = end if piece == "[UNK]" else at + len(piece.replace("##", ""))
            pieces.append(piece)
            offsets.append((origins[at], origins[stop - 1] + 1))
            at = stop
    return pieces, offsets, list(range(len(pieces)))
"""),
])
def test_typed_answer_is_told_its_mistake(name, mistake, source):
    report = _told(name, source)
    assert report.status == "wrong"
    assert report.mistake == mistake, str(report)


def test_exercises_in_the_order_of_the_lesson():
    names = ["normalize_letters", "pre_tokenize", "wordpiece", "locate", "add_specials", "fit_pair",
             "pad_batch", "sinusoidal_positions", "embed"]
    assert [name for name in course.exercises() if get(name).lesson == "03"] == names
    for name in names:
        assert len(get(name).mistakes) >= 10 or name == "wordpiece", name
        assert inspect.getdoc(get(name).reference)


# --- Sliders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Zoë met 👍🏽 Ana", "Cafe\u0301s, naïve", "", " \t ", "ש <b>&"])
def test_stages_show_the_tokenizers_own_numbers(text):
    encoding = TOKENIZER.encode(text)
    for token in range(len(encoding)):
        drawn = play.stages(text, token)
        assert drawn.facts["ids"].tolist() == encoding.input_ids
        assert tuple(drawn.facts["span"]) == encoding.offsets[token]
    assert "<b>" not in drawn.body


@pytest.mark.parametrize("word", ["unhappiness", "happyness", "replaying", "spoon", "", "Zoë!"])
def test_last_look_up_is_the_result_of_wordpiece(word):
    bare = normalize(word)[0].rstrip("!")
    said = " ".join(wordpiece(bare, set(play.TOY))) or "no piece yet"
    assert play.longest_match(word, 60, "toy").alt.endswith(f": {said}.")


def test_a_larger_vocabulary_needs_fewer_pieces():
    text = "The restaurant was disappointing, the critics unhappy."
    pieces = [play.vocabulary_size(size, text).facts["pieces"] for size in range(160, 3001, 140)]
    assert pieces[0] > 2 * pieces[-1]


def test_truncation_slider_is_right_only_when_the_texts_are_cut():
    for length in range(4, 22):
        assert "both [SEP] there" in play.truncation(length, "right").alt
        assert ("cut off" in play.truncation(length, "row").alt) == (length < 21)
    assert "nothing of the passage" in play.truncation(9, "second").alt


def test_sorting_saves_padding_except_in_one_batch():
    for rows in (2, 3, 4, 6):
        plain, by_length = (play.padding_share(rows, s).facts["share"] for s in (False, True))
        assert by_length < plain
    assert play.padding_share(12, True).facts["share"] == play.padding_share(12, False).facts[
        "share"]
