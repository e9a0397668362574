"""What is taken over from an earlier `fit` is what `fit` would have done, and nothing else."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trained
from course.live import Live
from course.texts import load_reviews, load_tokenizer

from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.text_classification import TextClassifier
from solutions.training import fit

LABELS = ["negative", "neutral", "positive"]
OPTIONS = {"steps": 6, "batch_size": 4, "dev_every": 2, "lr": 1e-2}


class Counted:
    """A model of the course, and how often `fit` asked it for gradients."""

    def __init__(self, seed=0):
        tokenizer = load_tokenizer()
        config = EncoderConfig(vocab_size=len(tokenizer), d_model=8, num_layers=1, num_heads=2,
                               d_ff=8, max_length=64)  # fmt: skip
        encoder = Encoder(config, init_params(config, seed))
        self.model = TextClassifier(encoder, tokenizer, LABELS, pooling="mean", seed=seed)
        self.parts = [
            self.model.prepare([r.text for r in some], [r.label for r in some])
            for some in (load_reviews(split="train")[:12], load_reviews(split="dev")[:6])
        ]

    def run(self, fit, *, watch=None, **options):
        """Run a `fit`; (its history, how many steps were computed)."""
        steps, work = [], type(self.model).loss_and_grads

        def counting(model, batch, rng):
            steps.append(1)
            return work(model, batch, rng)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(self.model), "loss_and_grads", counting)
            return fit(self.model, *self.parts, watch=watch, **{**OPTIONS, **options}), len(steps)


class Looking:
    """A watcher that keeps all that it is told, and looks at the model at the dev split."""

    def __init__(self, model):
        self.model, self.seen = model, []

    def start(self, total):
        self.seen.append(("start", total, self.bias()))

    def step(self, step, loss, rate):
        self.seen.append(("step", step, loss, rate))

    def dev(self, step, score):
        self.seen.append(("dev", step, score, self.bias()))

    def end(self, reason):
        self.seen.append(("end", reason, self.bias()))

    def bias(self):
        return self.model.params["head.bias"].tolist()


def both(folder):
    """`fit` that keeps, and `fit` that takes over what was kept."""
    return trained.keeping(fit, folder, again=False), trained.keeping(fit, folder, again=True)


def equal(one, other):
    return one.params.keys() == other.params.keys() and all(
        np.array_equal(one.params[name], other.params[name]) for name in one.params
    )


def test_what_was_kept_is_what_fit_does(tmp_path):
    plain, first, second = Counted(), Counted(), Counted()
    keeps, takes = both(tmp_path)
    history, _ = plain.run(fit, watch=(watch := Looking(plain.model)))
    kept, steps = first.run(keeps, watch=(one := Looking(first.model)))
    assert steps == 6
    again, steps = second.run(takes, watch=(two := Looking(second.model)))
    assert steps == 0
    assert dataclasses.asdict(again) == dataclasses.asdict(kept) == dataclasses.asdict(history)
    assert equal(first.model, plain.model)
    assert equal(second.model, plain.model)
    assert not equal(second.model, Counted().model)
    assert two.seen == one.seen == watch.seen


def test_the_curve_is_drawn_in_full(tmp_path):
    keeps, takes = both(tmp_path)
    curves = [Live("a run"), Live("a run")]
    for how, curve, computed in zip((keeps, takes), curves, (6, 0), strict=True):
        _, steps = Counted().run(how, watch=curve)
        assert steps == computed
    assert curves[0].alt == curves[1].alt
    assert (curves[0].losses, curves[0].scores) == (curves[1].losses, curves[1].scores)


def test_it_is_trained_again_while_nothing_is_to_be_taken(tmp_path):
    keeps, _ = both(tmp_path)
    assert [Counted().run(keeps)[1] for _ in range(2)] == [6, 6]


def one_faster(name):
    return 2 if name == "head.bias" else 1


def two_faster(name):
    return 3 if name == "head.bias" else 1


def share_of(labels):
    def score(model, dev):
        return len(labels)

    return score


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"lr": 2e-2},
        {"steps": 5},
        {"lr_scale": two_faster},
        {"lr_scale": None},
        {"score": share_of([1])},
    ],
)
def test_another_option_is_trained(tmp_path, options):
    keeps, takes = both(tmp_path)
    given = {"lr_scale": one_faster, "score": share_of([1, 2])}
    Counted().run(keeps, **given)
    assert Counted().run(takes, **given)[1] == 0
    assert Counted().run(takes, **{**given, **options})[1] == options.get("steps", 6)


def test_another_model_or_example_is_trained(tmp_path):
    keeps, takes = both(tmp_path)
    Counted().run(keeps)
    assert Counted(seed=1).run(takes)[1] == 6
    moved = Counted()
    moved.model.params["head.bias"][0] += 1e-6
    assert moved.run(takes)[1] == 6
    pooled = Counted()
    pooled.model.pooling = "cls"
    assert pooled.run(takes)[1] == 6
    for part in (0, 1):
        shorter = Counted()
        del shorter.parts[part][-1]
        assert shorter.run(takes)[1] == 6
    assert Counted().run(takes, watch=Live())[1] == 6


class Own(TextClassifier):
    """A learner's own model: it may call what a cell defines."""


def test_a_model_that_is_not_the_courses_is_always_trained(tmp_path):
    for _ in range(2):
        own = Counted()
        own.model.__class__ = Own
        assert own.run(both(tmp_path)[1])[1] == 6
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_is_not_kept(tmp_path):
    class Stops(Looking):
        def step(self, step, loss, rate):
            if step == 3:
                raise KeyboardInterrupt

    one = Counted()
    history, _ = one.run(both(tmp_path)[0], watch=Stops(one.model))
    assert "interrupted" in history.stopped
    assert list(tmp_path.iterdir()) == []


IN_A_KERNEL = """
import json, sys
sys.path.insert(0, {tests!r})
from test_trained import Counted
from solutions import training

def faster(name):
    return 2 if name in {{"head.bias", "head.weight"}} else 1

one = Counted()
history, steps = one.run(training.fit, lr_scale=faster)
print(json.dumps([steps, history.losses, float(sum(a.sum() for a in one.model.params.values()))]))
"""


def test_one_kernel_takes_over_what_another_trained(tmp_path):
    """IPython runs the profile; sets have another order in each process."""
    said = []
    for seed, again in (("1", False), ("2", True)):
        profile = trained.profile(tmp_path / seed, again)
        env = {**os.environ, "IPYTHONDIR": str(profile), "PYTHONHASHSEED": seed,
               trained.FOLDER: str(tmp_path / "kept")}  # fmt: skip
        code = IN_A_KERNEL.format(tests=str(Path(__file__).parent))
        done = subprocess.run(
            [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code],
            capture_output=True, text=True, env=env, timeout=300, check=True,
        )  # fmt: skip
        said.append(json.loads(done.stdout.strip().splitlines()[-1]))
    (first, *one), (second, *other) = said
    assert (first, second) == (6, 0)
    assert one == other
