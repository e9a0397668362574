"""Lesson 02: what its text and sliders claim is so."""

import course
import numpy as np
import pytest
from course.exercises import get
from course.sliders import lesson02 as play

from solutions import attention, multi_head


@pytest.mark.parametrize(("word", "head", "found"), [
    ("cooked", 0, "chef"), ("met", 0, "chef"), ("met", 1, "pilot"), ("cooked", 3, "pilot"),
    ("The", 2, "chef"), ("who", 3, "chef"), ("cooked", 4, "cooked"), ("met", 4, "met"),
])
def test_heads_of_the_first_picture_ask_what_they_are_called(word, head, found):
    weights = play.which_head(play.WORDS.index(word), head).facts["weights"]
    assert play.WORDS[weights.argmax()] == found
    assert weights.max() > 0.9


def test_unsplit_scores_are_the_heads_scores_added_up():
    x = play.sentence_vectors()[None]
    query, key, _ = (x @ w for w in play.sentence_projections())
    whole = query @ key.swapaxes(-1, -2)
    split = [attention.split_heads(array, 4) for array in (query, key)]
    np.testing.assert_allclose((split[0] @ split[1].swapaxes(-1, -2)).sum(axis=1), whole,
                               atol=1e-9)


def test_one_pattern_hides_the_swap_and_keeps_a_third_at_best():
    assert play.one_head_leans(0.0).facts["apart"][2] < 1e-12
    best = max(play.one_head_leans(lean).facts["apart"].min() for lean in np.linspace(-6, 6, 241))
    assert best / 2**0.5 == pytest.approx(1 / 3, abs=0.02)


def test_with_the_query_matrix_as_key_a_word_finds_itself():
    assert play.shared_projection(0.0).facts["weights"][1].argmax() == 2
    assert play.shared_projection(1.0).facts["weights"][1].argmax() == 1


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8])
def test_the_picture_of_heads_shows_the_split(num_heads):
    x = np.arange(32.0).reshape(1, 4, 8)
    shown = play.where_numbers_go(num_heads, "reshape, then transpose")
    np.testing.assert_array_equal(shown.facts["heads"], attention.split_heads(x, num_heads))
    alone = play.where_numbers_go(num_heads, "reshape alone")
    seen = len({int(n) // 8 for n in alone.facts["heads"][0, 0].ravel()})
    assert seen == 4 // min(num_heads, 4)
    assert f"numbers of {seen} of 4 tokens" in alone.alt


def test_reshape_alone_keeps_the_halves_apart():
    x = np.random.default_rng(0).normal(size=(1, 4, 8))
    changed = x.copy()
    changed[0, 3] += 1
    outputs = []
    for z in (x, changed):
        heads = z.reshape(1, 2, 4, 4)
        output, _ = attention.scaled_dot_product_attention(heads, heads, heads)
        outputs.append(output.reshape(1, 4, 8))
    np.testing.assert_array_equal(outputs[0][0, :2], outputs[1][0, :2])
    assert np.abs(outputs[0][0, 2:] - outputs[1][0, 2:]).max() > 0.1


@pytest.mark.parametrize(("head", "weights"), [(1, [1 / 7] * 7), (2, [0, 0, 0, 0, 0, 0, 1])])
def test_cooked_finds_nothing_and_gets_the_mean_or_itself(head, weights):
    shown = play.which_head(play.WORDS.index("cooked"), head).facts["weights"]
    np.testing.assert_allclose(shown, weights, atol=0.005)


def test_narrow_heads_cannot_aim():
    reach = {h: play.winners(h).sum(axis=1) for h in (1, 2, 4, 8, 16)}
    assert (reach[16] == 2).all()  # on a line, only the two ends
    assert (reach[1] == play.CROWD).all()
    means = [reach[h].mean() for h in (1, 2, 4, 8, 16)]
    assert means == sorted(means, reverse=True)


def found_by_some_query(key, others):
    """Whether the perceptron finds a query that gives `key` a higher score than all others."""
    leads = key - others
    leads /= np.linalg.norm(leads, axis=1, keepdims=True)
    query = leads.sum(axis=0)
    for _ in range(20_000):
        worst = int((leads @ query).argmin())
        if leads[worst] @ query > 0:
            return True
        query += leads[worst]
    return False


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8, 16])
def test_the_keys_that_can_be_singled_out_are_those_for_which_there_is_a_query(num_heads):
    keys = np.random.default_rng(2).normal(size=(1, play.CROWD, 16))
    heads = attention.split_heads(keys, num_heads)[0]
    queries = np.random.default_rng(0).normal(size=(num_heads, 20_000, heads.shape[-1]))
    best = (queries @ heads.swapaxes(-1, -2)).argmax(axis=-1)
    sampled = np.array([np.isin(np.arange(play.CROWD), row) for row in best])
    can = play.winners(num_heads)
    assert not (sampled & ~can).any()
    for h, j in zip(*np.nonzero(can & ~sampled), strict=True):  # seldom won, but won
        assert found_by_some_query(heads[h, j], np.delete(heads[h], j, axis=0))


def test_trained_heads_agree_on_the_word_that_decides_and_are_not_as_clean_as_those_by_hand():
    given = play.trained_heads.slider.given()
    text = play.trained_heads.slider.controls["text"].first
    tokens = given["model"].attention(text)[0]
    weights = play.trained_heads(text, **given).facts["weights"]  # (layers, heads, n, n)
    assert weights.shape[:2] == (2, 4)
    at_good = (weights[1].argmax(axis=-1) == tokens.index("good")).sum(axis=-1)
    assert (at_good > len(tokens) / 2).all()
    assert (weights[0].max(axis=-1) < 0.5).mean() > 0.5  # layer 1: most words spread
    steps = weights.argmax(axis=-1) - np.arange(len(tokens))
    assert ((steps == 1).mean(axis=-1) < 0.5).all() and ((steps == -1).mean(axis=-1) < 0.5).all()


def test_the_line_of_the_memory_is_continued():
    given = play._sample()
    assert play.measured_cost(15, **given).facts["at"] == pytest.approx(5e-5 * 2**30)
    assert "gigabytes" in play.measured_cost(15, **given).body


def test_cost_is_what_the_arrays_say():
    cost = get("attention_cost").reference
    x = np.zeros((1, 6, 8))
    params = {f"{p}.{k}": np.zeros((8, 8) if k == "weight" else 8) for p in multi_head.PARTS
              for k in ("weight", "bias")}
    _, weights = multi_head.multi_head_attention(x, params, 2)
    assert cost(6, 8, 2)[2] == weights.size
    assert [cost(2 * 768, 768, h)[0] == cost(2 * 768, 768, h)[1] for h in (1, 12)] == [True, True]
    shown = play.cost_by_length(512, 12).facts
    assert shown["multiplications"][1] * 1e9 == cost(512, 768, 12)[1]
    assert shown["memory"][1] * 1e6 == 4 * cost(512, 768, 12)[2]


def test_fit_finds_the_power():
    lengths = np.array([100, 200, 400, 900])
    power, factor = play.fit_exponent(lengths, 3e-6 * lengths**1.7)
    assert (power, factor) == (pytest.approx(1.7), pytest.approx(3e-6))


def test_running_blocks_end_at_the_plain_mean_and_forget_most_at_the_fourth():
    facts = [play.running_blocks(step).facts for step in range(7)]
    assert facts[-1]["mean"] == pytest.approx(facts[-1]["plain"], abs=1e-12)
    assert abs(facts[1]["mean"] - facts[1]["plain"]) > 0.1
    fades = [one["fade"] for one in facts]
    assert int(np.argmin(fades)) == 4 and fades[4] == pytest.approx(1 / 20, abs=0.001)
    for step in range(1, 7):  # not a guess: the exact mean of what was seen
        seen = slice(0, 2 * step)
        exact = attention.softmax(play.ROW[seen]) @ play.CARRIED[seen]
        assert facts[step]["mean"] == pytest.approx(exact, abs=1e-12)


def test_reference_of_cross_attention_holds_self_attention():
    rng = np.random.default_rng(0)
    x, *matrices = (rng.normal(size=s) for s in ((4, 6), (6, 3), (6, 3), (6, 2)))
    one = get("self_attention").reference(x, *matrices)
    other = get("cross_attention").reference(x, x, *matrices)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_popular_reshape_is_named_with_the_values_of_the_course():
    """arange(8) as (1, 2, 4), two heads: head 0 is [[0, 1], [4, 5]]."""
    report = course.check("split_heads", lambda x, num_heads: x.reshape(
        x.shape[0], num_heads, x.shape[1], -1))
    assert (report.status, report.mistake) == ("wrong", "reshape_alone")
    assert "transposed" in report.message or "swap length and heads" in report.message
    x = np.arange(8.0).reshape(1, 2, 4)
    assert attention.split_heads(x, 2)[0, 0].tolist() == [[0, 1], [4, 5]]


def test_full_width_scale_is_named():
    def scaled_by_model(x, params, num_heads, mask=None):
        def project(part, vectors):
            return vectors @ params[part + ".weight"] + params[part + ".bias"]

        q, k, v = (attention.split_heads(project(p, x), num_heads)
                   for p in ("query", "key", "value"))
        q = q / num_heads**0.5  # sqrt(d) = sqrt(heads) * sqrt(width)
        output, weights = attention.scaled_dot_product_attention(q, k, v, mask)
        return project("output", attention.merge_heads(output)), weights

    report = course.check("multi_head_attention", scaled_by_model)
    assert (report.status, report.mistake) == ("wrong", "by_model")


def _in_one_table(query, key, value, mask=None, block=64):
    return attention.scaled_dot_product_attention(query, key, value, mask)[0]


def _in_one_table_by_einsum(query, key, value, mask=None, block=64):
    scores = np.einsum("...nd,...md->...nm", query, key) / query.shape[-1] ** 0.5
    weights = attention.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.einsum("...nm,...mv->...nv", weights, value)


def _table_joined_from_blocks(query, key, value, mask=None, block=64):
    parts = [query @ np.swapaxes(key[..., i:i + block, :], -1, -2)
             for i in range(0, key.shape[-2], block)]
    scores = np.concatenate(parts, axis=-1) / query.shape[-1] ** 0.5
    return attention.softmax(scores if mask is None else np.where(mask, scores, -np.inf)) @ value


@pytest.mark.parametrize(("function", "mistake"), [
    (_in_one_table, "whole_table"), (_in_one_table_by_einsum, "whole_table"),
    (_table_joined_from_blocks, "collected")])
def test_attention_with_a_whole_table_is_not_attention_in_blocks(function, mistake):
    report = course.check("blockwise_attention", function)
    assert (report.status, report.mistake) == ("wrong", mistake)
    assert "(6, 41)" in report.message and "absorb_block" in report.message


def test_attention_in_blocks_may_pad_the_keys_or_go_key_by_key():
    def padded(query, key, value, mask=None, block=64):
        extra = -key.shape[-2] % block
        more = [np.concatenate([a, np.zeros((*a.shape[:-2], extra, a.shape[-1]), a.dtype)], axis=-2)
                for a in (key, value)]
        seen = np.ones((*query.shape[:-1], key.shape[-2]), dtype=bool) if mask is None else mask
        seen = np.concatenate([seen, np.zeros((*seen.shape[:-1], extra), dtype=bool)], axis=-1)
        return multi_head.blockwise_attention(query, *more, seen, block)

    def key_by_key(query, key, value, mask=None, block=64):
        return multi_head.blockwise_attention(query, key, value, mask, 1)

    for function in (padded, key_by_key):
        assert course.check("blockwise_attention", function).status == "passed"
