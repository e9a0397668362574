"""Sentences as vectors, and search by what they mean.

Lesson 09. all-MiniLM-L6-v2 was trained so that the mean of a sentence's hidden states says what the
sentence is about: sentences that mean nearly the same point in nearly the same direction.

Reimers and Gurevych, 2019, "Sentence-BERT", https://arxiv.org/abs/1908.10084
"""

import numpy as np

from solutions import _checks
from solutions._checks import checked, describe
from solutions.embeddings import pad_batch
from solutions.text_classification import mean_pool


def _cosine_similarity_input(a, b):
    _checks.floats("cosine_similarity: a", a, shape=("n", "d"))
    _checks.floats("cosine_similarity: b", b, shape=("m", a.shape[1]))


@checked(_cosine_similarity_input)
def cosine_similarity(a, b):
    """Cosine of the angle between every row of a and every row of b: (n, d) and (m, d) to (n, m).

    From 1 (same direction) over 0 to -1, whatever the lengths; 0 for a row of zeros.
    """
    lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return a @ b.T / np.where(lengths == 0, 1, lengths)


def _search_input(query, vectors, top_k=3):
    _checks.floats("search: vectors", vectors, shape=("texts", "d"))
    _checks.floats("search: query", query, shape=(vectors.shape[1],))
    _checks.whole("search: top_k", top_k, 1)


@checked(_search_input)
def search(query, vectors, top_k=3):
    """The texts nearest to a query, [(index, similarity), ...], best first, at most `top_k`.

    query: (d,). vectors: (texts, d), one a text. Of equal similarities the lower index comes first.
    """
    similarity = cosine_similarity(query[None, :], vectors)[0]
    best = np.argsort(-similarity, kind="stable")[:top_k]
    return [(int(i), float(similarity[i])) for i in best]


def sentence_vectors(encoder, tokenizer, texts, batch_size=32, max_length=256):
    """One vector of length 1 for each text, (texts, d): the mean of its tokens' hidden states.

    That is the use that all-MiniLM-L6-v2 was trained for. A longer text is cut at `max_length`
    tokens, as its model card says.
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"sentence_vectors: expected a list of texts, got {describe(texts)}")
    most = min(max_length, encoder.config.max_length)
    encodings = [tokenizer.encode(text, max_length=most) for text in texts]
    order = np.argsort([len(e) for e in encodings], kind="stable")
    vectors = np.empty((len(texts), encoder.config.d_model), np.float32)
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        batch = pad_batch([encodings[i] for i in rows])
        vectors[rows] = mean_pool(encoder(**batch), batch["attention_mask"])
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
