"""solutions.question_answering against brute force, reference values and bad input."""

import itertools
import math

import numpy as np
import pytest
from course.texts import Gold
from course.texts import small_passages as small

from solutions import question_answering as qa
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params

TOKENIZER = WordPieceTokenizer(small.small_vocabulary())
QUESTION = "Where does John work?"
PASSAGE = "John Smith works at Google headquarters."


def make_model(max_length=64, mark_shared=True, seed=0, dtype=np.float32, **options):
    config = EncoderConfig(
        len(TOKENIZER), 16, 2, 2, 24, max_length, num_segments=3, dropout=0, attention_dropout=0
    )
    encoder = Encoder(config, init_params(config, seed, dtype))
    model = qa.QuestionAnswerer(encoder, TOKENIZER, mark_shared=mark_shared, **options)
    rng = np.random.default_rng(seed)
    for name, array in model.params.items():
        if not name.endswith("gamma"):
            array[...] = rng.normal(0, 0.3, array.shape)
    return model


# --- Masks and spans ------------------------------------------------------------------------------


def test_answer_mask_is_true_for_passage_tokens_alone():
    encoding = TOKENIZER.encode(QUESTION, PASSAGE)
    allowed = qa.answer_mask(encoding)
    chosen = [token for token, yes in zip(encoding.tokens, allowed) if yes]
    assert allowed.dtype == bool
    assert chosen == ["john", "smith", "works", "at", "google", "headquarters", "."]


def test_answer_mask_leaves_out_padding_and_empty_passages():
    encoding = TOKENIZER.encode(QUESTION, PASSAGE)
    hidden = type(encoding)(
        **{**encoding.__dict__, "attention_mask": [True] * 8 + [False] * (len(encoding) - 8)}
    )
    assert qa.answer_mask(hidden).sum() == 1
    assert not qa.answer_mask(TOKENIZER.encode(QUESTION, "")).any()


def test_masked_softmax_masks_first():
    logits, allowed = np.array([2.0, 1.0, 1.0]), np.array([False, True, True])
    np.testing.assert_allclose(qa.masked_softmax(logits, allowed), [0, 0.5, 0.5])
    np.testing.assert_array_equal(qa.masked_softmax(logits, np.zeros(3, bool)), [0, 0, 0])
    negative = qa.masked_softmax(np.array([-5.0, -1.0, -2.0]), np.array([True, True, False]))
    assert negative.argmax() == 1
    assert negative[2] == 0


@pytest.mark.parametrize(
    ("starts", "ends", "allowed", "expected"),
    [
        ([0, 1, 5, 0], [0, 4, 1, 3], [1, 1, 1, 1], (2, 3, 8)),
        ([-3, -4], [-2, -5], [1, 1], (0, 0, -5)),
        ([9, 1, 2], [9, 1, 3], [0, 1, 1], (2, 2, 5)),
        ([-5, -1, -2], [-5, -1, -2], [1, 1, 0], (1, 1, -2)),
    ],
)
def test_best_span_of_the_reference_values(starts, ends, allowed, expected):
    got = qa.best_spans(np.array(starts, float), np.array(ends, float), np.array(allowed, bool))
    assert got == [expected]


def by_brute_force(starts, ends, allowed, longest, top_k):
    found = [
        (i, j, float(starts[i] + ends[j]))
        for i in range(len(starts))
        for j in range(i, min(i + longest, len(starts)))
        if allowed[i] and allowed[j]
    ]
    return sorted(found, key=lambda span: (-span[2], span[0], span[1]))[:top_k]


def test_best_spans_equal_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(4000):
        n = int(rng.integers(0, 13))
        dtype = rng.choice(["float32", "float64"])
        starts, ends = rng.normal(-1, 2, (2, n)).astype(dtype)
        if rng.random() < 0.3:  # ties
            starts, ends = starts.round(), ends.round()
        allowed = rng.random(n) < rng.choice([0.0, 0.3, 0.7, 1.0])
        longest, top_k = int(rng.integers(1, 15)), int(rng.integers(1, 6))
        got = qa.best_spans(starts, ends, allowed, longest, top_k)
        assert got == by_brute_force(starts, ends, allowed, longest, top_k)


def test_best_spans_of_nothing():
    nothing = np.zeros(0)
    assert qa.best_spans(nothing, nothing, np.zeros(0, bool)) == []
    assert qa.best_spans(np.ones(3), np.ones(3), np.zeros(3, bool), top_k=4) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"start_logits": [1.0, 2.0]}, "start_logits"),
        ({"start_logits": np.array([1, 2])}, "floats"),
        ({"end_logits": np.zeros(3)}, "end_logits"),
        ({"allowed": np.array([1, 1])}, "Boolean"),
        ({"allowed": np.ones(3, bool)}, "shape"),
        ({"start_logits": np.array([np.nan, 1.0])}, "NaN"),
        ({"end_logits": np.array([np.inf, 1.0])}, "infinity"),
        ({"max_answer_length": 0}, "max_answer_length"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": True}, "top_k"),
    ],
)
def test_best_spans_refuses(change, word):
    good = {"start_logits": np.zeros(2), "end_logits": np.zeros(2), "allowed": np.ones(2, bool)}
    with pytest.raises(ValueError, match=word):
        qa.best_spans(**{**good, **change})


def test_functions_do_not_write_into_their_arguments():
    starts, ends, allowed = np.arange(4.0), np.arange(4.0), np.array([False, True, True, False])
    kept = starts.copy(), ends.copy(), allowed.copy()
    qa.best_spans(starts, ends, allowed)
    qa.masked_softmax(starts, allowed)
    qa.span_loss(starts[None], ends[None], np.array([0]), np.array([0]), allowed[None])
    for before, after in zip(kept, (starts, ends, allowed)):
        np.testing.assert_array_equal(before, after)


# --- Windows and "no answer" ----------------------------------------------------------------------


def test_windows_of_the_reference_values():
    assert qa.windows(10, 4, 1) == [(0, 4), (3, 7), (6, 10)]
    assert qa.windows(4, 4, 1) == [(0, 4)]
    assert qa.windows(5, 4, 0) == [(0, 4), (4, 5)]
    assert qa.windows(0, 4, 1) == []


def test_windows_cover_everything_once_and_overlap_as_asked():
    for total in range(1, 30):
        for room in range(1, 9):
            for overlap in range(room):
                cut = qa.windows(total, room, overlap)
                assert cut[0][0] == 0
                assert cut[-1][1] == total
                assert all(0 < stop - first <= room for first, stop in cut)
                assert all(a[1] - b[0] == overlap for a, b in itertools.pairwise(cut))
                assert all(a[1] < total for a in cut[:-1])


@pytest.mark.parametrize("args", [(10, 0, 0), (10, -1, 0), (10, 4, 4), (10, 4, 9), (10, 4, -1),
                                  (-1, 4, 1), (10.0, 4, 1), (10, None, 1)])
def test_windows_refuse(args):
    with pytest.raises(ValueError, match="windows"):
        qa.windows(*args)


def test_has_answer():
    assert qa.has_answer([6.0, 2.0], 5.0) is True
    assert qa.has_answer([6.0], 5.0) is False
    assert qa.has_answer([6.0], 5.0, threshold=1.0) is True  # not more than the threshold
    assert qa.has_answer([6.0], -np.inf) is False
    assert qa.has_answer(np.array([1.0, 6.0]), 1.0) is True
    for bad in ([], 3.0, [np.nan]):
        with pytest.raises(ValueError, match="has_answer"):
            qa.has_answer(bad, 1.0)


def test_best_threshold_equals_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(500):
        n = int(rng.integers(1, 12))
        margins = rng.normal(size=n).round(1)
        if rng.random() < 0.2:
            margins[0] = np.inf
        answered, declined = rng.random(n), (rng.random(n) < 0.5).astype(float)
        threshold, score = qa.best_threshold(margins, answered, declined)

        def mean(at, m=margins, a=answered, d=declined):
            return np.where(m > at, d, a).mean()

        finite = margins[np.isfinite(margins)]
        tries = [*(finite - 0.05), *(finite + 0.05), -99, 99]
        assert math.isclose(score, max(map(mean, tries)), abs_tol=1e-12)
        assert math.isclose(score, mean(threshold), abs_tol=1e-12)


# --- Measures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a's", "as"), ("U.S.A.", "usa"), ("well-known", "wellknown"), ("The Beatles", "beatles"),
        ("theatre", "theatre"), ("  in   the\tpark ", "in park"), ("A", ""), ("an apple, a pear",
        "apple pear"), ("“quoted”", "“quoted”"), ("Zoë’s", "zoë’s"), ("the-end", "theend"),
        ("", ""),
    ],
)  # fmt: skip
def test_normalize_answer(text, expected):
    assert qa.normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "overlap"),
    [
        ("to be or not to be", ["to be to be"], 0, 0.8),
        ("the Eiffel Tower", ["Eiffel Tower"], 1, 1),
        ("", [], 1, 1),
        ("Rome", [], 0, 0),
        ("", ["Rome"], 0, 0),
        ("", ["A"], 1, 1),
        ("the", ["Rome"], 0, 0),
        ("", ["A", "Rome"], 0, 0),
        ("in Rome", ["Paris", "Rome"], 0, 2 / 3),
        ("Rome in", ["in Rome"], 0, 1),
        ("Oslo", ["Rome", "Lima"], 0, 0),
    ],
)
def test_exact_match_and_f1(prediction, golds, exact, overlap):
    assert qa.exact_match(prediction, golds) == exact
    assert math.isclose(qa.f1(prediction, golds), overlap)
    assert isinstance(qa.f1(prediction, golds), float)


def squad_f1(prediction, golds):
    """SQuAD 2.0's definition, written as in its script, with counts of common words."""
    golds = [gold for gold in golds if qa.normalize_answer(gold)] or [""]
    best = 0
    for gold in golds:
        right, made = qa.normalize_answer(gold).split(), qa.normalize_answer(prediction).split()
        same = 0
        left = list(right)
        for word in made:
            if word in left:
                left.remove(word)
                same += 1
        if not right or not made:
            best = max(best, int(right == made))
        elif same:
            precision, recall = same / len(made), same / len(right)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def test_f1_equals_the_definition():
    rng = np.random.default_rng(2)
    words = ["the", "a", "red", "Red", "fox.", "fox", "well-known", "an", "7", "—"]
    for _ in range(2000):
        texts = [" ".join(rng.choice(words, rng.integers(0, 5))) for _ in range(4)]
        golds = texts[1 : 1 + rng.integers(0, 4)]
        assert math.isclose(qa.f1(texts[0], golds), squad_f1(texts[0], golds), abs_tol=1e-12)


def test_measures_refuse_one_string_in_place_of_a_list():
    for measure in (qa.f1, qa.exact_match):
        with pytest.raises(ValueError, match="golds"):
            measure("Rome", "Rome")
        with pytest.raises(ValueError, match="prediction"):
            measure(None, ["Rome"])
        with pytest.raises(ValueError, match="golds"):
            measure("Rome", [3])


def test_mean_scores_by_kind():
    got = qa.mean_scores(["Rome", "", "Oslo"], [["Rome"], [], []])
    assert math.isclose(got["exact_match"], 2 / 3)
    assert got["answerable"] == {"exact_match": 1.0, "f1": 1.0, "questions": 1}
    assert got["unanswerable"] == {"exact_match": 0.5, "f1": 0.5, "questions": 2}
    with pytest.raises(ValueError, match="mean_scores"):
        qa.mean_scores(["a"], [])


# --- Labels ---------------------------------------------------------------------------------------


def test_span_labels_point_at_the_answer():
    encoding = TOKENIZER.encode(QUESTION, PASSAGE)
    allowed = qa.answer_mask(encoding)
    start = PASSAGE.index("Google")
    labels = qa.span_labels(encoding.offsets, allowed, (start, start + len("Google headquarters")))
    assert [encoding.tokens[i] for i in labels] == ["google", "headquarters"]
    inside = qa.span_labels(encoding.offsets, allowed, (start + 1, start + 2))
    assert inside == (labels[0], labels[0])
    assert qa.span_labels(encoding.offsets, allowed, None) == (0, 0)


def test_span_labels_are_cls_where_the_answer_is_cut_off():
    whole = TOKENIZER.encode(PASSAGE, add_special_tokens=False)
    asked = TOKENIZER.encode(QUESTION, add_special_tokens=False)
    start = PASSAGE.index("Google")
    answer = (start, start + len("Google headquarters"))
    for first, stop, found in [(0, 5, False), (5, 7, False), (4, 6, True), (0, 4, False)]:
        encoding = TOKENIZER.combine(asked, whole[first:stop])
        labels = qa.span_labels(encoding.offsets, qa.answer_mask(encoding), answer)
        assert (labels != (0, 0)) == found, (first, stop)


def test_shared_words_compare_text_not_ids():
    question, passage = "Where does Zorblax work?", "Zorblax works. Quuxana is at work, Zorblax?"
    parts = [TOKENIZER.encode(text, add_special_tokens=False) for text in (question, passage)]
    marked = qa.shared_words(question, passage, *parts)
    assert [token for token, yes in zip(parts[1].tokens, marked) if yes] == [
        "[UNK]", "work", "[UNK]"
    ]  # fmt: skip


# --- The model ------------------------------------------------------------------------------------


def test_loss_and_grads_against_finite_differences():
    model = make_model(dtype=np.float64)
    examples = model.prepare(small.small_passages(3, 0))
    _, grads, count = model.loss_and_grads(examples)
    assert count == 3
    rng = np.random.default_rng(0)
    step = 1e-5
    for name, array in model.params.items():
        for _ in range(3):
            place = tuple(int(rng.integers(size)) for size in array.shape)
            kept = array[place]
            array[place] = kept + step
            above = model.loss_and_grads(examples)[0]
            array[place] = kept - step
            below = model.loss_and_grads(examples)[0]
            array[place] = kept
            got, want = grads[name][place], (above - below) / (2 * step)
            assert abs(got - want) < 1e-6 + 1e-4 * abs(want), (name, place)


def test_span_loss_by_hand():
    logits = np.zeros((1, 4))
    allowed = np.array([[False, False, True, True]])
    loss, grad_start, grad_end = qa.span_loss(
        logits, logits, np.array([2]), np.array([3]), allowed
    )
    assert math.isclose(loss, math.log(3))  # [CLS] and two tokens compete
    np.testing.assert_allclose(grad_start, [[1 / 6, 0, -1 / 3, 1 / 6]], atol=1e-12)
    np.testing.assert_allclose(grad_end, [[1 / 6, 0, 1 / 6, -1 / 3]], atol=1e-12)


def test_answers_are_slices_of_the_passage():
    model = make_model()
    passage = "  John  Smith\tworks at\nGoogle headquarters.  Zoë met 👍🏽 Ana, naïve!"
    for answer in model.answers(QUESTION, passage, top_k=8):
        assert answer.text == passage[answer.start : answer.end]
        assert answer.text
    scores = [answer.score for answer in model.answers(QUESTION, passage, top_k=8)]
    assert scores == sorted(scores, reverse=True)


def test_windows_are_merged_by_place_with_the_highest_score():
    """Against a reading of every window by itself."""
    model = make_model(max_length=20, overlap=5)
    passage = " ".join(item.passage for item in small.small_passages(3, 5))
    made = model.inputs(QUESTION, passage)
    assert len(made) > 3
    by_place, nulls = {}, []
    for window in made:
        (starts, ends), = model.logits([window])
        nulls.append(starts[0] + ends[0])
        for i, j, score in by_brute_force(starts, ends, window.allowed, 30, 10**6):
            place = window.encoding.offsets[i][0], window.encoding.offsets[j][1]
            by_place.setdefault(place, []).append(score)
    want = sorted(((max(s), p) for p, s in by_place.items()), key=lambda pair: -pair[0])[:5]
    got = model.answers(QUESTION, passage, top_k=5)
    assert [(a.start, a.end) for a in got] == [place for _, place in want]
    np.testing.assert_allclose([a.score for a in got], [score for score, _ in want], rtol=1e-4)
    np.testing.assert_allclose(got[0].no_answer_score, min(nulls), rtol=1e-4)
    assert len({(a.start, a.end) for a in got}) == 5


def test_threshold_decides_between_answer_and_none():
    model = make_model()
    model.threshold = 1e9
    given = model.answer(QUESTION, PASSAGE)
    model.threshold = -1e9
    declined = model.answer(QUESTION, PASSAGE)
    assert given.text
    assert (declined.text, declined.start, declined.end) == ("", 0, 0)
    assert declined.score == given.score


@pytest.mark.parametrize("passage", ["", " \n\t ", "\u200b"])
def test_empty_passages_have_no_answer(passage):
    answer = make_model().answer(QUESTION, passage)
    assert (answer.text, answer.start, answer.end, answer.score) == ("", 0, 0, -np.inf)
    assert np.isfinite(answer.no_answer_score)


@pytest.mark.parametrize("question", ["", "   ", "\u200b\n"])
def test_empty_questions_are_refused(question):
    with pytest.raises(ValueError, match="question"):
        make_model().answer(question, PASSAGE)


def test_a_question_longer_than_the_table_is_refused():
    with pytest.raises(ValueError, match="at most 60 tokens"):
        make_model().answer("why " * 61, PASSAGE)
    assert make_model().answer("why " * 60, PASSAGE).no_answer_score is not None


def test_an_overlap_that_leaves_no_room_is_refused():
    with pytest.raises(ValueError, match="overlap"):
        make_model(max_length=20, overlap=12).answer(QUESTION, PASSAGE * 3)


@pytest.mark.parametrize("text", [None, 3, b"bytes", ["words"]])
def test_texts_must_be_strings(text):
    with pytest.raises(ValueError, match="passage"):
        make_model().answer(QUESTION, text)
    with pytest.raises(ValueError, match="question"):
        make_model().answer(text, PASSAGE)


def test_a_passage_of_twenty_thousand_characters_and_any_script():
    model = make_model()
    texts = [PASSAGE * 500, "漢字かな" * 5000, "שלום עולם " * 2000, "👍🏽" * 5000, "x" * 20000]
    for text in texts:
        answer = model.answer("Where does 漢 work?", text[:20000])
        assert answer.text == text[answer.start : answer.end]


def test_many_questions_at_once_give_the_same_answers():
    model = make_model(max_length=24, overlap=4)
    items = small.small_passages(6, 3)
    together = model.answer_all(items)
    for item, answer in zip(items, together):
        alone = model.answer(item.question, item.passage)
        assert (alone.text, alone.start) == (answer.text, answer.start)
        assert math.isclose(alone.score, answer.score, rel_tol=1e-4)


@pytest.mark.parametrize("wrong", [["text"], [None], [{"question": "a", "passage": "b"}]])
def test_items_have_a_question_and_a_passage(wrong):
    with pytest.raises(ValueError, match="items: 0: expected an object with question, passage, an"):
        make_model().prepare(wrong)
    with pytest.raises(ValueError, match="items: 0: expected an object with question, passage, go"):
        make_model().answer_all(wrong)


def test_evaluate_wants_at_least_one_window():
    with pytest.raises(ValueError, match="examples: expected at least one, got none"):
        make_model().evaluate([])


@pytest.mark.parametrize("margins", [[np.nan, 1.0], [1.0, np.nan, np.inf]])
def test_a_margin_that_is_no_number_is_refused(margins):
    with pytest.raises(ValueError, match="best_threshold: margins: expected numbers, got NaN"):
        qa.best_threshold(margins, [1.0] * len(margins), [0.0] * len(margins))
    assert qa.best_threshold([np.inf, 1.0], [0.0, 1.0], [1.0, 0.0]) == (2.0, 1.0)


def test_prepare_checks_where_an_answer_stands():
    item = small.SmallPassage(QUESTION, PASSAGE, [Gold("Google", 3)], "work", "John Smith", 1)
    with pytest.raises(ValueError, match="item 0"):
        make_model().prepare([item])


def test_save_and_load(tmp_path):
    model = make_model(overlap=3, threshold=0.5, max_answer_length=7, word_dropout=0.1)
    path = tmp_path / "model.npz"
    model.save(path)
    loaded = qa.QuestionAnswerer.load(path)
    assert (loaded.overlap, loaded.threshold, loaded.max_answer_length) == (3, 0.5, 7)
    assert loaded.mark_shared
    assert loaded.tokenizer.tokens == model.tokenizer.tokens
    one, other = model.answer(QUESTION, PASSAGE), loaded.answer(QUESTION, PASSAGE)
    assert (one.text, one.start) == (other.text, other.start)
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match=r"QuestionAnswerer\.save wrote"):
        qa.QuestionAnswerer.load(tmp_path / "other.npz")


def test_model_refuses_an_encoder_that_does_not_fit():
    config = EncoderConfig(len(TOKENIZER), 16, 1, 2, 24, 32)
    encoder = Encoder(config, init_params(config, 0))
    with pytest.raises(ValueError, match="num_segments"):
        qa.QuestionAnswerer(encoder, TOKENIZER, mark_shared=True)
    config = EncoderConfig(10, 16, 1, 2, 24, 32)
    with pytest.raises(ValueError, match="tokenizer"):
        qa.QuestionAnswerer(Encoder(config, init_params(config, 0)), TOKENIZER)


# --- The generator --------------------------------------------------------------------------------


def test_small_passages():
    items = small.small_passages(300, 4)
    assert items == small.small_passages(300, 4)
    assert items != small.small_passages(300, 5)
    for item in items:
        assert all(item.passage[s : s + len(text)] == text for text, s in item.answers)
    assert 0.1 < np.mean([not item.answers for item in items]) < 0.3


def test_held_out_people_never_occur_in_training():
    known = set(small.small_vocabulary())
    for name in small.HELD_OUT_FIRST_NAMES + small.HELD_OUT_LAST_NAMES:
        assert name.lower() not in known
    for item in small.small_passages(50, 4, held_out=True):
        assert not set(item.person.lower().split()) & known


def test_small_passages_refuse():
    for options in ({"facts": 0}, {"facts": 5}, {"people": 0}, {"facts": 4, "no_answer": 0.1}):
        with pytest.raises(ValueError, match="small_passages"):
            small.small_passages(1, 0, **options)
