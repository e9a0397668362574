"""Lesson 09's exercises: read a checkpoint, compare sentences, probe, choose what trains."""

import json
import re

import numpy as np

from course.exercises import Case, Mistake, register
from course.exercises.lesson04 import CANCELLATION, LARGE, LARGE_WHY
from solutions import pretrained as solution

# --- tensor_from_bytes ----------------------------------------------------------------------------


def _file(tensors):
    """The bytes of a safetensors file, its tensors in the order given."""
    header, body = {}, b""
    for name, array in tensors.items():
        data = array.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps({"__metadata__": {"format": "np"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def _bytes_case(name, **shapes):
    return lambda rng: (
        (_file({n: rng.normal(size=shape) for n, shape in shapes.items()}), name),
        {},
    )


def _parsed(data, order="little"):
    size = int.from_bytes(data[:8], order)
    return size, json.loads(data[8 : 8 + size])


def _from_start(data, name):
    _, header = _parsed(data)
    first, stop = header[name]["data_offsets"]
    return np.frombuffer(data[first:stop], "<f4").reshape(header[name]["shape"])


def _from_eight(data, name):
    _, header = _parsed(data)
    first, stop = header[name]["data_offsets"]
    return np.frombuffer(data[8 + first : 8 + stop], "<f4").reshape(header[name]["shape"])


def _without_eight(data, name):
    size, header = _parsed(data)
    first, stop = header[name]["data_offsets"]
    return np.frombuffer(data[size + first : size + stop], "<f4").reshape(header[name]["shape"])


def _flat(data, name):
    return solution.tensor_from_bytes(data, name).ravel()


def _column_order(data, name):
    array = solution.tensor_from_bytes(data, name)
    return array.ravel().reshape(array.shape, order="F")


def _big_endian(data, name):
    size, header = _parsed(data)
    first, stop = header[name]["data_offsets"]
    part = data[8 + size + first : 8 + size + stop]
    return np.frombuffer(part, ">f4").astype("f4").reshape(header[name]["shape"])


def _as_double(data, name):
    size, header = _parsed(data)
    first, stop = header[name]["data_offsets"]
    return np.frombuffer(data[8 + size + first : 8 + size + stop], "<f8")


def _as_double_shaped(data, name):
    return _as_double(data, name).reshape(_parsed(data)[1][name]["shape"])


def _header_cut(data, name):
    size = int.from_bytes(data[:8], "little")
    first, stop = json.loads(data[8:size])[name]["data_offsets"]
    return np.frombuffer(data[8 + size + first : 8 + size + stop], "<f4")


def _big_length(data, name):
    size, header = _parsed(data, "big")
    first, stop = header[name]["data_offsets"]
    return np.frombuffer(data[8 + size + first : 8 + size + stop], "<f4")


def _first_tensor(data, name):
    _, header = _parsed(data)
    return solution.tensor_from_bytes(data, next(n for n in header if n != "__metadata__"))


def _by_struct(data, name):
    import struct

    (size,) = struct.unpack("<Q", data[:8])
    about = json.loads(data[8 : size + 8].decode())[name]
    body = data[size + 8 :]
    first, stop = about["data_offsets"]
    count = (stop - first) // 4
    return np.array(struct.unpack(f"<{count}f", body[first:stop]), "f4").reshape(about["shape"])


def _by_count(data, name):
    size, header = _parsed(data)
    about = header[name]
    count = int(np.prod(about["shape"]))
    at = 8 + size + about["data_offsets"][0]
    return np.frombuffer(data, "<f4", count=count, offset=at).reshape(about["shape"])


register(
    name="tensor_from_bytes",
    lesson="09",
    reference=solution.tensor_from_bytes,
    cases=[
        Case("the only tensor, (2, 3)", _bytes_case("w", w=(2, 3)), why="rows, not columns"),
        Case("a header without blanks at its end", _bytes_case("matrix", matrix=(3, 2)),
             why="every byte of it counts"),
        Case("the second of three", _bytes_case("bias", w=(2, 2), bias=(4,), z=(6, 1))),
        Case("a large table behind a long header",
             _bytes_case("t", **{f"name_{i}": (1,) for i in range(40)}, t=(5, 30))),
    ],
    mistakes=[
        Mistake("from_start", _from_start,
                "You count the offsets from the beginning of the file. They count from the end of "
                "the header: 8 bytes for its length, then the header itself."),
        Mistake("from_eight", _from_eight,
                "You skip the 8 bytes of the length, but not the header behind them. Offsets count "
                "from the end of the header."),
        Mistake("without_eight", _without_eight,
                "You skip the header, but not the 8 bytes before it that hold its length."),
        Mistake("first_tensor", _first_tensor,
                "You read the first tensor of the file, whatever `name` is."),
        Mistake("flat", _flat,
                "The numbers are right, in one row. The header also says their shape."),
        Mistake("column_order", _column_order,
                "The shape is right, but you fill it column by column. The file goes row by row, "
                "as NumPy does unless told otherwise."),
        Mistake("big_endian", _big_endian,
                "You read each number's four bytes in the wrong order. The file is little-endian, "
                "'<f4' in NumPy's words."),
        Mistake("as_double", _as_double,
                "You read 8 bytes a number. F32 means float32, 4 bytes: '<f4'."),
        Mistake("as_double_shaped", _as_double_shaped,
                "You read 8 bytes a number, so there are half as many as the shape asks for. "
                "np.frombuffer takes floats of 8 bytes unless told otherwise: '<f4' for F32."),
        Mistake("header_cut", _header_cut,
                "You cut the header's last 8 bytes off. It begins at byte 8 and has n bytes: "
                "data[8 : 8 + n]."),
        Mistake("big_length", _big_length,
                "You read the header's length with its large end first, and it comes out huge. "
                "int.from_bytes takes the order as its second argument: 'little'."),
    ],
    also_right=[_by_struct, _by_count],
    hints=[
        "Three parts, one behind the other: 8 bytes that say how long the header is, the header, "
        "the numbers. Begin with int.from_bytes(data[:8], 'little').",
        "json.loads(data[8 : 8 + size]) gives the header. Its entry for `name` has data_offsets "
        "and shape, and the offsets count from byte 8 + size on.",
        "first, stop = header[name]['data_offsets']; np.frombuffer(data[8 + size + first : 8 + "
        "size + stop], dtype='<f4').reshape(header[name]['shape'])",
    ],
)  # fmt: skip

# --- course_name ----------------------------------------------------------------------------------


def _name_case(*names):
    """One name a case would be many: the exercise takes one, so each is its own case."""
    return [Case(name, lambda rng, name=name: ((name,), {})) for name in names]


def _digit(name):
    found = solution.course_name(name)
    if found is None or not found.startswith("layers."):
        return found
    parts = found.split(".")
    return ".".join([parts[0], parts[1][:1], *parts[2:]])


def _norm_kept(name):
    found = solution.course_name(name)
    if found is not None and ".norm." in found:
        found = found.replace("gamma", "weight").replace("beta", "bias")
    return found


def _norms_mixed(name):
    found = solution.course_name(name)
    if found is not None and found.startswith("layers.") and ".norm." in found:
        return found.replace("feed_forward.norm", "attention.norm")
    return found


def _prefix_needed(name):
    return solution.course_name(name) if name.startswith("bert.") else None


def _prefix_kept(name):
    return None if name.startswith("bert.") else solution.course_name(name)


def _output_mixed(name):
    found = solution.course_name(name)
    return found and found.replace("feed_forward.output", "attention.output")


def _guess_unknown(name):
    found = solution.course_name(name)
    return name.removeprefix("bert.") if found is None else found


def _key_only(name):
    found = solution.course_name(name)
    if found and ".qkv." in found:
        return found.replace("qkv", name.split(".")[-2])
    return found


def _split_unguarded(name):
    name = name.removeprefix("bert.")
    if name in solution.EMBEDDING_NAMES:
        return solution.EMBEDDING_NAMES[name]
    parts = name.split(".")
    part, kind = solution.LAYER_NAMES[".".join(parts[3:-1])], parts[-1]
    if part.endswith("norm"):
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    return f"layers.{parts[2]}.{part}.{kind}"


def _match_unguarded(name):
    name = name.removeprefix("bert.")
    if name in solution.EMBEDDING_NAMES:
        return solution.EMBEDDING_NAMES[name]
    match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
    part, kind = solution.LAYER_NAMES[match[2]], match[3]
    if part.endswith("norm"):
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    return f"layers.{match[1]}.{part}.{kind}"


def _by_replace(name):
    name = name.removeprefix("bert.")
    known = {
        "embeddings.word_embeddings.weight": "embeddings.token",
        "embeddings.position_embeddings.weight": "embeddings.position",
        "embeddings.token_type_embeddings.weight": "embeddings.segment",
        "embeddings.LayerNorm.weight": "embeddings.norm.gamma",
        "embeddings.LayerNorm.bias": "embeddings.norm.beta",
    }
    if name in known:
        return known[name]
    parts = name.split(".")
    if parts[:2] != ["encoder", "layer"] or len(parts) < 5 or not parts[2].isdigit():
        return None
    kind, inside = parts[-1], ".".join(parts[3:-1])
    table = {
        "attention.self.query": "attention.qkv",
        "attention.self.key": "attention.qkv",
        "attention.self.value": "attention.qkv",
        "attention.output.dense": "attention.output",
        "intermediate.dense": "feed_forward.inner",
        "output.dense": "feed_forward.output",
    }
    if kind in ("weight", "bias") and inside in table:
        return f"layers.{parts[2]}.{table[inside]}.{kind}"
    norms = {"attention.output.LayerNorm": "attention", "output.LayerNorm": "feed_forward"}
    if kind in ("weight", "bias") and inside in norms:
        return f"layers.{parts[2]}.{norms[inside]}.norm.{'gamma' if kind == 'weight' else 'beta'}"
    return None


def _by_search(name):
    small = solution.EncoderConfig(1, 1, 13, 1, 1, 1)
    names = solution.checkpoint_names(small)
    bare = name[5:] if name[:5] == "bert." else name
    return solution.course_name(bare) if bare in names else None


register(
    name="course_name",
    lesson="09",
    reference=solution.course_name,
    cases=[
        *_name_case(
            "encoder.layer.3.attention.self.query.weight",
            "encoder.layer.0.attention.self.key.bias",
            "encoder.layer.10.attention.self.value.weight",
            "encoder.layer.1.attention.output.dense.weight",
            "encoder.layer.1.attention.output.LayerNorm.weight",
            "encoder.layer.2.intermediate.dense.bias",
            "encoder.layer.12.output.dense.weight",
            "encoder.layer.4.output.LayerNorm.bias",
            "embeddings.word_embeddings.weight",
            "embeddings.position_embeddings.weight",
            "embeddings.token_type_embeddings.weight",
            "embeddings.LayerNorm.weight",
            "embeddings.LayerNorm.bias",
            "bert.encoder.layer.5.output.dense.bias",
            "bert.embeddings.word_embeddings.weight",
            "pooler.dense.weight",
            "encoder.layer.3.adapter.weight",
            "encoder.layer.x.output.dense.weight",
        )
    ],
    mistakes=[
        Mistake("prefix_needed", _prefix_needed,
                "You expect every name to begin with 'bert.'. Some checkpoints have the prefix, "
                "others do not: remove it if it is there."),
        Mistake("prefix_kept", _prefix_kept,
                "Names that begin with 'bert.' come out as unknown. Remove the prefix first."),
        Mistake("digit", _digit,
                "Layer 10 became layer 1: a number may have more than one digit."),
        Mistake("norm_kept", _norm_kept,
                "A LayerNorm's weight and bias are called gamma and beta in the course."),
        Mistake("norms_mixed", _norms_mixed,
                "Each layer has two LayerNorms. 'attention.output.LayerNorm' follows the "
                "attention, 'output.LayerNorm' the feed-forward network."),
        Mistake("output_mixed", _output_mixed,
                "'output.dense' belongs to the feed-forward network; 'attention.output.dense' to "
                "the attention. Compare the whole of what stands behind the layer's number."),
        Mistake("key_only", _key_only,
                "Query, key and value each kept a name of their own. The course holds them in one "
                "array: all three are attention.qkv."),
        Mistake("guess_unknown", _guess_unknown,
                "A name that is not in the table must give None, so that a checkpoint with parts "
                "that our encoder lacks can be refused."),
        Mistake("split_unguarded", _split_unguarded,
                "Right for every name that the tables know. For others you look up what is not "
                "there: test with `in` first, test that the layer is a number, else return None."),
        Mistake("match_unguarded", _match_unguarded,
                "Right for every name that the tables know. re.fullmatch gives None for a name of "
                "another form, and the table has no entry for an unknown part: return None then."),
    ],
    also_right=[_by_replace, _by_search],
    hints=[
        "Remove 'bert.' if it is there. Then there are two kinds of names: five of embeddings, and "
        "encoder.layer.N.(part).(weight or bias).",
        "re.fullmatch(r'encoder\\.layer\\.(\\d+)\\.(.+)\\.(weight|bias)', name) takes a layer's "
        "name apart. LAYER_NAMES has the part; a part that ends in 'norm' says gamma and beta.",
        "if name in EMBEDDING_NAMES: return EMBEDDING_NAMES[name]; if no match, or match[2] not in "
        "LAYER_NAMES: return None; else f'layers.{int(match[1])}.{part}.{kind}'.",
    ],
)  # fmt: skip

# --- fuse -----------------------------------------------------------------------------------------


def _fuse_case(out, width):
    return lambda rng: (tuple(rng.normal(size=(out, width)) for _ in range(3)), {})


register(
    name="fuse",
    lesson="09",
    reference=solution.fuse,
    cases=[
        Case("three of (2, 3)", _fuse_case(2, 3), why="in and out differ"),
        Case("three of (4, 4)", _fuse_case(4, 4), why="here a forgotten transpose fits"),
    ],
    mistakes=[
        Mistake("not_turned", lambda query, key, value: np.concatenate([query, key, value], 1),
                "You put them side by side as they are stored, (out, in). The course multiplies "
                "x @ weight with (in, out): transpose each one. On square weights nothing would "
                "fail, and every number would be wrong."),
        Mistake("stacked", lambda query, key, value: np.concatenate([query, key, value]),
                "You stacked them on top of each other, and did not transpose. Side by side means "
                "along axis 1, after transposing each."),
        Mistake("turned_and_stacked",
                lambda query, key, value: np.concatenate([query.T, key.T, value.T], axis=0),
                "Transposed, but on top of each other. Each token's vector meets all three, so "
                "they stand side by side: axis 1."),
        Mistake("order", lambda query, key, value: np.concatenate([key.T, query.T, value.T], 1),
                "Right form, wrong order: query first, then key, then value."),
        Mistake("order_qvk", lambda query, key, value: np.concatenate([query.T, value.T, key.T], 1),
                "Right form, wrong order: key comes before value."),
        Mistake("interleaved", lambda query, key, value: np.stack(
                    [query.T, key.T, value.T], axis=-1).reshape(query.shape[1], -1),
                "The columns alternate: query, key, value, query, ... The first third of the "
                "columns must be the query's, then the key's, then the value's."),
        Mistake("axes", lambda query, key, value: np.stack([query.T, key.T, value.T]),
                "Three arrays on a new axis. The result has two axes: (in, 3 * out)."),
    ],
    also_right=[
        lambda query, key, value: np.concatenate([query, key, value], axis=0).T,
        lambda query, key, value: np.hstack([np.transpose(w) for w in (query, key, value)]),
    ],
    hints=[
        "What shape has `query`, and what shape does x @ weight need?",
        "Transpose each of the three, then put them side by side along the axis of the outputs.",
        "np.concatenate([query.T, key.T, value.T], axis=1)",
    ],
)  # fmt: skip

# --- cosine_similarity ----------------------------------------------------------------------------


def _vectors(n, m, d, zero=False):
    def make(rng):
        a, b = rng.normal(size=(n, d)), 2 * rng.normal(size=(m, d))
        if zero:
            a[0] = 0
            b[-1] = 0
        return (a, b), {}

    return make


def _lengths(a, b):
    return np.linalg.norm(a, axis=1)[:, None], np.linalg.norm(b, axis=1)


def _pairs_only(a, b):
    n = min(len(a), len(b))
    la, lb = _lengths(a[:n], b[:n])
    return (a[:n] * b[:n]).sum(axis=1) / (la[:, 0] * lb)


def _cosine_loop(a, b):
    out = np.zeros((len(a), len(b)))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            size = float(np.sqrt((x**2).sum() * (y**2).sum()))
            out[i, j] = 0.0 if size == 0 else float((x * y).sum()) / size
    return out


def _cosine_unit(a, b):
    def unit(x):
        length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        return np.divide(x, length, out=np.zeros_like(x), where=length > 0)

    return np.einsum("nd,md->nm", unit(a), unit(b))


def _no_guard(a, b):
    la, lb = _lengths(a, b)
    with np.errstate(all="ignore"):
        return a @ b.T / (la * lb)


def _only(which):
    def wrong(a, b):
        la, lb = _lengths(a, b)
        size = la if which == "a" else lb[None, :]
        return a @ b.T / np.where(size == 0, 1, size)

    return wrong


def _squared(a, b):
    size = (a**2).sum(1)[:, None] * (b**2).sum(1)
    return a @ b.T / np.where(size == 0, 1, size)


def _whole_norm(a, b):
    return a @ b.T / (np.linalg.norm(a) * np.linalg.norm(b))


def _columns(a, b):
    return (a / np.linalg.norm(a, axis=0)) @ (b / np.linalg.norm(b, axis=0)).T


def _row_by_row(a, b):
    return (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def _distance(a, b):
    return 1 - _cosine_loop(a, b)


register(
    name="cosine_similarity",
    lesson="09",
    reference=solution.cosine_similarity,
    cases=[
        Case("2 vectors and 3, width 4", _vectors(2, 3, 4), why="n and m differ"),
        Case("3 vectors and 3, width 3", _vectors(3, 3, 3)),
        Case("a row of zeros in each", _vectors(3, 2, 4, zero=True), why="0 / 0"),
        Case("vectors as short as 0.00000000002",
             lambda rng: (tuple(2e-11 * x for x in _vectors(2, 3, 4)(rng)[0]), {}),
             why="the angle does not depend on the lengths; a small number below would"),
    ],
    mistakes=[
        Mistake("dot", lambda a, b: a @ b.T,
                "That is the dot product. A long vector then looks similar to everything: divide "
                "by both lengths."),
        Mistake("pairs", _pairs_only,
                "You compare row i of a with row i of b. Every row meets every row: (n, m)."),
        Mistake("one_length", _only("a"),
                "You divide by the lengths of a alone. Both vectors' lengths belong below."),
        Mistake("other_length", _only("b"),
                "You divide by the lengths of b alone. Both vectors' lengths belong below."),
        Mistake("squared", _squared,
                "You divide by the squared lengths. The length is the root of the sum of squares."),
        Mistake("whole_norm", _whole_norm,
                "np.linalg.norm without an axis gives one number for the whole matrix. You need "
                "one length for each row: axis=1."),
        Mistake("columns", _columns,
                "You divide by the lengths of the columns. A vector is a row: axis=1."),
        Mistake("row_by_row", _row_by_row,
                "a * b pairs row i of a with row i of b, and fails where their numbers differ. "
                "Every row meets every row in a matrix product: a @ b.T is (n, m)."),
        Mistake("distance", _distance,
                "That is 1 minus the cosine, a distance: small for similar vectors. The "
                "similarity itself is wanted."),
        Mistake("zero", _no_guard,
                "Right, but a row of zeros gives 0 / 0. It has no direction: let it be 0 similar "
                "to everything."),
        Mistake("small_number", lambda a, b: a @ b.T / (np.multiply(*_lengths(a, b)) + 1e-8),
                "You keep the product of the lengths away from 0 with a small number. Short "
                "vectors then seem similar to nothing. Divide by 1 where it is 0, and by the "
                "lengths elsewhere."),
        Mistake("small_number_each", lambda a, b: (a / np.maximum(_lengths(a, b)[0], 1e-8)) @ (
                    b.T / np.maximum(_lengths(a, b)[1], 1e-8)),
                "You keep each length above a small number, and vectors shorter than that seem "
                "similar to nothing. Divide by 1 where a length is 0, and by the lengths "
                "elsewhere."),
    ],
    also_right=[_cosine_loop, _cosine_unit],
    hints=[
        "The dot product of two vectors, divided by the length of each.",
        "a @ b.T is (n, m). The lengths are (n,) and (m,); as a column times a row they are "
        "(n, m) too.",
        "lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1); divide by it, "
        "but by 1 where it is 0.",
    ],
)  # fmt: skip

# --- search ---------------------------------------------------------------------------------------


def _search_case(n, d, top_k, tie=False):
    def make(rng):
        vectors = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, (n, 1))
        if tie:
            vectors[3] = vectors[1]
        return (rng.normal(size=d), vectors), ({} if top_k is None else {"top_k": top_k})

    return make


def _ranked(similarity, top_k, worst=False):
    order = np.argsort(similarity if worst else -similarity, kind="stable")[:top_k]
    return [(int(i), float(similarity[i])) for i in order]


def _search_dot(query, vectors, top_k=3):
    return _ranked(vectors @ query, top_k)


def _search_worst(query, vectors, top_k=3):
    return _ranked(solution.cosine_similarity(query[None], vectors)[0], top_k, worst=True)


def _search_distance(query, vectors, top_k=3):
    return _ranked(-np.linalg.norm(vectors - query, axis=1), top_k)


def _search_ascending(query, vectors, top_k=3):
    return solution.search(query, vectors, top_k)[::-1]


def _search_tie(query, vectors, top_k=3):
    similarity = solution.cosine_similarity(query[None], vectors)[0]
    return [(int(i), float(similarity[i])) for i in np.argsort(similarity, kind="stable")[::-1]][
        :top_k
    ]


def _alike(rng, n):
    """Vectors of whole numbers with whole lengths: equal similarities are equal to the last bit."""
    directions = np.array([[3.0, 4.0], [4.0, 3.0], [1.0, 0.0], [0.0, 1.0], [-3.0, 4.0]])
    return directions[rng.integers(5, size=n)] * rng.integers(1, 5, size=(n, 1))


def _search_unstable(query, vectors, top_k=3):
    similarity = solution.cosine_similarity(query[None], vectors)[0]
    return [(int(i), float(similarity[i])) for i in np.argsort(-similarity)[:top_k]]


def _search_always_three(query, vectors, top_k=3):
    return solution.search(query, vectors, 3)


def _search_indices(query, vectors, top_k=3):
    return [i for i, _ in solution.search(query, vectors, top_k)]


def _search_swapped(query, vectors, top_k=3):
    return [(s, i) for i, s in solution.search(query, vectors, top_k)]


def _search_sorted(query, vectors, top_k=3):
    similarity = [
        float(v @ query / (np.linalg.norm(v) * np.linalg.norm(query) or 1)) for v in vectors
    ]
    return sorted(enumerate(similarity), key=lambda pair: (-pair[1], pair[0]))[:top_k]


def _search_repeated(query, vectors, top_k=3):
    left = list(solution.cosine_similarity(query[None], vectors)[0])
    found = []
    while len(found) < min(top_k, len(vectors)):
        best = int(np.argmax(left))
        found.append((best, float(left[best])))
        left[best] = -np.inf
    return found


register(
    name="search",
    lesson="09",
    reference=solution.search,
    cases=[
        Case("3 of 8", _search_case(8, 5, None)),
        Case("the best alone, of 6", _search_case(6, 4, 1)),
        Case("5 of 4", _search_case(4, 4, 5), why="fewer texts than asked for"),
        Case("two texts alike", _search_case(6, 4, 6, tie=True), why="the lower index first"),
        Case("20 of 60 texts in five directions",
             lambda rng: ((np.array([1.0, 0.0]), _alike(rng, 60)), {"top_k": 20}),
             why="np.argsort keeps equal numbers in order only with kind='stable'"),
    ],
    mistakes=[
        Mistake("worst", _search_worst,
                "You return the least similar texts. np.argsort sorts upward: sort the negative "
                "similarities."),
        Mistake("ascending", _search_ascending,
                "The right texts, the best one last. Best first."),
        Mistake("dot", _search_dot,
                "You rank by dot product, which favors long vectors. Use cosine_similarity."),
        Mistake("distance", _search_distance,
                "You rank by distance between the points. Vectors of different length can have "
                "the same direction: use cosine_similarity."),
        Mistake("always_three", _search_always_three, "You return three, whatever top_k is."),
        Mistake("indices", _search_indices,
                "The right indices, without their similarities: pairs (index, similarity)."),
        Mistake("swapped", _search_swapped, "The pairs are (index, similarity), in this order."),
        Mistake("tie", _search_tie,
                "Of two equally similar texts the one with the lower index comes first. Reversing "
                "an upward sort turns equal ones around too."),
        Mistake("tie_unstable", lambda query, vectors, top_k=3: [
                    (int(i), float(s[i])) for s in solution.cosine_similarity(query[None], vectors)
                    for i in np.argsort(s)[::-1][:top_k]],
                "np.argsort leaves equally similar texts in any order, and [::-1] turns them "
                "around. The lower index comes first: sort -similarity, with kind='stable'."),
        Mistake("unstable", _search_unstable,
                "np.argsort leaves equally similar texts in any order. With kind='stable' the "
                "lower index stays first."),
    ],
    also_right=[_search_sorted, _search_repeated],
    hints=[
        "cosine_similarity takes two matrices. query[None, :] is a matrix with one row.",
        "np.argsort(-similarity, kind='stable') gives the indices, best first. Take top_k.",
        "similarity = cosine_similarity(query[None, :], vectors)[0]; then [(int(i), "
        "float(similarity[i])) for i in np.argsort(-similarity, kind='stable')[:top_k]]",
    ],
)  # fmt: skip

# --- standardize ----------------------------------------------------------------------------------


def _rows_case(n, m, d, flat=False):
    def make(rng):
        train, other = rng.normal(2, 3, (n, d)), rng.normal(-1, 1, (m, d))
        if flat:
            train[:, 1] = 5.0
        return (train, other), {}

    return make


def _by_own(train, other):
    return solution.standardize(train, train)[0], solution.standardize(other, other)[0]


def _by_own_unguarded(train, other):
    with np.errstate(all="ignore"):
        return tuple((x - x.mean(axis=0)) / x.std(axis=0) for x in (train, other))


def _by_both(train, other):
    both = np.concatenate([train, other])
    return solution.standardize(both, train)[1], solution.standardize(both, other)[1]


def _by_rows(train, other):
    def each(x):
        return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)

    return each(train), each(other)


def _by_all(train, other):
    return (train - train.mean()) / train.std(), (other - train.mean()) / train.std()


def _scaled(divide, shift=True):
    def wrong(train, other):
        mean = train.mean(axis=0) if shift else 0
        size = divide(train)
        size = np.where(size == 0, 1, size)
        return (train - mean) / size, (other - mean) / size

    return wrong


def _cancelled_deviation(train):
    return np.sqrt(np.maximum((train**2).mean(axis=0) - train.mean(axis=0) ** 2, 0))


def _unguarded(train, other):
    with np.errstate(all="ignore"):
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        return (train - mean) / deviation, (other - mean) / deviation


def _small_added(train, other):
    mean, deviation = train.mean(axis=0), train.std(axis=0) + 1e-8
    return (train - mean) / deviation, (other - mean) / deviation


def _only_train(train, other):
    return solution.standardize(train, other)[0], other


def _standardize_loop(train, other):
    a, b = train.copy(), other.copy()
    for j in range(train.shape[1]):
        m = sum(train[:, j]) / len(train)
        s = (sum((train[:, j] - m) ** 2) / len(train)) ** 0.5
        s = s if np.ptp(train[:, j]) > 0 else 1.0
        a[:, j], b[:, j] = (a[:, j] - m) / s, (b[:, j] - m) / s
    return a, b


def _standardize_einsum(train, other):
    mean = np.einsum("nd->d", train) / len(train)
    spread = np.sqrt(np.einsum("nd,nd->d", train - mean, train - mean) / len(train))
    spread[np.ptp(train, axis=0) == 0] = 1
    return (train - mean) / spread, (other - mean) / spread


register(
    name="standardize",
    lesson="09",
    reference=solution.standardize,
    parts=("train", "other"),
    cases=[
        Case("5 rows and 3, of 4 columns", _rows_case(5, 3, 4)),
        Case("a column that does not vary", _rows_case(6, 2, 3, flat=True), why="0 / 0"),
        Case("one other row", _rows_case(4, 1, 2)),
        Case("0, 1, 2 and -1 beside a mean of 134 million",
             lambda rng: ((LARGE[:, None].copy(), LARGE[:2, None].copy()), {}), why=LARGE_WHY),
    ],
    mistakes=[
        Mistake("by_own", _by_own,
                "You bring each part to mean 0 by its own mean. Then test rows are moved by what "
                "they have in common with each other, and a single one becomes 0. Use the "
                "training rows' mean and deviation for both."),
        Mistake("by_own_unguarded", _by_own_unguarded,
                "Each part has a mean and a deviation of its own here. Use the training rows' for "
                "both. Then mind a column that does not vary: divide it by 1, not by 0."),
        Mistake("by_both", _by_both,
                "You measure mean and deviation over all rows. That lets the test data into the "
                "training: use the training rows alone."),
        Mistake("by_rows", _by_rows,
                "You standardize each row (as LayerNorm does). Here it is each column: axis=0."),
        Mistake("by_all", _by_all,
                "One mean for the whole matrix. Each column has its own: axis=0."),
        Mistake("only_train", _only_train,
                "The other rows are untouched. They must be moved the same way, or the probe "
                "reads them in the wrong units."),
        Mistake("variance", _scaled(lambda train: train.var(axis=0)),
                "You divide by the variance. The deviation is its root."),
        Mistake("no_shift", _scaled(lambda train: train.std(axis=0), shift=False),
                "You divide, but do not subtract the mean."),
        Mistake("sample", _scaled(lambda train: train.std(axis=0, ddof=1)),
                "You divide by n - 1 inside the deviation. Here it is n, NumPy's default."),
        Mistake("unguarded", _unguarded,
                "Right, but a column that does not vary gives 0 / 0. Divide it by 1."),
        Mistake("small_added", _small_added,
                "Right where columns vary. Where one does not, you divide by the small number that "
                "you add, and another row's difference becomes huge. Divide by 1 there."),
        Mistake("cancellation", _scaled(_cancelled_deviation), CANCELLATION),
    ],
    also_right=[_standardize_loop, _standardize_einsum],
    hints=[
        "Which rows may you look at to find the mean?",
        "Mean and deviation of `train` along axis 0, used for both. Where the deviation is 0, "
        "divide by 1.",
        "deviation = np.where(train.std(axis=0) == 0, 1, train.std(axis=0)); return (train - mean) "
        "/ deviation, (other - mean) / deviation",
    ],
)  # fmt: skip

# --- trained_names --------------------------------------------------------------------------------

_NAMES = ["embeddings.token", "embeddings.norm.gamma"] + [
    f"layers.{i}.{part}" for i in range(13) for part in ("attention.qkv.weight", "x.norm.beta")
]


def _names_case(first):
    return lambda rng: ((list(_NAMES), first), {})


def _layer_of(name):
    return int(name.split(".")[1])


def _as_text(names, first_layer):
    return [n for n in names if n.startswith("layers.") and n.split(".")[1] >= str(first_layer)]


def _first_digit(names, first_layer):
    return [n for n in names if n.startswith("layers.") and int(n[7]) >= first_layer]


def _no_layer(names, first_layer):
    return [n for n in names if int(n.split(".")[1]) >= first_layer]


def _lower_layers(names, first_layer):
    return [n for n in names if n.startswith("layers.") and _layer_of(n) < first_layer]


def _trained_loop(names, first_layer):
    kept, numbers = [], range(first_layer, 1000)
    for name in names:
        if any(name.startswith(f"layers.{i}.") for i in numbers):
            kept.append(name)
    return kept


register(
    name="trained_names",
    lesson="09",
    reference=solution.trained_names,
    cases=[
        Case("from layer 4 of 13", _names_case(4)),
        Case("from layer 10", _names_case(10), why="two digits"),
        Case("all layers", _names_case(0), why="the embeddings stay frozen"),
        Case("none", _names_case(13)),
    ],
    mistakes=[
        Mistake("frozen_ones",
                lambda names, first_layer: [
                    n for n in names if n not in solution.trained_names(names, first_layer)],
                "Those are the frozen ones. Return the names that train: from first_layer up."),
        Mistake("lower_layers", _lower_layers,
                "You return the layers below first_layer. Those are frozen; the others train."),
        Mistake("no_layer", _no_layer,
                "Not every name has a layer's number: 'embeddings.token' has 'token' in its place. "
                "Look at the first part before you make the second an int."),
        Mistake("above",
                lambda names, first_layer: solution.trained_names(names, first_layer + 1),
                "One layer short: first_layer itself trains too."),
        Mistake("embeddings_too",
                lambda names, first_layer: [n for n in names if not n.startswith("layers.")
                                            or _layer_of(n) >= first_layer],
                "The embeddings are in your list. They lie below every layer: if layer 0 is "
                "frozen they must be, and their gradient would have to go through all of it."),
        Mistake("one_layer",
                lambda names, first_layer: [
                    n for n in names if n.startswith(f"layers.{first_layer}.")],
                "You keep one layer. All layers from first_layer up to the top train."),
        Mistake("as_text", _as_text,
                "You compare the numbers as text, and '10' comes before '4' there. Make them int."),
        Mistake("first_digit", _first_digit,
                "You read one digit of the layer's number. Layer 10 has two: split at the dots."),
    ],
    also_right=[
        lambda names, first_layer: [n for n in names if n.startswith("layers.")
                                    and _layer_of(n) >= first_layer],
        _trained_loop,
    ],
    hints=[
        "'layers.10.attention.qkv.weight'.split('.') gives the parts of a name.",
        "Keep a name if its first part is 'layers' and its second, as an int, is at least "
        "first_layer.",
        "parts = name.split('.'); if parts[0] == 'layers' and int(parts[1]) >= first_layer: "
        "kept.append(name)",
    ],
)  # fmt: skip
