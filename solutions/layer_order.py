"""Where LayerNorm stands in a layer, and what that does to a deep stack.

Lesson 04. A layer is two steps, attention and a feed-forward network. Each step f computes a change
of its input x, and there are three ways to put it in:

    post    x = layer_norm(x + f(x))      BERT, and the first transformer
    pre     x = x + f(layer_norm(x))      most later models; one more layer_norm behind the stack
    none    x = x + f(x)                  for comparison

`forward` and `backward` run a stack in any of the three orders, so that the sizes of signal and
gradient can be compared by depth. `encoder_layer` is BERT's layer by itself.

Xiong et al., 2020, "On Layer Normalization in the Transformer Architecture",
https://arxiv.org/abs/2002.04745
"""

import numpy as np

from solutions import _checks
from solutions._checks import checked
from solutions.attention import (
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from solutions.encoder import (
    feed_forward,
    gelu,
    gelu_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
)

ORDERS = ("post", "pre", "none")
LAYER = {
    "attention.qkv.weight": ("d", "3d"),
    "attention.qkv.bias": ("3d",),
    "attention.output.weight": ("d", "d"),
    "attention.output.bias": ("d",),
    "attention.norm.gamma": ("d",),
    "attention.norm.beta": ("d",),
    "feed_forward.inner.weight": ("d", "d_ff"),
    "feed_forward.inner.bias": ("d_ff",),
    "feed_forward.output.weight": ("d_ff", "d"),
    "feed_forward.output.bias": ("d",),
    "feed_forward.norm.gamma": ("d",),
    "feed_forward.norm.beta": ("d",),
}

# --- One layer ------------------------------------------------------------------------------------


def layer_params(params, i):
    """The parameters of layer i of an encoder, without "layers.i." in front of their names."""
    prefix = f"layers.{i}."
    found = {
        name.removeprefix(prefix): array
        for name, array in params.items()
        if name.startswith(prefix)
    }
    if not found:
        raise ValueError(f"layer_params: expected a layer {i}, got none of that number")
    return found


def _layer_input(where):
    def check(x, params, num_heads, mask=None):
        _checks.floats(f"{where}: x", x, shape=("batch", "length", "d"))
        batch, length, d = x.shape
        if not isinstance(params, dict) or not set(LAYER) <= set(params):
            got = sorted(params) if isinstance(params, dict) else _checks.describe(params)
            raise ValueError(
                f"{where}: params: expected a dict with the keys {sorted(LAYER)}, got {got}"
            )
        sizes = {"d": d, "3d": 3 * d, "d_ff": np.shape(params["feed_forward.inner.bias"])[-1]}
        for name, shape in LAYER.items():
            _checks.floats(
                f"{where}: {name}", params[name], shape=tuple(sizes[size] for size in shape)
            )
        _checks.whole(f"{where}: num_heads", num_heads, 1)
        if d % num_heads:
            raise ValueError(
                f"{where}: expected a width that {num_heads} heads can share equally, got {d}"
            )
        if mask is not None:
            _checks.mask(f"{where}: mask", mask, (batch, num_heads, length, length))

    return check


@checked(_layer_input("attend"))
def attend(x, params, num_heads, mask=None):
    """The attention of a layer: what each token takes over from the others.

    x: (batch, length, d). Query, key and value stand side by side in one matrix (d, 3d). mask:
    Boolean, broadcasts to (batch, num_heads, length, length). Returns (batch, length, d).
    """
    return _attend(x, params, num_heads, mask)[0]


def _add_and_norm_input(x, change, gamma, beta):
    _checks.floats("add_and_norm: x", x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(
            f"add_and_norm: x: expected at least one feature, got {_checks.describe(x)}"
        )
    _checks.floats("add_and_norm: change", change, shape=x.shape)
    _checks.floats("add_and_norm: gamma", gamma, shape=x.shape[-1:])
    _checks.floats("add_and_norm: beta", beta, shape=x.shape[-1:])


@checked(_add_and_norm_input)
def add_and_norm(x, change, gamma, beta):
    """What came in plus what the step computed, normalized afterward: post-LN, as in BERT.

    x, change: (..., d). gamma, beta: (d,). Returns (..., d).
    """
    return layer_norm(x + change, gamma, beta)


@checked(_layer_input("encoder_layer"))
def encoder_layer(x, params, num_heads, mask=None):
    """One layer of BERT: attention, add and norm, feed-forward, add and norm.

    x: (batch, length, d). params: the layer's twelve arrays by name. mask: Boolean or None.
    Returns (batch, length, d).
    """
    change = attend(x, params, num_heads, mask)
    x = add_and_norm(x, change, params["attention.norm.gamma"], params["attention.norm.beta"])
    inner, output = "feed_forward.inner.", "feed_forward.output."
    change = feed_forward(x, params[inner + "weight"], params[inner + "bias"],
                          params[output + "weight"], params[output + "bias"])
    return add_and_norm(x, change, params["feed_forward.norm.gamma"],
                        params["feed_forward.norm.beta"])


def _encode_input(input_ids, attention_mask, params, num_layers, num_heads):
    tables = [f"embeddings.{name}" for name in ("token", "position", "segment")]
    missing = [name for name in tables if name not in params]
    if missing:
        raise ValueError(f"encode: params: expected {tables}, got none named {missing}")
    vocab_size = len(params["embeddings.token"])
    _checks.ids("encode: input_ids", input_ids, vocab_size, ("batch", "length"))
    if input_ids.shape[1] > len(params["embeddings.position"]):
        raise ValueError(
            f"encode: input_ids: expected at most {len(params['embeddings.position'])} tokens, "
            f"got {input_ids.shape[1]}"
        )
    _checks.real_tokens("encode: attention_mask", attention_mask, input_ids.shape)
    _checks.whole("encode: num_layers", num_layers, 0)


@checked(_encode_input)
def encode(input_ids, attention_mask, params, num_layers, num_heads):
    """Ids and attention mask (batch, length) to hidden states (batch, length, d): the encoder.

    params: the arrays of solutions.encoder.parameter_shapes. All tokens are of segment 0.
    """
    x = params["embeddings.token"][input_ids] + params["embeddings.segment"][0]
    x = x + params["embeddings.position"][: input_ids.shape[1]]
    x = layer_norm(x, params["embeddings.norm.gamma"], params["embeddings.norm.beta"])
    for i in range(num_layers):
        x = encoder_layer(x, layer_params(params, i), num_heads, padding_mask(attention_mask))
    return x


# --- A stack in any order -------------------------------------------------------------------------


def random_stack(num_layers, d_model=32, d_ff=64, seed=0, scale=1.0):
    """Layers of random weights: normal, with a deviation of scale / sqrt(inputs). Biases are 0.

    With scale 1 a linear layer keeps the size of vectors whose numbers are of unit scale.
    """
    rng = np.random.default_rng(seed)
    sizes = {"d": d_model, "3d": 3 * d_model, "d_ff": d_ff}
    layers = []
    for _ in range(num_layers):
        layer = {}
        for name, words in LAYER.items():
            shape = tuple(sizes[word] for word in words)
            if name.endswith("weight"):
                layer[name] = rng.normal(size=shape) * scale / shape[0] ** 0.5
            else:
                layer[name] = np.ones(shape) if name.endswith("gamma") else np.zeros(shape)
        layers.append(layer)
    return layers


def _attend(x, params, num_heads, mask=None):
    qkv = linear(x, params["attention.qkv.weight"], params["attention.qkv.bias"])
    query, key, value = (split_heads(part, num_heads) for part in np.split(qkv, 3, axis=-1))
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    context = merge_heads(output)
    attended = linear(context, params["attention.output.weight"], params["attention.output.bias"])
    return attended, (x, query, key, value, weights, context)


def _attend_backward(grad, cache, params, num_heads, grads):
    x, query, key, value, weights, context = cache
    name = "attention.output."
    grad, grads[name + "weight"], grads[name + "bias"] = linear_backward(
        grad, context, params[name + "weight"]
    )
    parts = scaled_dot_product_attention_backward(
        split_heads(grad, num_heads), query, key, value, weights
    )
    grad = np.concatenate([merge_heads(part) for part in parts], axis=-1)
    name = "attention.qkv."
    grad, grads[name + "weight"], grads[name + "bias"] = linear_backward(
        grad, x, params[name + "weight"]
    )
    return grad


def _feed(x, params):
    inner = linear(x, params["feed_forward.inner.weight"], params["feed_forward.inner.bias"])
    bent = gelu(inner)
    name = "feed_forward.output."
    return linear(bent, params[name + "weight"], params[name + "bias"]), (x, inner, bent)


def _feed_backward(grad, cache, params, grads):
    x, inner, bent = cache
    name = "feed_forward.output."
    grad, grads[name + "weight"], grads[name + "bias"] = linear_backward(
        grad, bent, params[name + "weight"]
    )
    name = "feed_forward.inner."
    grad, grads[name + "weight"], grads[name + "bias"] = linear_backward(
        gelu_backward(grad, inner), x, params[name + "weight"]
    )
    return grad


def _stack_input(x, layers, num_heads, order="post", residual=True, mask=None):
    _checks.floats("forward: x", x, shape=("batch", "length", "d"))
    if order not in ORDERS:
        raise ValueError(f"forward: order: expected one of {ORDERS}, got {order!r}")
    _checks.flag("forward: residual", residual)
    for layer in layers[:1]:  # the others fail in their own parts, should they differ
        _layer_input("forward")(x, layer, num_heads, mask)


@checked(_stack_input)
def forward(x, layers, num_heads, order="post", residual=True, mask=None):
    """Hidden states by depth, x first, and what `backward` needs.

    x: (batch, length, d). layers: one dict of parameters a layer. order: "post", "pre" or "none".
    residual: False puts f(x) in the place of x + f(x). With "pre", what the stack hands on is one
    more state at the end: the last one normalized (gamma 1, beta 0).
    """
    states, caches = [x], []
    for params in layers:
        for step in ("attention", "feed_forward"):
            gamma, beta = params[step + ".norm.gamma"], params[step + ".norm.beta"]
            seen = layer_norm(x, gamma, beta) if order == "pre" else x
            change, cache = (
                _attend(seen, params, num_heads, mask)
                if step == "attention"
                else _feed(seen, params)
            )
            total = x + change if residual else change
            caches.append((x, total, cache))
            x = layer_norm(total, gamma, beta) if order == "post" else total
        states.append(x)
    if order == "pre":
        states.append(layer_norm(x, *_plain(x)))
    return states, (layers, num_heads, order, residual, caches, x)


def backward(grad, cache):
    """Gradients of every state, in the order of `states`, and of every layer's parameters.

    grad: that of the last state. cache: from `forward`.
    """
    layers, num_heads, order, residual, caches, last = cache
    by_state, by_layer = [grad], []
    if order == "pre":
        grad = layer_norm_backward(grad, last, _plain(last)[0])[0]
        by_state.append(grad)
    caches = list(caches)
    for params in reversed(layers):
        grads = {}
        for step in ("feed_forward", "attention"):
            x, total, seen = caches.pop()
            names = [f"{step}.norm.{part}" for part in ("gamma", "beta")]
            if order == "post":
                grad, *norm = layer_norm_backward(grad, total, params[names[0]])
            passed = grad if residual else np.zeros_like(grad)
            if step == "attention":
                grad = _attend_backward(grad, seen, params, num_heads, grads)
            else:
                grad = _feed_backward(grad, seen, params, grads)
            if order == "pre":
                grad, *norm = layer_norm_backward(grad, x, params[names[0]])
            if order != "none":
                grads |= dict(zip(names, norm, strict=True))
            grad = passed + grad
        by_state.append(grad)
        by_layer.append(grads)
    return by_state[::-1], by_layer[::-1]


def _plain(x):
    return np.ones(x.shape[-1], x.dtype), np.zeros(x.shape[-1], x.dtype)


# --- Measured -------------------------------------------------------------------------------------


def root_mean_square(x):
    """The size of a typical number in x: the root of the mean of the squares."""
    return float(np.sqrt(np.mean(np.square(x))))


def likeness(x):
    """Mean cosine between two tokens of a sentence: 1 if all point in one direction.

    x: (batch, length, d), length at least 2.
    """
    lengths = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
    unit = x / np.where(lengths == 0, 1, lengths)
    length = x.shape[1]
    together = np.square(unit.sum(axis=1)).sum(axis=-1)  # all pairs, each token with itself too
    return float(np.mean((together - length) / (length * (length - 1))))


def by_depth(num_layers, order="post", residual=True, scale=1.0, seed=0):
    """Signal, likeness and gradient of a random stack, by depth.

    Two sentences of 8 tokens, vectors of 32 numbers of unit scale, 4 heads. The gradient that
    arrives at the end of the stack is random, of unit scale. Returns a dict:
    "signal" and "likeness", (num_layers + 1,): of the states before and after each layer;
    "gradient", (num_layers + 1,): root mean square of these states' gradients;
    "weights", (num_layers,): norm of the gradient of each layer's inner feed-forward weight.
    """
    rng = np.random.default_rng(seed)
    start, grad = _unit_tokens(rng), rng.normal(size=(2, 8, 32))
    layers = random_stack(num_layers, seed=seed + 1, scale=scale)
    states, cache = forward(start, layers, 4, order, residual)
    by_state, by_layer = backward(grad, cache)
    many = num_layers + 1
    return {
        "signal": np.array([root_mean_square(state) for state in states[:many]]),
        "likeness": np.array([likeness(state) for state in states[:many]]),
        "gradient": np.array([root_mean_square(grad) for grad in by_state[:many]]),
        "weights": np.array(
            [np.linalg.norm(grads["feed_forward.inner.weight"]) for grads in by_layer]
        ),
    }


def shake(num_layers, order="post", scale=1.0, amount=0.01, seed=0):
    """How far the stack's output moves when all weights move a little at once, per amount.

    Each weight gets a random part of `amount` of its own scale added. Returns the root mean square
    of the difference of the two outputs, divided by `amount`.
    """
    rng = np.random.default_rng(seed)
    start = _unit_tokens(rng)
    layers = random_stack(num_layers, seed=seed + 1, scale=scale)
    noise = random_stack(num_layers, seed=seed + 2, scale=scale)
    moved = [
        {
            name: array + amount * other[name] if name.endswith("weight") else array
            for name, array in one.items()
        }
        for one, other in zip(layers, noise, strict=True)
    ]
    before, after = (forward(start, stack, 4, order)[0][-1] for stack in (layers, moved))
    return root_mean_square(after - before) / amount


def _unit_tokens(rng):
    """Two sentences of 8 tokens, each vector of mean 0 and variance 1."""
    tokens = rng.normal(size=(2, 8, 32))
    return layer_norm(tokens, *_plain(tokens))
