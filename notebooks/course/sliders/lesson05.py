"""Lesson 05's sliders."""

from functools import cache

import numpy as np

from course.drawing import (
    INK,
    LINE,
    PALETTE,
    SERIES,
    arrow,
    bars,
    card,
    curves,
    label,
    mix,
    pixels,
    rect,
    side_by_side,
    token_strip,
)
from course.explore import Choice, Range, Text, Toggle, slider
from course.texts import load_reviews, load_tokenizer
from course.weights.lesson05 import masked_words, random_masked_words
from solutions.attention import softmax
from solutions.encoder import layer_norm, layer_norm_backward
from solutions.pretraining import mask_tokens
from solutions.training import clip_by_global_norm, cross_entropy, warmup_linear

# --- Fill in ------------------------------------------------------------------------------------


@slider(text=Text("The soup was [MASK].", label="a sentence with [MASK]", max_length=120),
        lesson="05", given=lambda: {"before": random_masked_words(), "after": masked_words()})
def fill_in(text, before, after):
    """What two models put in the place of [MASK]: one with random weights, one that has read."""
    if "[MASK]" not in text:
        text = f"{text.strip()} [MASK]".strip()
    try:
        guesses = before.fill(text, 6)[0], after.fill(text, 6)[0]
    except ValueError:
        return card(420, 30, [label(14, 20, "Too long: [MASK] lies beyond the last place.")],
                    "The sentence is too long for the model.")
    top = max(guess[0][1] for guess in guesses)
    return side_by_side(*(
        bars([p for _, p in guess], [token for token, _ in guess], vmax=top, width=200, title=name,
             color=color, fmt="{:.3f}")
        for guess, name, color in zip(guesses, ("random weights", "after reading"),
                                      (PALETTE["reference"], PALETTE["mine"]), strict=True)))


# --- The loss -----------------------------------------------------------------------------------

GAP_WORDS = ("cold", "good", "blue", "ran")


@slider(right=Range(-6.0, 8.0, 0.5, start=1.0, label="logit of the right word, cold"),
        other=Range(-2.0, 6.0, 0.5, start=2.0, label="logit of a wrong word, good"), lesson="05")
def loss_picture(right, other):
    """Loss and gradient of one row of four logits, the first of them right."""
    logits = np.array([[right, other, 0.0, -1.0]])
    loss, grad = cross_entropy(logits, np.array([0]))
    grid = np.linspace(-6, 8, 57)
    line = [cross_entropy(np.array([[z, other, 0.0, -1.0]]), np.array([0]))[0] for z in grid]
    probability = softmax(logits)[0]
    return side_by_side(
        curves({"loss": line}, x=grid, size=(250, 150), y_limits=(0, 8.5),
               title=f"loss = {loss:.3f}", x_title="logit of cold",
               alt=f"Loss {loss:.3f} at a logit of {right:g} for cold; it falls toward 0 to the "
                   "right and grows in a straight line to the left.",
               points=[(right, loss, f"{loss:.2f}")]),
        bars(probability, GAP_WORDS, vmax=1, width=130, title="probabilities"),
        bars(grad[0], GAP_WORDS, vmin=-1, vmax=1, width=150, title="gradient", fmt="{:.2f}",
             color=[PALETTE["mine"] if g < 0 else PALETTE["key"] for g in grad[0]]),
        probabilities=probability, gradient=grad)


# --- A loss surface -----------------------------------------------------------------------------

PERSONS = {"i", "my", "me", "we", "our", "us", "you", "your"}
SIDE, WIDE, HIGH = 300, (-0.3, 0.3), (-0.4, 1.2)


@cache
def opinion_data():
    """600 reviews as two numbers each, and whether they judge (1) or only report (0)."""
    tokenizer = load_tokenizer()
    reviews = load_reviews(split="train")
    tokens = [tokenizer.encode(review.text).tokens[1:-1] for review in reviews]
    x = np.array([[len(t), sum(token in PERSONS for token in t)] for t in tokens], dtype=float)
    return x, np.array([float(review.label != "neutral") for review in reviews])


def opinion_loss(weight):
    """Loss and gradient of two weights on the 600 reviews: a real loss of two numbers."""
    x, y = opinion_data()
    score = x @ weight
    probability = 1 / (1 + np.exp(-np.clip(score, -500, 500)))
    return float(np.mean(np.logaddexp(0, score) - y * score)), x.T @ (probability - y) / len(y)


def walk(optimizer, rate, clip=False, warmup=0, steps=40):
    """Where `steps` steps lead from (0.2, -0.2): the places and the losses."""
    weight, first, second = np.array([0.2, -0.2]), np.zeros(2), np.zeros(2)
    places, losses = [weight], [opinion_loss(weight)[0]]
    for step in range(1, steps + 1):
        grad = opinion_loss(weight)[1]
        if clip:
            grad = clip_by_global_norm({"w": grad}, 1.0)[0]["w"]
        first, second = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        fair = first / (1 - 0.9**step)
        move = {"plain gradient": grad, "momentum": fair,
                "AdamW": fair / (np.sqrt(second / (1 - 0.999**step)) + 1e-6)}[optimizer]
        factor = min(step / warmup, 1.0) if warmup else 1.0
        weight = weight - rate * factor * move
        places.append(weight)
        losses.append(opinion_loss(weight)[0])
    return np.array(places), np.array(losses)


@cache
def _ground():
    """The surface in steps of shade, drawn once."""
    x, y = opinion_data()
    cells, shades = 60, 12
    across, up = np.linspace(*WIDE, cells + 1), np.linspace(*HIGH, cells + 1)
    grid = np.stack(np.meshgrid((across[1:] + across[:-1]) / 2, (up[1:] + up[:-1]) / 2), axis=-1)
    score = grid @ x.T
    loss = np.mean(np.logaddexp(0, score) - y * score, axis=-1)
    shade = np.log(loss - 0.60)
    shade = 1 - (shade - shade.min()) / (shade.max() - shade.min())
    steps = np.round(shade[::-1] * shades).astype(int)  # the first row of an image is its top
    fills = [mix(PALETTE["weight"], 0.75 * step / shades) for step in range(shades + 1)]
    return pixels([[fills[step] for step in row] for row in steps], 0, 0, SIDE, SIDE)


def _on_ground(place):
    return (SIDE * (place[0] - WIDE[0]) / (WIDE[1] - WIDE[0]),
            SIDE - SIDE * (place[1] - HIGH[0]) / (HIGH[1] - HIGH[0]))


@slider(rate=Range(-4.0, 1.0, 0.25, start=-2.0, label="learning rate",
                   words=lambda v: f"{10**v:.2g}"),
        optimizer=Choice(["plain gradient", "momentum", "AdamW"], label="step"),
        clip=Toggle(False, label="clip the gradient to norm 1"),
        warmup=Toggle(False, label="warm up over 10 steps"), lesson="05")
def surface_picture(rate, optimizer, clip, warmup):
    """Forty steps on a real loss surface of two weights, and the loss of each step."""
    places, losses = walk(optimizer, 10**rate, clip, 10 if warmup else 0)
    points = [_on_ground(p) for p in places]
    path = "M" + "L".join(f"{np.clip(a, -3e3, 3e3):.1f} {np.clip(b, -3e3, 3e3):.1f}"
                          for a, b in points)
    parts = ['<g transform="translate(46 4)"><clipPath id="frame">'
             f'<rect width="{SIDE}" height="{SIDE}"/></clipPath>', _ground(),
             f'<g clip-path="url(#frame)"><path d="{path}" fill="none" stroke="{SERIES[1]}" '
             'stroke-width="2"/>']
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{SERIES[1]}"/>' for a, b in points
              if abs(a) < 3e3 and abs(b) < 3e3]
    start = points[0]
    parts += [f'<circle cx="{start[0]:.1f}" cy="{start[1]:.1f}" r="6" fill="#ffffff" '
              f'stroke="{INK}" stroke-width="2"/></g>',
              f'<rect width="{SIDE}" height="{SIDE}" fill="none" stroke="{LINE}"/>']
    for value in (-0.2, 0.0, 0.2):
        parts.append(label(_on_ground((value, 0))[0], SIDE + 15, f"{value:g}".replace("-", "−"),
                           size=11, anchor="middle"))
    for value in (0.0, 0.5, 1.0):
        parts.append(label(-6, _on_ground((0, value))[1] + 4, f"{value:g}", size=11, anchor="end"))
    parts += [label(SIDE / 2, SIDE + 32, "weight of the length", size=12, anchor="middle"),
              label(-32, SIDE / 2, "weight of I, you, we", size=12, anchor="middle", turn=-90),
              "</g>"]
    jump = abs(places[-1, 0] - places[-2, 0])
    verdict = ("ends higher than it began" if losses[-10:].mean() > losses[0] else
               "jumps back and forth" if jump > 0.03 else
               "arrives" if losses[-1] < 0.618 else "has not arrived")
    title = f"{optimizer}, rate {10**rate:.2g}: {verdict}"
    ground = card(SIDE + 62, SIDE + 40, parts, f"{title}. Loss from {losses[0]:.3f} to "
                  f"{losses[-1]:.3f} in 40 steps, {losses[-10:].mean():.3f} in the mean of the "
                  "last ten; the lowest of the surface is 0.612.", title)
    line = curves({"loss": losses}, x_title="step", y_log=True, size=(260, 250),
                  y_limits=(0.5, max(60.0, losses.max() * 1.2)), lines=[(0.612, "lowest")],
                  title=f"loss after 40 steps: {losses[-1]:.3f}")
    return side_by_side(ground, line, losses=losses)


# --- The way back through LayerNorm -------------------------------------------------------------

NORM_X = np.array([[1.0, 2.0, 4.0, 0.5]])
NORM_GAMMA = np.array([1.0, 1.5, 0.5, 1.2])
UPSTREAM = {"random": np.array([[0.9, -0.4, 1.6, 0.1]]), "all ones, gamma ones": np.ones((1, 4))}


def norm_gradient(x, gamma, upstream, shift=True, stretch=True, divide=True):
    """grad_x of LayerNorm with some of its three parts left out."""
    centered = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-12)
    normalized, g = centered / deviation, upstream * gamma
    result = g
    if shift:
        result = result - g.mean(axis=-1, keepdims=True)
    if stretch:
        result = result - normalized * (g * normalized).mean(axis=-1, keepdims=True)
    return result / deviation if divide else result


def differences(function, x, step=1e-5):
    """The gradient of a number by moving each entry of x a little, up and down."""
    grad = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        grad[place] = (function(up) - function(down)) / (2 * step)
    return grad


@slider(shift=Toggle(False, label="take off the mean"),
        stretch=Toggle(False, label="take off the part along the normalized vector"),
        divide=Toggle(True, label="divide by the deviation"),
        upstream=Choice(list(UPSTREAM), label="gradient that comes in"), lesson="05")
def norm_way_back(shift, stretch, divide, upstream):
    """LayerNorm's gradient by differences, and by a formula with parts of it switched off."""
    coming = UPSTREAM[upstream]
    gamma = NORM_GAMMA if upstream == "random" else np.ones(4)
    true = differences(lambda x: float((layer_norm(x, gamma, np.zeros(4)) * coming).sum()), NORM_X)
    mine = norm_gradient(NORM_X, gamma, coming, shift, stretch, divide)
    apart = float(np.abs(mine - true).max())
    names = [f"x[{i}]" for i in range(4)]
    look = {"vmin": -1.5, "vmax": 1.5, "width": 210, "fmt": "{:.3f}"}
    return side_by_side(
        bars(true[0], names, title="by differences", color=PALETTE["reference"], **look),
        bars(mine[0], names, title=f"by the formula: {apart:.3f} apart", color=PALETTE["mine"],
             **look),
        apart=apart, exact=layer_norm_backward(coming, NORM_X, gamma)[0])


# --- AdamW, warm-up, clipping -------------------------------------------------------------------


def step_lengths(scale, part, steps=40, seed=0):
    """|move| / lr of each step for noisy gradients of one scale."""
    grads = scale * (1 + 0.5 * np.random.default_rng(seed).normal(size=steps))
    first = second = 0.0
    lengths = []
    for step, grad in enumerate(grads, 1):
        first, second = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        fair = first / (1 - 0.9**step), second / (1 - 0.999**step)
        lengths.append(abs({
            "all of AdamW": fair[0] / (fair[1] ** 0.5 + 1e-6),
            "no correction at the start": first / (second**0.5 + 1e-6),
            "no division": fair[0],
            "no running mean": grad / (fair[1] ** 0.5 + 1e-6),
        }[part]))
    return np.array(lengths)


PARTS = ("all of AdamW", "no correction at the start", "no division", "no running mean")


@slider(scale=Range(-6, 2, 1, start=-2, label="size of the gradient",
                    words=lambda v: f"about {10.0**v:g}"),
        part=Choice(list(PARTS), label="optimizer"), lesson="05")
def step_picture(scale, part):
    """How long AdamW's first forty steps are, and with one of its parts taken out."""
    lines = {"all of AdamW": step_lengths(10.0**scale, PARTS[0])}
    if part != PARTS[0]:
        lines[part] = step_lengths(10.0**scale, part)
    limits = (1e-6, 1e3) if part == "no division" else (0.05, 20.0)
    return curves(lines, x=np.arange(1, 41), x_title="step", y_log=True, y_limits=limits,
                  y_title="step / learning rate", lines=[(1.0, "one learning rate")],
                  title=f"Step lengths for gradients of about {10.0**scale:g}", lengths=lines[part])


@slider(warmup=Range(0, 100, 5, start=10, label="warm-up",
                     words=lambda v: f"{v} % of the steps"),
        shape=Choice(["linear", "no decay", "cosine"], label="afterwards"), lesson="05")
def schedule_picture(warmup, shape):
    """The factor of the learning rate over 100 steps."""
    steps = np.arange(1, 101)
    linear = np.array([warmup_linear(int(s), warmup, 100) for s in steps])
    after = steps > warmup
    share = (steps - warmup) / max(100 - warmup, 1)
    factor = {"linear": linear, "no decay": np.where(after, 1.0, linear),
              "cosine": np.where(after, 0.5 + 0.5 * np.cos(np.pi * share), linear)}[shape]
    alt = (f"Warm-up over {warmup} % of the steps, then {shape}: factor {factor[0]:.2f} at step 1, "
           f"{factor[49]:.2f} at step 50, {factor[-1]:.2f} at the last.")
    return curves({"factor": factor}, x=steps, x_title="step", y_title="factor of the rate",
                  y_limits=(0, 1.05), alt=alt, factor=factor,
                  title=f"All steps together move as {factor.sum():.0f} full ones would",
                  verticals=[(warmup, "end of warm-up")] if warmup else [])


@slider(limit=Range(0.5, 6.0, 0.5, start=2.0, label="limit"),
        how=Choice(["all together", "each number alone"], label="clip"), lesson="05")
def clip_picture(limit, how):
    """One gradient of two numbers before and after clipping."""
    grad = np.array([4.0, 1.5])
    if how == "all together":
        after = clip_by_global_norm({"w": grad}, limit)[0]["w"]
    else:
        after = np.clip(grad, -limit, limit)
    turned = np.degrees(np.arctan2(*after[::-1]) - np.arctan2(*grad[::-1]))
    left, bottom, scale, most = 40, 186, 64, 2.8  # pixels, and how far up the picture goes

    def place(x, y):
        return left + scale * x, bottom - scale * y

    parts = [f'<clipPath id="frame"><rect x="{left}" y="{bottom - scale * most}" '
             f'width="{scale * 5}" height="{scale * most}"/></clipPath>']
    for tick in range(6):
        parts.append(label(place(tick, 0)[0], bottom + 15, tick, size=11, anchor="middle"))
    for tick in range(3):
        parts.append(label(left - 6, place(0, tick)[1] + 4, tick, size=11, anchor="end"))
    allowed = mix(PALETTE["mine"], 0.12)
    if how == "all together":
        parts.append(f'<circle cx="{left}" cy="{bottom}" r="{scale * limit}" fill="{allowed}" '
                     'clip-path="url(#frame)"/>')
    else:
        wide, high = min(limit, 5), min(limit, most)
        parts.append(rect(left, bottom - scale * high, scale * wide, scale * high, allowed))
    parts.append(f'<path d="M{left} {bottom - scale * most}V{bottom}H{left + scale * 5}" '
                 f'fill="none" stroke="{LINE}"/>')
    for vector, color, width in ((grad, PALETTE["reference"], 2), (after, PALETTE["mine"], 3.5)):
        parts.append(arrow(*place(0, 0), *place(*vector), color, width=width))
    lengths = np.linalg.norm(grad), np.linalg.norm(after)
    for row, (name, length, color) in enumerate(zip(("before", "after"), lengths, (
            PALETTE["reference"], PALETTE["mine"]), strict=True)):
        parts.append(label(left + scale * 5 + 20, 30 + 22 * row, f"{name:6} length {length:.2f}",
                           size=12, color=mix(color, 0.8, "#000000"), weight="600"))
    parts.append(label(left + scale * 5 + 20, 80, "tinted: what is let through", size=12))
    title = f"Direction turned by {turned:.0f} degrees"
    return card(left + scale * 5 + 236, bottom + 26, parts, f"{title}: the gradient at (4, 1.5), "
                f"length {lengths[0]:.2f}, becomes ({after[0]:.2f}, {after[1]:.2f}), length "
                f"{lengths[1]:.2f}; limit {limit:g}, clipped {how}.", title, turned=turned)


# --- Masked words -------------------------------------------------------------------------------

SHOWN = ("We waited an hour for the soup, and when it came it was cold, but the waiter said "
         "nothing at all.")


@slider(rate=Range(0, 100, 5, start=15, label="mask rate", words=lambda v: f"{v} % of the tokens"),
        seed=Range(0, 20, 1, start=3, label="draw"), lesson="05")
def mask_picture(rate, seed):
    """A sentence with some of its tokens hidden, and what is asked where."""
    tokenizer = load_tokenizer()
    encoding = tokenizer.encode(SHOWN)
    ids, special = np.array(encoding.input_ids), np.array(encoding.special_tokens_mask)
    hidden, labels = mask_tokens(ids, special, len(tokenizer), tokenizer.mask_id,
                                 np.random.default_rng(seed), rate / 100)
    asked = labels != -100
    kinds = np.where(~asked, 0, np.where(hidden == tokenizer.mask_id, 1,
                                         np.where(hidden == ids, 3, 2)))
    colors = [(LINE, SERIES[0], SERIES[1], SERIES[2])[kind] for kind in kinds]
    left = int((~special).sum() - (asked & (hidden != ids)).sum())
    said = ", ".join(f"{tokenizer.tokens[i]} for {t}" for i, t, a in
                     zip(hidden, encoding.tokens, asked, strict=True) if a)
    return token_strip([tokenizer.tokens[i] for i in hidden], np.where(asked, 0.6, 0.3), vmax=1.0,
                       alt=f"A sentence of {len(ids)} tokens, {rate} % to be hidden. It shows "
                           f"{said or 'every token as it is'}.",
                       color=colors, under=[t if a else "" for t, a in
                                            zip(encoding.tokens, asked, strict=True)],
                       title=f"{asked.sum()} questions (the answer below each), {left} true words "
                             "to go by", hidden=hidden, labels=labels)
