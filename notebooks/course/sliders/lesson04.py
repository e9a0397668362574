"""Lesson 04's sliders."""

import dataclasses
from functools import cache

import numpy as np

from course.drawing import PALETTE, SERIES, bars, curves, heatmap, side_by_side, token_strip
from course.explore import Choice, Range, Toggle, slider
from course.texts import load_tokenizer
from course.weights import sentiment
from solutions.encoder import (
    Encoder,
    EncoderConfig,
    dropout,
    erf,
    gelu,
    init_params,
    layer_norm,
    parameter_table,
)
from solutions.layer_order import ORDERS, by_depth, forward, likeness, random_stack

# --- Who notices a changed word -------------------------------------------------------------------

WORDS = "John works at Google in California".split()
OTHERS = "Washington worked near Apple from London".split()
LAYERS = 6
GOOGLE = 1 + WORDS.index("Google")  # [CLS] stands in front


def tokens_with(word=None):
    """The sentence's tokens; with word `word` replaced, if it is a number."""
    words = [OTHERS[i] if i == word else w for i, w in enumerate(WORDS)]
    return ["[CLS]", *words, "[SEP]"]


@cache
def random_encoder(causal=False, layers=LAYERS):
    """An encoder of width 32 with random weights, the same for both directions.

    BERT draws its weights with a deviation of 0.02, at a width of 768. As strong at 32 would be
    0.02 * sqrt(768 / 32), about 0.1. Here it is 0.24, so that effects are seen without training.
    """
    config = EncoderConfig(len(load_tokenizer()), 32, layers, 4, 128, 32, causal=causal)
    params = init_params(dataclasses.replace(config, causal=False), 0, np.float64)
    return Encoder(config, {name: array * 12 if array.ndim == 2 else array
                            for name, array in params.items()})


def states_of(encoder, text):
    """(layers + 1, tokens, d): the hidden states of one text, embeddings first."""
    ids = np.array([load_tokenizer().encode(text).input_ids])
    return np.concatenate(encoder.layers_and_attention(ids)[0])


@cache
def moved(word, causal=False):
    """(layers + 1, tokens): how far each token moves when word number `word` is replaced.

    The root mean square of the difference of its two vectors; two unrelated vectors are about 1.41
    apart, because LayerNorm gives each of them variance 1.
    """
    encoder = random_encoder(causal)
    before, after = (states_of(encoder, " ".join(tokens_with(w)[1:-1])) for w in (None, word))
    return np.sqrt(np.square(after - before).mean(axis=-1))


def _said(value):
    return "0" if value == 0 else f"{value:.2f}"


@slider(word=Range(0, len(WORDS) - 1, 1, start=0, label="word to change",
                   words=lambda v: f"{WORDS[v]} becomes {OTHERS[v]}"),
        depth=Range(0, LAYERS, 1, start=2, label="layers passed",
                    words=lambda v: "the embeddings" if v == 0 else f"after layer {v}"),
        lesson="04")
def who_notices(word, depth):
    """How far every token's vector moves when one word changes, bidirectional and causal."""
    strips, facts, said = [], {}, []
    names = tokens_with()
    names[word + 1] = f"{WORDS[word]}→{OTHERS[word]}"
    for direction in ("bidirectional", "causal"):
        far = moved(word, direction == "causal")[depth]
        strips.append(token_strip(names, far, color=PALETTE[direction], vmax=1.5,
                                  under=[_said(v) for v in far],
                                  title=f"{direction}: Google moves by {_said(far[GOOGLE])}"))
        facts[direction] = far
        said.append(f"{direction}: " + ", ".join(f"{n} {_said(v)}"
                                                 for n, v in zip(names, far, strict=True)))
    return side_by_side(*strips, down=True, **facts, alt=(
        f"How far each vector moves when {WORDS[word]} becomes {OTHERS[word]}, after {depth} "
        f"layers. {'; '.join(said)}."))


@slider(depth=Range(0, LAYERS, 1, start=1, label="layers passed",
                    words=lambda v: "the embeddings" if v == 0 else f"after layer {v}"),
        lesson="04")
def what_reaches_google(depth):
    """How far the vector of Google moves for each word that may change, in both directions."""
    pictures, facts = [], {}
    for direction in ("bidirectional", "causal"):
        far = np.array([moved(w, direction == "causal")[depth, GOOGLE] for w in range(len(WORDS))])
        names = [f"{a} → {b}" for a, b in zip(WORDS, OTHERS, strict=True)]
        pictures.append(bars(far, names, vmax=1.5, width=150, fmt="{:.3g}",
                             color=PALETTE[direction],
                             title=direction, alt=f"{direction}, after {depth} layers, Google "
                             "moves by " + ", ".join(
                                 f"{_said(v)} for {n}" for n, v in zip(names, far, strict=True))))
        facts[direction] = far
    return side_by_side(*pictures, **facts)


# --- The feed-forward network ---------------------------------------------------------------------

GRID = np.linspace(-4, 4, 161)


@slider(x=Range(-4.0, 4.0, 0.1, start=1.0, label="x"), lesson="04")
def gelu_curve(x):
    """GELU beside ReLU, the probability it multiplies by, and what the tanh form gets wrong."""
    at = np.array([x])
    exact = float(gelu(at)[0])
    below = float(0.5 * (1 + erf(at / 2**0.5))[0])
    left = curves({"GELU": gelu(GRID), "ReLU": np.maximum(GRID, 0)}, x=GRID, size=(330, 200),
                  styles={"ReLU": "dashed"}, points=[(x, exact, "")], x_title="x",
                  y_limits=(-0.5, 4.2),
                  alt=f"GELU and ReLU from -4 to 4; at x = {x:.1f} GELU is {exact:.4f}, which is x "
                      f"times the probability {below:.4f}.",
                  title=f"GELU: {x:.1f} · {below:.4f} = {exact:.4f}".replace("-", "−"))
    form = 0.5 * GRID * (1 + np.tanh((2 / np.pi) ** 0.5 * (GRID + 0.044715 * GRID**3)))
    off = form - gelu(GRID)
    here = float(np.interp(x, GRID, off))
    right = curves({"tanh form minus GELU": off}, x=GRID, size=(250, 200), x_title="x",
                   colors={"tanh form minus GELU": SERIES[1]},
                   title=f"Error of the tanh form: {here:.1e}".replace("-", "−"),
                   alt=f"The tanh form minus GELU, at most {abs(off).max():.1e}; at x = {x:.1f} it "
                       f"is {here:.1e}.", points=[(x, here, "")])
    return side_by_side(left, right, exact=exact, below=below)


# --- LayerNorm ------------------------------------------------------------------------------------

FOUR = np.array([1.0, 2.0, 3.0, 4.0])


@slider(shift=Range(-10, 10, 1, start=0, label="added to all four"),
        power=Range(-6, 3, 1, start=0, label="multiplied by",
                    words=lambda v: f"all four times {10.0**v:g}"),
        eps=Choice({"1e-12 (BERT)": 1e-12, "1e-5 (many libraries)": 1e-5}, label="eps"),
        lesson="04")
def normalize_four(shift, power, eps):
    """Four numbers before and after LayerNorm, whatever is added to them or multiplied."""
    x = FOUR * 10.0**power + shift
    after = layer_norm(x, np.ones(4), np.zeros(4), eps)
    names = [f"feature {i}" for i in range(4)]
    reach = max(abs(x).max(), 1e-9)
    left = bars(x, names, vmin=min(-reach, 0.0) if x.min() < 0 else 0.0, vmax=reach, fmt="{:.4g}",
                width=200, title="before", color=PALETTE["reference"])
    right = bars(after, names, vmin=-1.5, vmax=1.5, fmt="{:.4f}", width=200, title="after")
    return side_by_side(left, right, before=x, after=after)


# --- A stack, with and without its parts ----------------------------------------------------------


@cache
def _word_states(residual, scale=0.55):
    """(layers + 1, 6, 32): the six words through twelve random layers."""
    x = np.random.default_rng(0).normal(size=(1, len(WORDS), 32))
    x = layer_norm(x, np.ones(32), np.zeros(32))
    return np.concatenate(forward(x, random_stack(12, seed=1, scale=scale), 4, "post", residual)[0])


@slider(layers=Range(0, 12, 1, start=1, label="layers"),
        residual=Toggle(start=True, label="residuals"), lesson="04")
def words_alike(layers, residual):
    """The cosine between the vectors of any two words, after some layers."""
    x = _word_states(residual)[layers]
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return heatmap(unit @ unit.T, WORDS, WORDS,
                   title=f"Cosine of two words: {likeness(x[None]):.2f} on average",
                   alt=f"Cosines between six words after {layers} layers, residuals "
                       f"{'on' if residual else 'off'}: {likeness(x[None]):.2f} on average between "
                       "different words.")


ORDER_NAMES = {"post": "post-LN", "pre": "pre-LN", "none": "no LayerNorm"}
ORDER_COLORS = dict(zip(ORDER_NAMES.values(), (SERIES[0], SERIES[2], SERIES[1])))


@cache
def _measured(layers, order, scale):
    return by_depth(layers, order, scale=scale)


@slider(layers=Range(1, 24, 1, start=3, label="layers"),
        scale=Range(0.25, 1.5, 0.25, start=1.0, label="size of the weights",
                    words=lambda v: f"{v:g} / √inputs"), lesson="04")
def orders_by_depth(layers, scale):
    """Signal and gradient at every depth of a random stack, LayerNorm in three places."""
    found = {ORDER_NAMES[order]: _measured(layers, order, scale) for order in ORDERS}
    pictures = [
        curves({name: one[what] for name, one in found.items()}, y_log=True, size=(300, 210),
               colors=ORDER_COLORS, styles={"no LayerNorm": "dashed"}, x_title="layer",
               y_title="root mean square", title=title)
        for what, title in (("signal", "Signal, going up"), ("gradient", "Gradient, coming down"))
    ]
    return side_by_side(*pictures, **{
        f"{what} {name}": one[what] for name, one in found.items() for what in
        ("signal", "gradient")})


DRAWS = 10_000  # so many that their mean shows 1.00 even at rate 0.9, where one draw is rough


@slider(rate=Range(0.0, 0.9, 0.1, start=0.1, label="rate"),
        draw=Range(0, 9, 1, start=0, label="draw"), lesson="04")
def drop_some(rate, draw):
    """Twenty-four numbers of 1 under dropout: which go, how large the others get, the mean."""
    x = np.ones(24)
    after = dropout(x, rate, np.random.default_rng(draw))[0]
    lost = int((after == 0).sum())
    many = dropout(np.ones((DRAWS, 24)), rate, np.random.default_rng(99))[0].mean(axis=-1)
    strip = token_strip(["1"] * 24, after, vmax=10.0, under=[f"{v:.3g}" for v in after], width=560,
                        alt=f"Of 24 numbers of 1, dropout at rate {rate:.1f} sets {lost} to 0 and "
                            f"the others to {1 / (1 - rate):.3g}.",
                        title=f"{lost} of 24 dropped, the others times {1 / (1 - rate):.3g}")
    means = bars([1.0, after.mean(), many.mean()],
                 ["before", "this draw", f"over {DRAWS:,} draws"], vmax=2.0, width=200,
                 title="mean of the 24")
    return side_by_side(strip, means, down=True, after=after, mean=many.mean())


# --- How large it is ------------------------------------------------------------------------------


@slider(width=Range(64, 1536, 64, start=768, label="d_model"),
        layers=Range(1, 48, 1, start=12, label="layers"), lesson="04")
def where_parameters_are(width, layers):
    """Parameters by part for BERT's vocabulary, d_ff four times the width."""
    config = EncoderConfig(30522, width, layers, 1, 4 * width, 512)
    table = dict(parameter_table(config))
    total = sum(table.values())
    share = np.array(list(table.values())) / total
    return bars(100 * share, list(table), vmax=100, fmt="{:.1f} %",
                title=f"{total / 1e6:,.1f} million parameters", shares=share)


# --- One word through the layers ------------------------------------------------------------------


READERS = {"trained on reviews": True, "random": False}
TEXTS = {"very → not": ("The soup was very good.", "The soup was not good."),
         "good → bad": ("The soup was good.", "The soup was bad."),
         "soup → waiter": ("The soup was good.", "The waiter was good."),
         "was → is": ("The soup was good.", "The soup is good.")}


def reader(trained=True):
    """The encoder that lesson 06 trains to tell good reviews from bad ones, or a random one."""
    return sentiment().encoder if trained else random_encoder(layers=2)


@slider(trained=Choice(READERS, start=False, label="encoder"),
        change=Choice(TEXTS, label="what changes"), lesson="04")
def through_the_layers(trained, change):
    """How far apart each token's vectors are in two texts that differ in one word, by layer."""
    one, other = (states_of(reader(trained), text) for text in change)
    tokens, changed = (load_tokenizer().encode(text).tokens for text in change)
    names = [a if a == b else f"{a}/{b}" for a, b in zip(tokens, changed, strict=True)]
    apart = np.sqrt(np.square(one - other).mean(axis=-1))  # (layers + 1, tokens)
    rows = ["embeddings", *(f"layer {i}" for i in range(1, len(apart)))]
    kind = next(text for text, one in READERS.items() if one == trained)
    last = ", ".join(f"{n} {_said(v)}" for n, v in zip(names, apart[-1], strict=True))
    return heatmap(apart, rows, names, vmax=2.0, cell=64, title=f"{kind}: {' / '.join(change)}",
                   alt=f"How far apart each token's two vectors are in “{change[0]}” and "
                       f"“{change[1]}”, by layer; encoder: {kind}. At the last layer: {last}.")
