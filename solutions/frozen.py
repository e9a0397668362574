"""What a pretrained encoder gives without being trained: probes, and training only the top of it.

Lesson 09. A probe reads one property off the hidden states with a linear map; `FrozenBelow` trains
the layers from one on, and keeps what comes out of the layers below.
"""

import numpy as np

from solutions import _checks
from solutions._checks import checked

# --- 1. Probes ------------------------------------------------------------------------------------


def _standardize_input(train, other):
    _checks.floats("standardize: train", train, shape=("rows", "d"))
    _checks.floats("standardize: other", other, shape=("rows", train.shape[1]))
    if len(train) == 0:
        raise ValueError("standardize: train: expected at least one row, got none")


@checked(_standardize_input)
def standardize(train, other):
    """Both with the mean and deviation of `train` brought to 0 and 1, column by column.

    train: (rows, d). other: (rows, d). The other rows are test data: their own mean and deviation
    stay out of it. A column that does not vary in `train` is only shifted. Returns (train, other).
    """
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation == 0, 1, deviation)
    return (train - mean) / deviation, (other - mean) / deviation


def linear_probe(train, labels, test, strength=100.0):
    """The class of each test row, by least squares on the training rows: what one line can tell.

    train: (rows, d). labels: (rows,) class numbers. test: (rows, d). strength: of the ridge that
    keeps the weights small. One system of equations, solved at once; nothing is trained in steps.
    """
    train, test = standardize(train, test)
    targets = np.eye(int(labels.max()) + 1, dtype=train.dtype)[labels]
    shift = targets.mean(axis=0)
    ridge = train.T @ train + strength * np.eye(train.shape[1], dtype=train.dtype)
    weight = np.linalg.solve(ridge, train.T @ (targets - shift))
    return (test @ weight + shift).argmax(axis=1)


# --- 2. Training the top --------------------------------------------------------------------------


def _trained_names_input(names, first_layer):
    if isinstance(names, str):
        raise ValueError("trained_names: names: expected a list of names, got one str")
    _checks.whole("trained_names: first_layer", first_layer, 0)


@checked(_trained_names_input)
def trained_names(names, first_layer):
    """The names of the encoder's parameters that train when layers below `first_layer` are frozen.

    names: as parameter_shapes(config) has them, in order. Embeddings are below every layer, so they
    are frozen too; with first_layer 0 all layers train, and still not the embeddings.
    """
    kept = []
    for name in names:
        parts = name.split(".")
        if parts[0] == "layers" and int(parts[1]) >= first_layer:
            kept.append(name)
    return kept


class _Trained(dict):
    """The parameters that are trained. A frozen one can be looked up, but is not among them."""

    def __init__(self, every):
        super().__init__()
        self._every = every

    def __missing__(self, name):
        return self._every[name]


class FrozenBelow:
    """An encoder of which only the layers from `first_layer` on are trained.

    It takes an Encoder's place in every head of the course. What comes out of the frozen layers is
    the same each time, so it is computed once for each input and kept: the steps of training are
    shorter by all that lies below. With first_layer = number of layers only the head is trained, on
    features that lie ready. `params` shares its arrays with the encoder.

    What is kept takes at most `room` bytes; what does not fit is computed each time. When the
    frozen parameters change after all (the whole encoder is trained, or gets other weights), what
    is kept is thrown away: each call looks at up to 64 numbers of every array. After changing
    fewer numbers than that by hand, call `forget()`.
    """

    room = 2**30

    def __init__(self, encoder, first_layer):
        _checks.whole("FrozenBelow: first_layer", first_layer, 0, encoder.config.num_layers)
        self.encoder, self.first_layer, self.config = encoder, first_layer, encoder.config
        self.params = _Trained(encoder.params)
        for name in trained_names(list(encoder.params), first_layer):
            self.params[name] = encoder.params[name]
        self.forget()

    def forget(self):
        """Throw away what was kept: every input is computed again when it comes next."""
        self._kept, self._bytes, self._seen = {}, 0, self._sample()

    def _sample(self):
        """Some numbers of each frozen array."""
        frozen = (a for name, a in self.encoder.params.items() if name not in self.params)
        return b"".join(array.ravel()[:: array.size // 64 + 1].tobytes() for array in frozen)

    def __call__(self, input_ids, attention_mask=None, token_type_ids=None):
        """As the encoder's."""
        return self.forward(input_ids, attention_mask, token_type_ids)[0]

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, rng=None, keep=False):
        """As the encoder's; dropout only above the frozen layers."""
        hidden = self.lower(input_ids, attention_mask, token_type_ids)
        return self.encoder.forward_from(self.first_layer, hidden, attention_mask, rng, keep)

    def backward(self, grad_hidden, cache):
        """As the encoder's, for the parameters that are trained."""
        return self.encoder.backward(grad_hidden, cache)

    def layers_and_attention(self, input_ids, attention_mask=None, token_type_ids=None):
        """As the encoder's."""
        return self.encoder.layers_and_attention(input_ids, attention_mask, token_type_ids)

    def lower(self, input_ids, attention_mask=None, token_type_ids=None):
        """What the frozen layers put out, (batch, length, d_model); zeros at padding."""
        self.encoder._check_ids(input_ids, token_type_ids)
        shape = input_ids.shape
        real, segments = np.ones(shape, bool), np.zeros(shape, np.int64)
        if attention_mask is not None:
            _checks.real_tokens("FrozenBelow: attention_mask", attention_mask, shape)
            real = attention_mask.astype(bool)
        if token_type_ids is not None:
            segments = np.where(real, token_type_ids, 0)
        ids = np.where(real, input_ids, 0)
        if self._sample() != self._seen:
            self.forget()

        # Up to its last real token an input is known by its ids, its segments and its mask: padding
        # before or between the real tokens moves them to other positions.
        sizes = np.where(real, np.arange(1, shape[1] + 1), 0).max(axis=1)
        rows_of = zip(ids.astype(np.int64), segments.astype(np.int64), real, sizes)
        keys = [(a[:n].tobytes(), b[:n].tobytes(), c[:n].tobytes()) for a, b, c, n in rows_of]
        kept = self._kept
        found = {key: kept[key] for key in keys if key in kept}
        new = {key: i for i, key in enumerate(keys) if key not in found}
        if new:
            rows = list(new.values())
            most = max(sizes[rows].max(), 1)
            states = self.encoder.forward_to(
                self.first_layer, ids[rows, :most], real[rows, :most], segments[rows, :most]
            )
            for state, key, row in zip(states, new, rows):
                state = state * real[row, :most, None]
                found[key] = state[: sizes[row]].copy()
                self._keep(key, found[key])
        hidden = np.zeros((*shape, self.config.d_model), found[keys[0]].dtype)
        for i, (key, n) in enumerate(zip(keys, sizes)):
            hidden[i, :n] = found[key]
        return hidden

    def _keep(self, key, state):
        if self._bytes + state.nbytes <= self.room:
            self._kept[key] = state
            self._bytes += state.nbytes
