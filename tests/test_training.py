import math

import numpy as np
import pytest
from gradients import assert_gradient

from solutions.attention import padding_mask
from solutions.encoder import Encoder, EncoderConfig, init_params, linear, linear_backward
from solutions.training import (
    AdamW,
    History,
    SideBySide,
    adamw_step,
    batches,
    binary_cross_entropy,
    clip_by_global_norm,
    cross_entropy,
    decays,
    fit,
    mean_loss,
    warmup_linear,
)


def normal(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# --- Cross-entropy --------------------------------------------------------------------------------


def test_ignored_labels_leave_the_mean():
    logits = np.array([[2.0, 0], [0, 0], [1, 1]])
    loss, grad = cross_entropy(logits, np.array([0, -100, 1]))
    assert loss == pytest.approx(0.410038, abs=1e-6)
    np.testing.assert_allclose(grad, [[-0.059601, 0.059601], [0, 0], [0.25, -0.25]], atol=1e-6)
    assert isinstance(loss, float)


def test_all_ignored_is_no_loss():
    loss, grad = cross_entropy(normal(2, 3), np.array([-100, -100]))
    assert loss == 0
    np.testing.assert_array_equal(grad, np.zeros((2, 3)))


def test_one_softmax_not_two():
    loss, _ = cross_entropy(np.array([[4.0, 0.0]]), np.array([0]))
    assert loss == pytest.approx(0.018150, abs=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_large_and_masked_logits():
    logits = np.array([[1000.0, 0, -np.inf], [-1000.0, -1001.0, -np.inf]])
    loss, grad = cross_entropy(logits, np.array([0, 0]))
    assert loss == pytest.approx(math.log(1 + math.exp(-1)) / 2)
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 2, 2)])
def test_cross_entropy_gradient(shape):
    logits = normal(*shape, 5)
    labels = np.random.default_rng(1).integers(5, size=shape)
    if shape:
        labels[0] = -100
        labels.flat[-1] = 2
    _, grad = cross_entropy(logits, labels)
    assert_gradient(grad, lambda: cross_entropy(logits, labels)[0], logits)


def test_another_number_may_mean_ignore():
    logits, labels = normal(3, 4), np.array([1, 0, 2])
    one = cross_entropy(logits, labels, ignore_index=0)
    other = cross_entropy(logits, np.array([1, -100, 2]))
    assert one[0] == other[0]
    np.testing.assert_array_equal(one[1], other[1])


def test_binary_cross_entropy_is_that_of_two_classes():
    logits, labels = normal(6), np.array([0, 1, 1, 0, 1, 0])
    loss, grad = binary_cross_entropy(logits, labels)
    two = np.stack([np.zeros(6), logits], axis=1)
    expected, expected_grad = cross_entropy(two, labels)
    assert loss == pytest.approx(expected)
    np.testing.assert_allclose(grad, expected_grad[:, 1])
    assert_gradient(grad, lambda: binary_cross_entropy(logits, labels)[0], logits)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_binary_cross_entropy_of_large_logits():
    loss, grad = binary_cross_entropy(np.array([1e4, -1e4]), np.array([0, 0]))
    assert loss == 5000
    np.testing.assert_array_equal(grad, [0.5, 0])


# --- The step -------------------------------------------------------------------------------------


def test_warmup_reaches_one_and_ends_at_zero():
    factors = [warmup_linear(step, 10, 50) for step in range(1, 51)]
    assert factors[0] == 0.1  # the first update is not lost
    assert factors[9] == 1.0
    assert factors[29] == 0.5
    assert factors[-1] == 0.0
    assert max(factors) == 1.0
    assert np.allclose(np.diff(factors[:10]), 0.1)
    assert np.allclose(np.diff(factors[9:]), -1 / 40)


def test_warmup_at_its_ends():
    assert warmup_linear(1, 0, 4) == 0.75
    assert warmup_linear(4, 4, 4) == 1.0
    assert warmup_linear(1, 1, 1) == 1.0


def test_clipping_scales_all_by_one_factor():
    grads = {"a": np.array([3.0]), "b": np.array([[0.0, 4.0]])}
    clipped, norm = clip_by_global_norm(grads, 1.0)
    assert norm == 5
    np.testing.assert_allclose(clipped["a"], [0.6])
    np.testing.assert_allclose(clipped["b"], [[0, 0.8]])
    np.testing.assert_array_equal(grads["a"], [3])
    same, norm = clip_by_global_norm(grads, 10.0)
    assert norm == 5
    np.testing.assert_array_equal(same["b"], grads["b"])


def test_decay_spares_layer_norm_and_biases():
    names = ["layers.0.attention.qkv.weight", "embeddings.token", "head.weight"]
    assert all(decays(name) for name in names)
    spared = [
        "embeddings.norm.gamma",
        "layers.0.attention.norm.beta",
        "layers.0.attention.qkv.bias",
    ]
    assert not any(decays(name) for name in [*spared, "head.bias", "bias"])


def test_adamw_by_hand():
    """The first step is lr in the direction of the gradient's sign, and decay by itself."""
    param, first, second = adamw_step(
        np.array([2.0, -1.0]), np.array([0.5, -3.0]), np.zeros(2), np.zeros(2), 1, 0.1, decay=0.01
    )
    np.testing.assert_allclose(param, [2 - 0.1 - 0.002, -1 + 0.1 + 0.001], atol=1e-6)
    np.testing.assert_allclose(first, [0.05, -0.3])
    np.testing.assert_allclose(second, [0.00025, 0.009])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [4, 2**15])
def test_adamw_is_its_readable_step(dtype, block, monkeypatch):
    monkeypatch.setattr(AdamW, "_BLOCK", block)
    params = {"a.weight": normal(3, 5, dtype=dtype), "a.bias": normal(5, seed=1, dtype=dtype)}
    expected = {name: array.copy() for name, array in params.items()}
    means = {name: (np.zeros_like(array),) * 2 for name, array in params.items()}
    optimizer = AdamW(params, weight_decay=0.1)
    for step in range(1, 6):
        grads = {name: normal(*a.shape, seed=step, dtype=dtype) for name, a in params.items()}
        optimizer.step(grads, lr=0.01 * step)
        for name, grad in grads.items():
            decay = 0.1 if decays(name) else 0.0
            expected[name], *means[name] = adamw_step(
                expected[name], grad, *means[name], step, 0.01 * step, decay
            )
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for name, array in params.items():
        np.testing.assert_allclose(array, expected[name], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(optimizer.first[name], means[name][0], atol=tolerance)
        np.testing.assert_allclose(optimizer.second[name], means[name][1], atol=tolerance)
        assert array.dtype == optimizer.first[name].dtype == dtype


def test_adamw_leaves_what_has_no_gradient_and_scales_by_name():
    params = {"a.weight": np.ones(3), "b.weight": np.ones(3), "c.weight": np.ones(3)}
    scale = {"a.weight": 1.0, "b.weight": 0.1}
    optimizer = AdamW(params, weight_decay=0.0, lr_scale=scale.get)
    optimizer.step({name: np.full(3, 2.0) for name in scale}, lr=0.01)
    np.testing.assert_allclose(params["a.weight"], 0.99, atol=1e-6)
    np.testing.assert_allclose(params["b.weight"], 0.999, atol=1e-6)
    np.testing.assert_array_equal(params["c.weight"], 1)


def test_adamw_goes_on_from_a_saved_state(tmp_path):
    start = {"a.weight": normal(4)}
    grads = [{"a.weight": normal(4, seed=seed)} for seed in range(6)]

    straight = {name: array.copy() for name, array in start.items()}
    optimizer = AdamW(straight)
    for grad in grads:
        optimizer.step(grad, 0.1)

    params = {name: array.copy() for name, array in start.items()}
    before = AdamW(params)
    for grad in grads[:3]:
        before.step(grad, 0.1)
    np.savez(tmp_path / "state.npz", **before.state())
    after = AdamW(params)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        after.restore(dict(state))
    for grad in grads[3:]:
        after.step(grad, 0.1)
    np.testing.assert_array_equal(params["a.weight"], straight["a.weight"])
    with pytest.raises(ValueError, match="expected a state of the same parameters"):
        AdamW({"other": np.ones(2)}).restore(before.state())


# --- The loop -------------------------------------------------------------------------------------


def test_batches_hold_everything_once_and_like_with_like():
    examples = [[0] * length for length in range(1, 101)]
    found = batches(examples, 8, np.random.default_rng(0))
    assert sorted(len(example) for batch in found for example in batch) == list(range(1, 101))
    assert all(len(batch) == 8 for batch in found if len(batch) != 4)
    padding = sum(max(map(len, b)) * len(b) - sum(map(len, b)) for b in found)
    assert padding < 500  # of 5050; at random about 4000
    order = [len(batch[0]) for batch in found]
    assert order != sorted(order)


def test_mean_loss_counts_labels_not_batches():
    assert mean_loss([4.0, 2.0], [1, 3]) == 2.5
    assert mean_loss([], []) == 0.0
    assert mean_loss([0.0], [0]) == 0.0
    history = History(losses=[9.0, 4.0, 2.0], weights=[5, 1, 3])
    assert history.mean_loss(last=2) == 2.5
    assert history.mean_loss() == mean_loss([9.0, 4.0, 2.0], [5, 1, 3])


class Tagger:
    """A label for each token, as small as a model for `fit` can be: is this token greater than 4?

    An example is a list of ids; the model pads, and ignores the padding.
    """

    def __init__(self, dropout=0.1, seed=0):
        config = EncoderConfig(9, 8, 1, 2, 16, 6, dropout=dropout, attention_dropout=dropout)
        self.encoder = Encoder(config, init_params(config, seed))
        self.params = {f"encoder.{n}": a for n, a in self.encoder.params.items()}
        self.params["head.weight"] = normal(8, 2, dtype=np.float32) * np.float32(0.02)
        self.params["head.bias"] = np.zeros(2, dtype=np.float32)

    def padded(self, batch):
        ids = np.zeros((len(batch), max(map(len, batch))), dtype=int)
        real = np.zeros(ids.shape, dtype=bool)
        for row, example in enumerate(batch):
            ids[row, : len(example)], real[row, : len(example)] = example, True
        return ids, real, np.where(real, ids > 4, -100)

    def loss_and_grads(self, batch, rng):
        ids, real, labels = self.padded(batch)
        hidden, cache = self.encoder.forward(ids, real, rng=rng, keep=True)
        weight, bias = self.params["head.weight"], self.params["head.bias"]
        loss, grad = cross_entropy(linear(hidden, weight, bias), labels)
        grad, head_weight, head_bias = linear_backward(grad, hidden, weight)
        grads = {f"encoder.{n}": g for n, g in self.encoder.backward(grad, cache).items()}
        return loss, {**grads, "head.weight": head_weight, "head.bias": head_bias}, int(real.sum())

    def evaluate(self, dev):
        ids, real, labels = self.padded(dev)
        logits = linear(
            self.encoder(ids, real), self.params["head.weight"], self.params["head.bias"]
        )
        return float((logits.argmax(axis=-1) == labels)[real].mean())


def sentences(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 9, size=rng.integers(2, 7)).tolist() for _ in range(count)]


class Watch:
    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args: self.calls.append((name, *args))


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_parts_side_by_side_give_the_gradients_of_the_whole_batch(parts, count):
    model, batch = Tagger(dropout=0.0), sentences(count)
    loss, grads, labels = model.loss_and_grads(batch, None)
    side = SideBySide(model, parts)
    part_loss, part_grads, part_labels = side.loss_and_grads(batch)
    assert part_labels == labels == sum(map(len, batch))
    assert part_loss == pytest.approx(loss, rel=1e-5)
    assert part_grads.keys() == grads.keys()
    for name, grad in grads.items():
        assert part_grads[name].dtype == grad.dtype
        np.testing.assert_allclose(part_grads[name], grad, atol=1e-6, err_msg=name)


def test_parts_side_by_side_draw_the_same_twice_and_are_trained():
    found = []
    for _ in range(2):
        model = Tagger(dropout=0.1)
        side = SideBySide(model)
        fit(side, sentences(64), sentences(40, seed=1), epochs=25, batch_size=8, lr=1e-2)
        found.append(model)
    assert found[0].evaluate(sentences(40, seed=1)) > 0.95
    for name, array in found[0].params.items():
        assert np.array_equal(array, found[1].params[name]), name
    with pytest.raises(ValueError, match=r"SideBySide: parts: expected .*, got 0"):
        SideBySide(model, 0)


def test_fit_learns_and_tells():
    model, watch = Tagger(), Watch()
    history = fit(
        model, sentences(64), sentences(40, seed=1), epochs=25, batch_size=8, lr=1e-2, watch=watch
    )
    assert history.best_score > 0.95
    assert history.stopped == ""
    assert history.steps == list(range(1, 201))
    assert history.dev_steps == list(range(8, 201, 8))
    assert history.mean_loss(last=8) < 0.3 < 0.6 < history.losses[0]
    assert sum(history.weights[:8]) == sum(map(len, sentences(64)))
    assert model.evaluate(sentences(40, seed=1)) == history.best_score == max(history.dev_scores)

    names = [call[0] for call in watch.calls]
    assert watch.calls[0] == ("start", 200)
    assert watch.calls[-1] == ("end", "")
    assert names.count("step") == 200
    assert names.count("dev") == 25
    rates = [call[3] for call in watch.calls if call[0] == "step"]
    assert rates[0] == pytest.approx(1e-2 / 20)
    assert rates[19] == max(rates) == pytest.approx(1e-2)
    assert rates[-1] == 0


def test_the_same_seed_gives_the_same_numbers():
    def run(seed):
        model = Tagger()
        history = fit(model, sentences(20), steps=12, batch_size=4, seed=seed)
        return history.losses, model.params

    (losses, params), (again, same), (other, _) = run(0), run(0), run(1)
    assert losses == again
    assert losses != other
    for name, array in params.items():
        np.testing.assert_array_equal(array, same[name])


def test_the_best_parameters_are_kept_not_the_last():
    model = Tagger()
    scores = iter([0.2, 0.9, 0.4, 0.9, 0.1])
    seen = []

    def score(model, dev):
        seen.append({name: array.copy() for name, array in model.params.items()})
        return next(scores)

    history = fit(model, sentences(20), sentences(4), steps=10, dev_every=2, score=score, lr=1e-2)
    assert history.dev_scores == [0.2, 0.9, 0.4, 0.9, 0.1]
    assert (history.best_step, history.best_score) == (4, 0.9)
    for name, array in model.params.items():
        np.testing.assert_array_equal(array, seen[1][name])
        assert array.base is None or name.startswith("encoder.")
    assert (seen[4]["head.weight"] != seen[1]["head.weight"]).any()
    assert model.encoder.params["embeddings.token"] is model.params["encoder.embeddings.token"]


def test_an_interrupt_ends_cleanly_and_keeps_the_best():
    model, watch = Tagger(), Watch()
    kept = {}

    def score(model, dev):
        kept.update({name: array.copy() for name, array in model.params.items()})
        return 1.0

    inner, count = model.loss_and_grads, 0

    def interrupted(batch, rng):
        nonlocal count
        count += 1
        if count == 6:
            raise KeyboardInterrupt
        return inner(batch, rng)

    model.loss_and_grads = interrupted
    history = fit(
        model, sentences(20), sentences(4), steps=50, dev_every=3, score=score, watch=watch
    )
    assert history.stopped == "interrupted at step 5 of 50"
    assert history.best_step == 3
    assert watch.calls[-1] == ("end", history.stopped)
    for name, array in model.params.items():
        np.testing.assert_array_equal(array, kept[name])


def test_a_loss_that_is_no_number_ends_the_run():
    model = Tagger()
    inner = model.loss_and_grads

    def diverging(batch, rng):
        _, grads, weight = inner(batch, rng)
        return float("nan"), grads, weight

    fit(model, sentences(8), sentences(4), steps=2, dev_every=1)
    before = {name: array.copy() for name, array in model.params.items()}
    model.loss_and_grads = diverging
    history = fit(model, sentences(8), steps=5)
    assert history.stopped == "diverged at step 1 of 5: the loss is nan"
    for name, array in model.params.items():
        np.testing.assert_array_equal(array, before[name])


class Point:
    """Two numbers with gradients of 0.1; `gradient` of step `at` is another."""

    def __init__(self, gradient, at):
        self.params, self.gradient, self.at = {"w": np.ones(2, np.float32)}, gradient, at
        self.calls = 0

    def loss_and_grads(self, batch, rng):
        self.calls += 1
        number = self.gradient if self.calls == self.at else 0.1
        return 1.0, {"w": np.array([number, 0.1], np.float32)}, 1


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("clip", [1.0, None])
@pytest.mark.parametrize(("gradient", "said"), [(np.nan, "nan"), (np.inf, "inf")])
@pytest.mark.parametrize("at", [1, 3, 6])
def test_gradients_that_are_no_numbers_end_the_run_before_the_step(clip, gradient, said, at):
    model, calls = Point(gradient, at), []

    def score(model, dev):
        calls.append(model.params["w"].copy())
        return len(calls)

    history = fit(model, [1] * 9, [1], steps=6, batch_size=1, clip=clip, score=score, dev_every=1)
    assert history.stopped == f"diverged at step {at} of 6: the norm of the gradients is {said}"
    assert len(calls) == len(history.dev_scores) == history.best_step == at - 1
    assert np.isfinite(model.params["w"]).all()
    np.testing.assert_array_equal(model.params["w"], calls[-1] if calls else [1, 1])


def test_without_clipping_the_gradients_are_what_they_were():
    found = []
    for clip in (None, 1e30):
        model = Point(3e15, 2)
        fit(model, [1] * 4, steps=4, batch_size=1, clip=clip)
        found.append(model.params["w"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("broken", [float("nan"), FloatingPointError("logits: no numbers")])
def test_a_score_that_is_no_number_ends_the_run_and_keeps_the_best(broken):
    model, kept = Point(0.1, 1), []

    def score(model, dev):
        kept.append(model.params["w"].copy())
        if len(kept) < 3:
            return -len(kept)
        if isinstance(broken, Exception):
            raise broken
        return broken

    history = fit(model, [1] * 9, [1], steps=6, batch_size=1, score=score, dev_every=1)
    said = "the score is nan" if isinstance(broken, float) else "logits: no numbers"
    assert history.stopped == f"diverged at step 3 of 6: {said}"
    assert (history.best_step, history.dev_scores) == (1, [-1, -2])
    np.testing.assert_array_equal(model.params["w"], kept[0])


def test_one_step_is_not_lost():
    model = Tagger()
    before = model.params["head.weight"].copy()
    fit(model, sentences(8), steps=1, warmup=0.0)
    assert (model.params["head.weight"] != before).all()


def test_loss_and_grads_of_a_whole_model():
    """Encoder and head together, through ignored labels and padding."""
    model = Tagger(dropout=0.0)
    for store in (model.encoder.params, model.params):
        for name, array in store.items():
            store[name] = array.astype(np.float64)
    model.encoder.params.update({n: model.params[f"encoder.{n}"] for n in model.encoder.params})
    batch = [[1, 5, 5], [8, 2], [3, 3, 3, 3]]
    _, grads, weight = model.loss_and_grads(batch, None)
    assert weight == 9
    assert padding_mask(model.padded(batch)[1]).sum() == 9
    for name in ("encoder.embeddings.token", "encoder.layers.0.attention.qkv.weight", "head.bias"):
        assert_gradient(
            grads[name], lambda: model.loss_and_grads(batch, None)[0], model.params[name], name=name
        )


# --- What comes in and goes out -------------------------------------------------------------------


def test_float32_stays_float32():
    logits = normal(4, 3, dtype=np.float32)
    assert cross_entropy(logits, np.array([0, 1, 2, -100]))[1].dtype == np.float32
    assert binary_cross_entropy(logits[:, 0], np.array([0, 1, 0, 1]))[1].dtype == np.float32
    assert clip_by_global_norm({"a": logits}, 0.1)[0]["a"].dtype == np.float32
    assert all(a.dtype == np.float32 for a in adamw_step(logits, logits, logits, logits**2, 1, 0.1))


def test_arguments_stay_as_they_were():
    logits, labels = normal(4, 3), np.array([0, 1, 2, -100])
    grads = {"a": normal(3)}
    before = logits.copy(), labels.copy(), grads["a"].copy()
    cross_entropy(logits, labels)
    binary_cross_entropy(logits[:, 0], labels % 2)
    clip_by_global_norm(grads, 0.1)
    adamw_step(logits, logits, logits, logits**2, 1, 0.1)
    AdamW({"a": np.ones(3)}).step(grads, 0.1)
    for array, copy in zip((logits, labels, grads["a"]), before, strict=True):
        np.testing.assert_array_equal(array, copy)


LOGITS = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cross_entropy(LOGITS, np.array([0, 3])), "expected 0 to 2, or -100"),
        (lambda: cross_entropy(LOGITS, np.array([0, -1])), "got -1"),
        (lambda: cross_entropy(LOGITS, np.array([0])), "expected shape (2,)"),
        (lambda: cross_entropy(LOGITS, np.array([0.0, 1.0])), "expected a NumPy array of integers"),
        (lambda: cross_entropy(LOGITS.astype(int), np.array([0, 1])), "got int64"),
        (lambda: binary_cross_entropy(LOGITS[0], np.array([0, 1, 2])), "expected 0 or 1"),
        (lambda: binary_cross_entropy(LOGITS, np.array([0, 1])), "expected 0 or 1"),
        (lambda: warmup_linear(0, 1, 2), "step: expected a whole number from 1 to 2"),
        (lambda: warmup_linear(3, 1, 2), "got 3"),
        (lambda: warmup_linear(1, 3, 2), "warmup: expected a whole number from 0 to 2"),
        (lambda: clip_by_global_norm({}, 0.0), "expected a number above 0"),
        (lambda: AdamW({"a": np.ones((2, 3)).T}), "expected a contiguous array"),
        (lambda: AdamW({"a": np.ones(2, dtype=int)}), "expected a NumPy array of floats"),
        (lambda: AdamW({"a": np.ones(2)}).step({"b": np.ones(2)}, 1.0), "got 'b'"),
        (lambda: AdamW({"a": np.ones(2)}).step({"a": np.ones(3)}, 1.0), "shape (2,)"),
        (lambda: AdamW({"a": np.ones(2)}).step({"a": np.ones(2)}, np.nan), "at least 0, got nan"),
        (lambda: AdamW({"a": np.ones(2)}).step({"a": np.ones(2)}, -1), "at least 0, got -1"),
        (lambda: AdamW({"a": np.ones(2)}).step({"a": np.ones(2)}, np.inf), "got inf"),
        (lambda: AdamW({"a": np.ones(2)}, betas=(0.9,)), "betas: expected two numbers"),
        (lambda: AdamW({"a": np.ones(2)}, betas=0.9), "betas: expected two numbers, got 0.9"),
        (lambda: fit(None, None, steps=1), "train: expected a list of examples, got None"),
        (lambda: fit(None, "abc", steps=1), "train: expected a list of examples, got 'abc'"),
        (lambda: fit(None, iter([1]), steps=1), "train: expected a list of examples, got a"),
        (lambda: fit(None, [1], 3, steps=1), "dev: expected a list of examples, got 3"),
        (lambda: fit(None, [1]), "epochs or steps, one of them"),
        (lambda: fit(None, [1], epochs=1, steps=1), "epochs or steps, one of them"),
        (lambda: fit(None, [], epochs=1), "at least one example, got none"),
        (lambda: fit(None, [1], [], epochs=1), "dev: expected at least one example"),
        (lambda: fit(None, [1], epochs=0), "epochs: expected a whole number of at least 1, got 0"),
        (lambda: fit(None, [1], steps=2.5), "steps: expected a whole number"),
        (lambda: fit(None, [1], steps=1, batch_size=0), "batch_size"),
        (lambda: fit(None, [1], steps=1, lr=0.0), "lr: expected a number above 0"),
        (lambda: fit(None, [1], steps=1, warmup=10), "warmup: expected a number from 0"),
    ],
)
def test_wrong_input_is_said(call, words):
    with pytest.raises(ValueError, match="expected") as caught:
        call()
    assert words in str(caught.value)
