"""Hidden states of many sentences when nothing is trained: no padding, and all processors.

The formulas are those of `encoder`, the loops those of `_kernels`. What is different here:

- Sentences stand one behind the other, (tokens, d), without padding between them. All parts of a
  layer but attention treat each token by itself, so they never notice.
- Sentences of like length are taken together in portions that stay near the cache, and the portions
  are shared out to threads.
- Attention weights are not kept: a few sentences' scores at a time are made and used up.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from solutions import _kernels

_TOKENS = 1024  # of a portion: its arrays stay near the cache, its products are large enough
_SCORES = 2**18  # of attention at a time, 1 MB


def portions(lengths):
    """Arrays of sentence numbers, about _TOKENS tokens each, like lengths together; no empty ones.

    At least one for each thread, where there are sentences enough.
    """
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    total = np.cumsum(lengths[order])
    if len(order) == 0:
        return []
    parts = max(-(-int(total[-1]) // _TOKENS), min(threads(), int(total[-1]) // 128, len(order)), 1)
    cuts = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts)
    return [part for part in np.split(order, cuts) if len(part)]


def runs(lengths):
    """[(first token, sentences, length)]: neighbors of one length together."""
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(starts, append=len(lengths))
    firsts = np.cumsum(lengths) - lengths
    return [(int(firsts[s]), int(n), int(lengths[s])) for s, n in zip(starts, counts)]


def threads():
    """How many threads BLAS may use, as it reads it from the environment; else the processors."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            return max(1, int(os.environ[name]))
    return os.cpu_count() or 1


def side_by_side(function, parts):
    """Call function(part) for all parts, in as many threads as BLAS uses.

    A matrix product uses all processors by itself; whatever stands between two of them does not,
    and while one thread is there, the other one multiplies.
    """
    workers = min(threads(), len(parts))
    if workers < 2:
        for part in parts:
            function(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(function, parts))


def attention(qkv, groups, num_heads, visible):
    """Attended values (tokens, d) of sentences that stand one behind the other, without padding.

    qkv: (tokens, 3 * d), used up. groups: [(first token, sentences, their length)]. visible: a
    function from a length to what softmax takes. The weights are not kept: a few sentences' scores
    at a time stay in the cache, and it is the values' sum that is divided, not each weight.
    """
    tokens, width = qkv.shape[0], qkv.shape[1] // 3
    context = np.empty((tokens, width), qkv.dtype)
    qkv[:, :width] *= (width // num_heads) ** -0.5
    # |query . key| <= |query| |key|: where that is small for the longest of them, it is for all
    longest = [
        np.einsum("thd,thd->th", part, part).max()
        for part in qkv[:, : 2 * width].reshape(tokens, 2, num_heads, -1).transpose(1, 0, 2, 3)
    ]
    safe = longest[0] * longest[1] < _kernels._SAFE**2
    for first, sentences, length in groups:
        most = max(1, _SCORES // (num_heads * length * length))
        mask = visible(length)
        for start in range(0, sentences, most):
            count = min(most, sentences - start)
            rows = slice(first + start * length, first + (start + count) * length)
            query, key, value = _kernels._heads(qkv[rows], count, num_heads, 3)
            scores = query @ _kernels._transposed(key)
            out = _kernels._heads(context[rows], count, num_heads, 1)[0]
            if safe:
                np.exp(scores, out=scores)
                if mask is not None:
                    scores *= mask
                total = _kernels.row_sums(scores).reshape(scores.shape[:-1])
                np.matmul(scores, value, out=out)
                out /= total[..., None]
            else:
                np.matmul(_kernels.softmax(scores, mask), value, out=out)
    return context
