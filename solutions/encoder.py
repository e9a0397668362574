"""BERT's encoder: embeddings, then a stack of layers, each attention and a feed-forward network.

Lesson 04. A layer maps hidden states (batch, length, d_model) to hidden states of the same shape:

    x = layer_norm(x + attention(x))         every token looks at the others
    x = layer_norm(x + feed_forward(x))      every token by itself

Each part comes with its way back: `part_backward` takes the gradient of the part's output, and what
the part saw, and returns the gradients of the part's inputs. Weights are stored (in, out), so that
`x @ weight + bias` is a linear layer.

Devlin et al., 2019, "BERT", https://arxiv.org/abs/1810.04805
"""

import dataclasses
import json
import math
import zipfile
import zlib

import numpy as np

from solutions import _checks, _inference, _kernels
from solutions._checks import checked
from solutions._files import whole_file
from solutions.attention import causal_mask, padding_mask

# --- Linear ---------------------------------------------------------------------------------------


def _linear_input(x, weight, bias):
    _checks.floats("linear: weight", weight, shape=("in", "out"))
    _checks.floats("linear: bias", bias, shape=(weight.shape[1],))
    _checks.floats("linear: x", x)
    if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"linear: x: expected a last axis of {weight.shape[0]}, got {_checks.describe(x)}"
        )


@checked(_linear_input)
def linear(x, weight, bias):
    """x @ weight + bias.

    x: (..., in). weight: (in, out). bias: (out,). Returns (..., out).
    """
    return x @ weight + bias


def _linear_backward_input(grad_output, x, weight):
    _checks.floats("linear_backward: weight", weight, shape=("in", "out"))
    _checks.floats("linear_backward: x", x)
    if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"linear_backward: x: expected a last axis of {weight.shape[0]}, "
            f"got {_checks.describe(x)}"
        )
    shape = (*x.shape[:-1], weight.shape[1])
    _checks.floats("linear_backward: grad_output", grad_output, shape=shape)


@checked(_linear_backward_input)
def linear_backward(grad_output, x, weight):
    """Gradients of x, weight and bias.

    Every token used the same weight and bias, so their gradients are sums over the tokens.
    """
    grad_x = grad_output @ weight.T
    tokens = x.reshape(-1, x.shape[-1])
    grad_tokens = grad_output.reshape(-1, grad_output.shape[-1])
    return grad_x, tokens.T @ grad_tokens, grad_tokens.sum(axis=0)


# --- Layer normalization --------------------------------------------------------------------------


def _layer_norm_input(x, gamma, beta, eps=1e-12):
    _checks.floats("layer_norm: x", x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"layer_norm: x: expected at least one feature, got {_checks.describe(x)}")
    _checks.floats("layer_norm: gamma", gamma, shape=x.shape[-1:])
    _checks.floats("layer_norm: beta", beta, shape=x.shape[-1:])
    _checks.positive("layer_norm: eps", eps)


@checked(_layer_norm_input, numbers=("eps",))
def layer_norm(x, gamma, beta, eps=1e-12):
    """Each token's vector, shifted to mean 0 and scaled to variance 1; then times gamma, plus beta.

    x: (..., d). gamma, beta: (d,). Returns the shape of x.

    The variance is the population's (divided by d), and eps is added to it under the root: for a
    vector that hardly varies, eps decides how much the noise is magnified. BERT's is 1e-12.

    Ba et al., 2016, "Layer Normalization", https://arxiv.org/abs/1607.06450
    """
    mean = x.mean(axis=-1, keepdims=True)
    centered = x - mean
    variance = (centered**2).mean(axis=-1, keepdims=True)
    return gamma * centered / np.sqrt(variance + eps) + beta


def _layer_norm_backward_input(grad_output, x, gamma, eps=1e-12):
    _checks.floats("layer_norm_backward: x", x)
    _checks.floats("layer_norm_backward: gamma", gamma, shape=x.shape[-1:])
    _checks.floats("layer_norm_backward: grad_output", grad_output, shape=x.shape)
    _checks.positive("layer_norm_backward: eps", eps)


@checked(_layer_norm_backward_input, numbers=("eps",))
def layer_norm_backward(grad_output, x, gamma, eps=1e-12):
    """Gradients of x, gamma and beta.

    The mean and the deviation depend on every feature of x. So from the gradient of the normalized
    vector two parts are taken away: what would only shift it (its mean), and what would only
    stretch it (its component along the normalized vector itself). Neither changes the output.
    """
    centered = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + eps)
    normalized = centered / deviation

    tokens = tuple(range(x.ndim - 1))
    grad_gamma = (grad_output * normalized).sum(axis=tokens)
    grad_beta = grad_output.sum(axis=tokens)

    grad_normalized = grad_output * gamma
    shift = grad_normalized.mean(axis=-1, keepdims=True)
    stretch = (grad_normalized * normalized).mean(axis=-1, keepdims=True)
    grad_x = (grad_normalized - shift - normalized * stretch) / deviation
    return grad_x, grad_gamma, grad_beta


# --- GELU -----------------------------------------------------------------------------------------


def _erf_input(x):
    _checks.floats("erf: x", x)


@checked(_erf_input)
def erf(x):
    """The error function, of each number: 2 / sqrt(pi) times the integral of exp(-t^2), 0 to x.

    To 3e-7 in float32, by a polynomial; to the last digits in float64, from a table.
    """
    return _kernels.erf_root_half(np.atleast_1d(x) * 2**0.5).reshape(x.shape)


def _gelu_input(x):
    _checks.floats("gelu: x", x)


@checked(_gelu_input)
def gelu(x):
    """x times the probability that a standard normal number is below x; exact, not the tanh form.

    x: floats of any shape. Returns the same shape.

    Far to the right it is x, far to the left 0, and in between it bends smoothly.

    Hendrycks and Gimpel, 2016, https://arxiv.org/abs/1606.08415
    """
    return x * 0.5 * (1 + erf(x / 2**0.5))


def _gelu_backward_input(grad_output, x):
    _checks.floats("gelu_backward: x", x)
    _checks.floats("gelu_backward: grad_output", grad_output, shape=x.shape)


@checked(_gelu_backward_input)
def gelu_backward(grad_output, x):
    """Gradient of x: the probability of being below x, plus x times the normal density at x."""
    below = 0.5 * (1 + erf(x / 2**0.5))
    density = np.exp(-0.5 * x**2) / (2 * np.pi) ** 0.5
    return grad_output * (below + x * density)


# --- Feed-forward network -------------------------------------------------------------------------


def _feed_forward_input(x, w1, b1, w2, b2):
    _checks.floats("feed_forward: w1", w1, shape=("d", "d_ff"))
    _checks.floats("feed_forward: b1", b1, shape=(w1.shape[1],))
    _checks.floats("feed_forward: w2", w2, shape=(w1.shape[1], "d"))
    _checks.floats("feed_forward: b2", b2, shape=(w2.shape[1],))
    _checks.floats("feed_forward: x", x)
    if x.ndim == 0 or x.shape[-1] != w1.shape[0]:
        raise ValueError(
            f"feed_forward: x: expected a last axis of {w1.shape[0]}, got {_checks.describe(x)}"
        )


@checked(_feed_forward_input)
def feed_forward(x, w1, b1, w2, b2):
    """Two linear layers with a GELU between them, the same for every token.

    x: (..., d). w1: (d, d_ff). b1: (d_ff,). w2: (d_ff, d). b2: (d,). Returns (..., d).
    """
    return linear(gelu(linear(x, w1, b1)), w2, b2)


# --- Dropout --------------------------------------------------------------------------------------


def _dropout_input(x, rate, rng):
    _checks.floats("dropout: x", x)
    _checks.fraction("dropout: rate", rate)


@checked(_dropout_input, numbers=("rate",))
def dropout(x, rate, rng):
    """Set each number to 0 with probability `rate`, and scale the others up by 1 / (1 - rate).

    Returns the thinned array and the scale of every number (0 where dropped), which the way back
    multiplies its gradient by. Scaling up in training ("inverted" dropout) keeps the mean, so that
    nothing needs to change when the encoder is used.

    Srivastava et al., 2014, https://jmlr.org/papers/v15/srivastava14a.html
    """
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    scale = kept.astype(x.dtype) / (1 - rate)
    return x * scale, scale


# --- Configuration and parameters -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """The sizes of an encoder. Raises ValueError for sizes that make none.

    vocab_size: how many tokens there are. d_model: width of a token's vector. num_heads must divide
    it. d_ff: width inside the feed-forward network, in BERT 4 * d_model. max_length: the longest
    input, in tokens. num_segments: 2 for inputs of a pair of sentences. dropout, attention_dropout:
    only in training. eps: of LayerNorm. causal: True hides every token to the right. positions:
    False leaves out the position embedding, which makes the encoder blind to word order.
    """

    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    max_length: int
    num_segments: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1
    eps: float = 1e-12
    causal: bool = False
    positions: bool = True

    def __post_init__(self):
        sizes = ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff", "max_length",
                 "num_segments")  # fmt: skip
        for field in sizes:
            _checks.whole(f"EncoderConfig: {field}", getattr(self, field), 1)
        if self.d_model % self.num_heads:
            raise ValueError(
                f"EncoderConfig: expected a d_model that {self.num_heads} heads can share equally, "
                f"got {self.d_model}"
            )
        _checks.fraction("EncoderConfig: dropout", self.dropout)
        _checks.fraction("EncoderConfig: attention_dropout", self.attention_dropout)
        _checks.positive("EncoderConfig: eps", self.eps)
        _checks.flag("EncoderConfig: causal", self.causal)
        _checks.flag("EncoderConfig: positions", self.positions)
        # Python's own numbers: JSON has no others, and a np.float64 would widen float32 arrays.
        for field in dataclasses.fields(self):
            kind = int if field.name in sizes else type(field.default)
            object.__setattr__(self, field.name, kind(getattr(self, field.name)))


def parameter_shapes(config):
    """{name: shape} of every parameter, in the order in which they are used."""
    d, d_ff = config.d_model, config.d_ff
    shapes = {"embeddings.token": (config.vocab_size, d)}
    if config.positions:
        shapes["embeddings.position"] = (config.max_length, d)
    shapes["embeddings.segment"] = (config.num_segments, d)
    shapes["embeddings.norm.gamma"] = shapes["embeddings.norm.beta"] = (d,)
    for i in range(config.num_layers):
        for name, shape in {
            "attention.qkv.weight": (d, 3 * d),  # query, key and value side by side
            "attention.qkv.bias": (3 * d,),
            "attention.output.weight": (d, d),
            "attention.output.bias": (d,),
            "attention.norm.gamma": (d,),
            "attention.norm.beta": (d,),
            "feed_forward.inner.weight": (d, d_ff),
            "feed_forward.inner.bias": (d_ff,),
            "feed_forward.output.weight": (d_ff, d),
            "feed_forward.output.bias": (d,),
            "feed_forward.norm.gamma": (d,),
            "feed_forward.norm.beta": (d,),
        }.items():
            shapes[f"layers.{i}.{name}"] = shape
    return shapes


def init_params(config, seed, dtype=np.float32):
    """{name: array}: weights normal with deviation 0.02, biases and beta 0, gamma 1, as BERT."""
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in parameter_shapes(config).items():
        if name.endswith("gamma"):
            params[name] = np.ones(shape, dtype)
        elif name.endswith(("beta", "bias")):
            params[name] = np.zeros(shape, dtype)
        else:
            params[name] = rng.normal(0, 0.02, shape).astype(dtype)
    return params


def num_parameters(config, pooler=False):
    """How many numbers the encoder has; with BERT's pooler (one more linear layer) if asked."""
    total = sum(math.prod(shape) for shape in parameter_shapes(config).values())
    return total + pooler * (config.d_model * config.d_model + config.d_model)


def parameter_table(config):
    """[(part, parameters)], whose sum is num_parameters(config)."""
    table = {
        "token embeddings": 0,
        "position embeddings": 0,
        "segment embeddings": 0,
        "attention": 0,
        "feed-forward": 0,
        "layer norms": 0,
    }
    for name, shape in parameter_shapes(config).items():
        if ".norm." in name:
            part = "layer norms"
        elif name.startswith("embeddings."):
            part = f"{name.split('.')[1]} embeddings"
        else:
            part = "attention" if ".attention." in name else "feed-forward"
        table[part] += math.prod(shape)
    return list(table.items())


# --- The encoder ----------------------------------------------------------------------------------


class Encoder:
    """BERT's encoder.

    encoder(input_ids, attention_mask, token_type_ids) gives hidden states (batch, length, d_model),
    the same each time. `params` is {name: array} with the names and shapes of
    parameter_shapes(config), all float32 or all float64; the encoder keeps copies, which an
    optimizer may change in place.

    Inside, the tokens of a batch are the rows of one matrix (batch * length, d_model), and the work
    is done by `solutions._kernels`: the functions above, made fast.
    """

    def __init__(self, config, params):
        if not isinstance(config, EncoderConfig):
            raise ValueError(f"Encoder: expected an EncoderConfig, got {_checks.describe(config)}")
        if not isinstance(params, dict):
            raise ValueError(f"Encoder: params: expected a dict, got {_checks.describe(params)}")
        shapes = parameter_shapes(config)
        missing, extra = (
            sorted(shapes.keys() - params.keys()),
            sorted(params.keys() - shapes.keys()),
        )
        if missing or extra:
            raise ValueError(
                "Encoder: params: expected the names of parameter_shapes(config), "
                f"got {len(missing)} missing {missing[:3]} and {len(extra)} unknown {extra[:3]}"
            )
        for name, shape in shapes.items():
            _checks.floats(f"Encoder: {name}", params[name], shape=shape)
        dtypes = sorted({str(params[name].dtype) for name in shapes})
        if dtypes not in (["float32"], ["float64"]):
            raise ValueError(f"Encoder: params: expected all float32 or all float64, got {dtypes}")
        self.config = config
        self.params = {name: np.array(params[name], order="C") for name in shapes}

    def __call__(self, input_ids, attention_mask=None, token_type_ids=None):
        """Hidden states (batch, length, d_model).

        input_ids: integers (batch, length). attention_mask: (batch, length), True or 1 for a real
        token; all real if None. Rows of padding are 0: nothing is computed for them.
        token_type_ids: (batch, length), the segment of each token; all 0 if None.
        """
        self._check_ids(input_ids, token_type_ids)
        real = np.ones(input_ids.shape, dtype=bool)
        if attention_mask is not None:
            _checks.real_tokens("Encoder: attention_mask", attention_mask, input_ids.shape)
            real = attention_mask.astype(bool)
        dtype = self.params["embeddings.token"].dtype
        out = np.zeros((*real.shape, self.config.d_model), dtype)

        def run(sentences):
            kept = real[sentences]
            place = sentences[np.nonzero(kept)[0]], np.nonzero(kept)[1]
            segments = 0 if token_type_ids is None else token_type_ids[place]
            out[place] = self._without_padding(
                input_ids[place], place[1], segments, kept.sum(axis=1)
            )

        _inference.side_by_side(run, _inference.portions(real.sum(axis=1)))
        return out

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, rng=None, keep=False):
        """Hidden states, and what `backward` needs (None unless keep).

        With an rng (np.random.Generator) dropout is on, and two equal generators drop the same.
        """
        self._check_ids(input_ids, token_type_ids)
        mask = self._mask(*input_ids.shape, attention_mask)
        embedded, cache = self._embed(input_ids, token_type_ids, rng, keep)
        hidden, caches = self._layers(0, embedded, mask, rng, keep)
        return hidden, (cache, caches) if keep else None

    def forward_to(self, layer, input_ids, attention_mask=None, token_type_ids=None):
        """Hidden states that go into `layer`: only the layers below it run, without dropout."""
        _checks.whole("Encoder: layer", layer, 0, self.config.num_layers)
        self._check_ids(input_ids, token_type_ids)
        mask = self._mask(*input_ids.shape, attention_mask)
        hidden, _ = self._embed(input_ids, token_type_ids, None, False)
        return self._layers(0, hidden, mask, None, False, stop=layer)[0]

    def forward_from(self, layer, hidden_states, attention_mask=None, rng=None, keep=False):
        """The same, from hidden states found before: only `layer` and the layers above it run.

        hidden_states: (batch, length, d_model), what forward_to gives for the same `layer`.
        For training the top of an encoder whose lower layers stay as they are: `backward` then has
        gradients for the layers that ran.
        """
        _checks.whole("Encoder: layer", layer, 0, self.config.num_layers)
        shape = ("batch", "length", self.config.d_model)
        _checks.floats("Encoder: hidden_states", hidden_states, shape=shape)
        mask = self._mask(*hidden_states.shape[:2], attention_mask)
        hidden, caches = self._layers(layer, hidden_states, mask, rng, keep)
        return hidden, (None, caches) if keep else None

    def backward(self, grad_hidden, cache):
        """{name: gradient} of every parameter that took part, given that of the hidden states.

        `cache` comes from forward(..., keep=True).
        """
        shape = ("batch", "length", self.config.d_model)
        _checks.floats("Encoder: grad_hidden", grad_hidden, shape=shape)
        embedding_cache, layer_caches = cache
        grad = grad_hidden.reshape(-1, self.config.d_model)
        grads = {}
        for i in reversed(layer_caches):
            grad = self._layer_backward(i, grad, layer_caches[i], grads)
        if embedding_cache is not None:
            self._embed_backward(grad, embedding_cache, grads)
        return {name: grads[name] for name in self.params if name in grads}

    def layers_and_attention(self, input_ids, attention_mask=None, token_type_ids=None):
        """What happens inside, as two lists.

        Hidden states after the embeddings and after each layer, each (batch, length, d_model); and
        the attention weights of each layer, each (batch, heads, queries, keys).
        """
        self._check_ids(input_ids, token_type_ids)
        mask = self._mask(*input_ids.shape, attention_mask)
        hidden, _ = self._embed(input_ids, token_type_ids, None, False)
        states, attention = [hidden], []
        for i in range(self.config.num_layers):
            hidden, weights, _ = self._layer(i, hidden, mask, None, False)
            states.append(hidden)
            attention.append(weights)
        return states, attention

    def _without_padding(self, input_ids, positions, segments, lengths):
        """Hidden states (tokens, d_model) of sentences that stand one behind the other."""
        params, config = self.params, self.config
        x = params["embeddings.token"][input_ids]
        x += params["embeddings.segment"][segments]
        if config.positions:
            x += params["embeddings.position"][positions]
        x, _ = self._norm("embeddings", x, False)
        groups = _inference.runs(lengths)
        dtype = x.dtype

        def visible(length):
            return causal_mask(length).astype(dtype) if config.causal else None

        for i in range(config.num_layers):
            name = f"layers.{i}."
            qkv = self._linear(name + "attention.qkv", x)
            context = _inference.attention(qkv, groups, config.num_heads, visible)
            attended = self._linear(name + "attention.output", context)
            attended += x
            middle, _ = self._norm(name + "attention", attended, False)
            inner = self._linear(name + "feed_forward.inner", middle)
            x = self._linear(name + "feed_forward.output", _kernels.gelu(inner, False)[0])
            x += middle
            x, _ = self._norm(name + "feed_forward", x, False)
        return x

    # Checks and masks

    def _check_ids(self, input_ids, token_type_ids):
        config = self.config
        _checks.ids("Encoder: input_ids", input_ids, config.vocab_size, ("batch", "length"))
        if input_ids.size == 0:
            raise ValueError(
                "Encoder: input_ids: expected at least one sentence and one token, "
                f"got {_checks.describe(input_ids)}"
            )
        if config.positions and input_ids.shape[1] > config.max_length:
            raise ValueError(
                f"Encoder: input_ids: expected at most {config.max_length} tokens, "
                f"got {input_ids.shape[1]}"
            )
        if token_type_ids is not None:
            name, shape = "Encoder: token_type_ids", input_ids.shape
            _checks.ids(name, token_type_ids, config.num_segments, shape)

    def _mask(self, batch, length, attention_mask):
        """1 where a query may attend to a key, 0 elsewhere; None if everything may be attended."""
        mask = None
        if attention_mask is not None:
            _checks.real_tokens("Encoder: attention_mask", attention_mask, (batch, length))
            mask = None if attention_mask.all() else padding_mask(attention_mask)
        if self.config.causal:
            mask = causal_mask(length) if mask is None else mask & causal_mask(length)
        return None if mask is None else mask.astype(self.params["embeddings.token"].dtype)

    # Embeddings

    def _embed(self, input_ids, token_type_ids, rng, keep):
        params, (batch, length) = self.params, input_ids.shape
        total = params["embeddings.token"].take(input_ids, axis=0)
        if token_type_ids is None:
            total += params["embeddings.segment"][0]
        else:
            total += params["embeddings.segment"][token_type_ids]
        if self.config.positions:
            total += params["embeddings.position"][:length]
        rows = total.reshape(batch * length, -1)
        hidden, norm = self._norm("embeddings", rows, keep)
        hidden, scale = self._drop(hidden, rng)
        return hidden.reshape(total.shape), (input_ids, token_type_ids, norm, scale)

    def _embed_backward(self, grad, cache, grads):
        input_ids, token_type_ids, norm, scale = cache
        (batch, length), config = input_ids.shape, self.config
        grad = self._norm_backward("embeddings", _times(grad, scale), norm, grads)
        grads["embeddings.token"] = _kernels.sum_by_id(input_ids.ravel(), grad, config.vocab_size)
        if token_type_ids is None:
            token_type_ids = np.zeros_like(input_ids)
        one_hot = token_type_ids.ravel() == np.arange(config.num_segments)[:, None]
        grads["embeddings.segment"] = one_hot.astype(grad.dtype) @ grad
        if config.positions:
            by_position = np.zeros_like(self.params["embeddings.position"])
            by_position[:length] = _kernels.column_sums(grad.reshape(batch, -1)).reshape(length, -1)
            grads["embeddings.position"] = by_position

    # Layers

    def _layers(self, first, hidden, mask, rng, keep, stop=None):
        caches = {}
        for i in range(first, self.config.num_layers if stop is None else stop):
            hidden, _, cache = self._layer(i, hidden, mask, rng, keep)
            if keep:
                caches[i] = cache
        return hidden, caches

    def _layer(self, i, hidden, mask, rng, keep):
        """Layer i: hidden states, attention weights, and what the way back needs."""
        name, shape = f"layers.{i}.", hidden.shape
        x = hidden.reshape(-1, shape[-1])

        qkv = self._linear(name + "attention.qkv", x)
        context, weights, attention = _kernels.attention(
            qkv, shape[0], self.config.num_heads, mask, self._thin_weights(rng)
        )
        attended = self._linear(name + "attention.output", context)
        attended, attended_scale = self._drop(attended, rng)
        attended += x
        middle, attention_norm = self._norm(name + "attention", attended, keep)

        inner = self._linear(name + "feed_forward.inner", middle)
        bent, slope = _kernels.gelu(inner, keep)
        fed = self._linear(name + "feed_forward.output", bent)
        fed, fed_scale = self._drop(fed, rng)
        fed += middle
        out, feed_forward_norm = self._norm(name + "feed_forward", fed, keep)

        cache = (
            (x, attention, context, attended_scale, attention_norm),
            (middle, slope, bent, fed_scale, feed_forward_norm),
        )
        return out.reshape(shape), weights, cache if keep else None

    def _layer_backward(self, i, grad, cache, grads):
        """Gradient of the layer's input; those of its parameters go into grads."""
        name = f"layers.{i}."
        attention_cache, feed_forward_cache = cache

        middle, slope, bent, scale, norm = feed_forward_cache
        grad = self._norm_backward(name + "feed_forward", grad, norm, grads)
        way = self._linear_backward(name + "feed_forward.output", _times(grad, scale), bent, grads)
        way *= slope
        grad += self._linear_backward(name + "feed_forward.inner", way, middle, grads)

        x, attention, context, scale, norm = attention_cache
        grad = self._norm_backward(name + "attention", grad, norm, grads)
        way = self._linear_backward(name + "attention.output", _times(grad, scale), context, grads)
        way = _kernels.attention_backward(way, attention)
        grad += self._linear_backward(name + "attention.qkv", way, x, grads)
        return grad

    # The parts of a layer, with their parameters

    def _linear(self, name, x):
        return _kernels.linear(x, self.params[name + ".weight"], self.params[name + ".bias"])

    def _linear_backward(self, name, grad, x, grads):
        weight = self.params[name + ".weight"]
        grad, grads[name + ".weight"], grads[name + ".bias"] = _kernels.linear_backward(
            grad, x, weight
        )
        return grad

    def _norm(self, name, x, keep):
        gamma, beta = self.params[name + ".norm.gamma"], self.params[name + ".norm.beta"]
        return _kernels.layer_norm(x, gamma, beta, self.config.eps, keep)

    def _norm_backward(self, name, grad, cache, grads):
        gamma = self.params[name + ".norm.gamma"]
        grad, grads[name + ".norm.gamma"], grads[name + ".norm.beta"] = (
            _kernels.layer_norm_backward(grad, cache, gamma)
        )
        return grad

    def _drop(self, x, rng):
        rate = self.config.dropout
        return (x, None) if rng is None or rate == 0 else dropout(x, rate, rng)

    def _thin_weights(self, rng):
        rate = self.config.attention_dropout
        return None if rng is None or rate == 0 else lambda weights: dropout(weights, rate, rng)

    # On disk

    def save(self, path):
        """Write configuration and parameters to an .npz file that needs no pickle to read."""
        config = json.dumps(dataclasses.asdict(self.config))
        with whole_file(path) as file:
            np.savez(file, config=np.array(config), **self.params)

    @classmethod
    def load(cls, path):
        """The encoder that `save` wrote. Raises ValueError if the file is not one."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            config = EncoderConfig(**json.loads(str(arrays.pop("config"))))
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"Encoder.load: expected a file that Encoder.save wrote, got {path} ({error})"
            ) from None
        return cls(config, arrays)


def _times(grad, scale):
    return grad if scale is None else grad * scale
