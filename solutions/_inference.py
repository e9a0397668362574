"""Hidden states of many sentences when nothing is trained: no padding, and all processors.

The formulas are those of `encoder`, the loops those of `_kernels`. What is different here:

- Sentences stand one behind the other, (tokens, d), without padding between them. All parts of a
  layer but attention treat each token by itself, so they never notice.
- Sentences of like length are taken together in portions that stay near the cache, and the portions
  are shared out to threads.
- Attention weights are not kept: a few sentences' scores at a time are made and used up.
"""

import contextlib
import ctypes
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from solutions import _kernels

_TOKENS = 1024  # of a portion: its arrays stay near the cache, its products are large enough
_SCORES = 2**18  # of attention at a time, 1 MB


def portions(lengths):
    """Arrays of sentence numbers, about _TOKENS tokens each, like lengths together; no empty ones.

    As many as there are threads, or a multiple, where there are sentences enough.
    """
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    total = np.cumsum(lengths[order])
    if len(order) == 0:
        return []
    parts, workers = -(-int(total[-1]) // _TOKENS), threads()
    if int(total[-1]) >= 128 * workers:
        parts = -(-parts // workers) * workers
    cuts = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts, "right")
    return [part for part in np.split(order, cuts) if len(part)]


def runs(lengths):
    """[(first token, sentences, length)]: neighbors of one length together."""
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(starts, append=len(lengths))
    firsts = np.cumsum(lengths) - lengths
    return [(int(firsts[s]), int(n), int(lengths[s])) for s, n in zip(starts, counts)]


@functools.cache
def _openblas():
    """(get, set) of the number of threads in the OpenBLAS that came with NumPy; None if not it."""
    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs"):
        for file in sorted(folder.glob("*openblas*")):
            with contextlib.suppress(OSError):
                library = ctypes.CDLL(str(file))  # loaded already: this is another handle of it
                for name in ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_"):
                    get = getattr(library, name.format("get_num_threads"), None)
                    put = getattr(library, name.format("set_num_threads"), None)
                    if get and put:
                        return get, put
    return None


def threads():
    """How many threads BLAS uses; 1 if it cannot be asked."""
    return max(1, _openblas()[0]()) if _openblas() else 1


_alone = threading.Lock()


def side_by_side(function, parts):
    """Call function(part) for all parts, in as many threads as BLAS uses, BLAS in one meanwhile.

    A matrix product can use all processors by itself, but what stands between two of them uses one
    only; whole portions side by side use all of them all the time. If BLAS cannot be told to keep
    to one thread, or another call is at it already, the parts come one after the other.
    """
    workers = min(threads(), len(parts))
    if workers > 1 and _alone.acquire(blocking=False):
        before, put = threads(), _openblas()[1]
        try:
            put(1)
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(function, parts))
        finally:
            put(before)
            _alone.release()
    else:
        for part in parts:
            function(part)


def attention(qkv, groups, num_heads, visible):
    """Attended values (tokens, d) of sentences that stand one behind the other, without padding.

    qkv: (tokens, 3 * d). groups: [(first token, sentences, their length)]. visible: a
    function from a length to what softmax takes. The weights are not kept: a few sentences' scores
    at a time stay in the cache, and it is the values' sum that is divided, not each weight.
    """
    width = qkv.shape[1] // 3
    context = np.empty((len(qkv), width), qkv.dtype)
    for first, sentences, length in groups:
        most = max(1, _SCORES // (num_heads * length * length))
        mask = visible(length)
        for start in range(0, sentences, most):
            count = min(most, sentences - start)
            rows = slice(first + start * length, first + (start + count) * length)
            query, key, value = _kernels._heads(qkv[rows], count, num_heads, 3)
            scores = query @ _kernels._transposed(key)
            scores *= query.shape[-1] ** -0.5
            out = _kernels._heads(context[rows], count, num_heads, 1)[0]
            safe = -_kernels._SAFE < scores.min() and scores.max() < _kernels._SAFE
            if not safe:
                np.matmul(_kernels.softmax(scores, mask), value, out=out)
                continue
            np.exp(scores, out=scores)
            if mask is not None:
                scores *= mask
            total = _kernels.row_sums(scores).reshape(count, num_heads, length)
            np.matmul(scores, value, out=out)
            by_token = context[rows].reshape(count, length, num_heads, -1)
            by_token /= total.transpose(0, 2, 1)[..., None]
    return context
