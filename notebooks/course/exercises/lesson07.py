"""Lesson 07's exercises: from hidden states to entities, and to what they are worth."""

import numpy as np

from course.exercises import Case, Mistake, _unstable, register
from solutions import token_classification as solution
from solutions.attention import softmax
from solutions.encoder import linear
from solutions.token_classification import decode_entities, inside, split_label

# --- token_probabilities ------------------------------------------------------------------------


def _head(batch, length, d, labels, dtype="float64"):
    """Arguments of unit scale: hidden states, a weight and a bias that matters."""
    shapes = ((batch, length, d), (d, labels), (labels,))
    return lambda rng: (tuple(rng.normal(size=shape).astype(dtype) for shape in shapes), {})


def _probabilities_loop(hidden_states, weight, bias):
    rows = []
    for sentence in hidden_states:
        tokens = []
        for vector in sentence:
            logits = np.array([vector @ column for column in weight.T]) + bias
            powers = np.exp(logits - logits.max())
            tokens.append(powers / powers.sum())
        rows.append(tokens)
    return np.array(rows)


register(
    name="token_probabilities",
    lesson="07",
    reference=solution.token_probabilities,
    cases=[
        Case("2 sentences of 3 tokens, width 4, 5 labels", _head(2, 3, 4, 5),
             why="all four sizes differ"),
        Case("3 sentences of 3 tokens, width 3, 3 labels", _head(3, 3, 3, 3),
             why="every wrong axis runs here"),
        Case("one sentence of one token", _head(1, 1, 2, 7)),
        Case("float32", _head(2, 2, 4, 3, "float32")),
        Case("a logit of 1000",
             lambda rng: ((np.array([[[1000.0, 0.0]]]), np.eye(2), np.zeros(2)), {})),
        Case("logits of 2000 beside 1999, and a row of -2000",
             lambda rng: ((_unstable.FAR[None].copy(), np.eye(3), np.zeros(3)), {}),
             why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("logits", lambda hidden_states, weight, bias: hidden_states @ weight + bias,
                "These are the logits. They may be negative and do not sum to 1: softmax makes "
                "probabilities of them."),
        Mistake("only_cls",
                lambda hidden_states, weight, bias: softmax(hidden_states[:, 0] @ weight + bias),
                "One row for each sentence: you read [CLS] alone, as lesson 06 does. Here every "
                "token is classified."),
        Mistake("pooled",
                lambda hidden_states, weight, bias:
                softmax(hidden_states.mean(axis=1) @ weight + bias),
                "One row for each sentence: the tokens were averaged before the matrix. Here every "
                "token is classified by itself."),
        Mistake("no_bias", lambda hidden_states, weight, bias: softmax(hidden_states @ weight),
                "The bias is missing. It holds how common each label is: most tokens are O."),
        Mistake("over_tokens",
                lambda hidden_states, weight, bias: softmax(hidden_states @ weight + bias, axis=1),
                "Your softmax runs over the tokens, so they compete for a label. Each token has to "
                "share out its own probability: the last axis."),
        Mistake("over_sentences",
                lambda hidden_states, weight, bias: softmax(hidden_states @ weight + bias, axis=0),
                "Your softmax runs over the sentences of the batch. Use the last axis: the "
                "labels."),
        Mistake("turned",
                lambda hidden_states, weight, bias: softmax(hidden_states @ weight.T + bias),
                "The weight is (d, labels) and fits as it stands: hidden_states @ weight."),
        Mistake("sigmoid",
                lambda hidden_states, weight, bias:
                1 / (1 + np.exp(-np.clip(hidden_states @ weight + bias, -700, 700))),
                "A sigmoid for each label: they do not sum to 1. A token has exactly one label, so "
                "the labels compete: softmax."),
        Mistake("twice",
                lambda hidden_states, weight, bias:
                softmax(softmax(hidden_states @ weight + bias)),
                "softmax twice: the second one makes all labels nearly alike."),
        *_unstable.mistakes(
            lambda softmax: lambda hidden_states, weight, bias: softmax(
                hidden_states @ weight + bias)),
    ],
    also_right=[
        _probabilities_loop,
        lambda hidden_states, weight, bias:
            softmax(np.einsum("btd,dk->btk", hidden_states, weight) + bias),
        lambda hidden_states, weight, bias:
            softmax(linear(hidden_states, weight, bias), axis=2),
    ],
    hints=[
        "One matrix for all tokens. What is the shape of hidden_states @ weight?",
        "NumPy multiplies the last axis: (batch, length, d) @ (d, labels) is (batch, length, "
        "labels). Add the bias; then each token's row must become probabilities.",
        "softmax(linear(hidden_states, weight, bias))",
    ],
)

# --- align_labels -------------------------------------------------------------------------------


def _aligned(word_ids, labels, **options):
    return lambda rng: ((list(word_ids), labels.split()), dict(options))


def _align_wrong(choose):
    """A mistake in the loop: choose(word, previous, labels, all_pieces, place) gives an entry."""

    def align(word_ids, word_labels, all_pieces=False):
        aligned, previous = [], None
        for place, word in enumerate(word_ids):
            aligned.append(choose(word, previous, word_labels, all_pieces, place))
            previous = word
        return aligned

    return align


def _right(word, previous, labels, all_pieces):
    if word is None:
        return -100
    if word != previous:
        return labels[word]
    return inside(labels[word]) if all_pieces else -100


def _repeated(word, previous, labels, all_pieces, place):
    if word is not None and word == previous and all_pieces:
        return labels[word]
    return _right(word, previous, labels, all_pieces)


def _specials_o(word, previous, labels, all_pieces, place):
    return "O" if word is None else _right(word, previous, labels, all_pieces)


def _rest_o(word, previous, labels, all_pieces, place):
    if word is not None and word == previous and not all_pieces:
        return "O"
    return _right(word, previous, labels, all_pieces)


def _inside_always(word, previous, labels, all_pieces, place):
    if word is not None and word == previous and all_pieces and labels[word] == "O":
        return "I-O"
    return _right(word, previous, labels, all_pieces)


def _all_ignored(word, previous, labels, all_pieces, place):
    return _right(word, previous, labels, False)


def _never_ignored(word, previous, labels, all_pieces, place):
    return _right(word, previous, labels, True)


def _zero_is_false(word, previous, labels, all_pieces, place):
    return _right(word, previous, labels, all_pieces) if word else -100


def _first_inside(word, previous, labels, all_pieces, place):
    if word is not None and all_pieces:
        return inside(labels[word])
    return _right(word, previous, labels, all_pieces)


def _specials_dropped(word_ids, word_labels, all_pieces=False):
    aligned = solution.align_labels(word_ids, word_labels, all_pieces)
    return [label for label, word in zip(aligned, word_ids, strict=True) if word is not None]


def _last_piece(word_ids, word_labels, all_pieces=False):
    if all_pieces:
        return solution.align_labels(word_ids, word_labels, True)
    return solution.align_labels(word_ids[::-1], word_labels)[::-1]


def _by_counting(word_ids, word_labels, all_pieces=False):
    aligned, previous, word_number = [], None, -1
    for word in word_ids:
        if word is not None and word != previous:
            word_number += 1
            aligned.append(word_labels[word_number])
        elif word is None:
            aligned.append(-100)
        else:
            aligned.append(inside(word_labels[word_number]) if all_pieces else -100)
        previous = word
    return aligned


def _one_a_word(word_ids, word_labels, all_pieces=False):
    return list(word_labels)


def _by_place(word_ids, word_labels, all_pieces=False):
    return [
        word_labels[place] if word is not None and place < len(word_labels) else -100
        for place, word in enumerate(word_ids)
    ]


def _align_by_sets(word_ids, word_labels, all_pieces=False):
    seen, aligned = set(), []
    for word in word_ids:
        label = -100 if word is None else word_labels[word]
        if word in seen and word is not None:
            label = label.replace("B-", "I-", 1) if all_pieces else -100
        seen.add(word)
        aligned.append(label)
    return aligned


def _align_by_index(word_ids, word_labels, all_pieces=False):
    aligned = [-100] * len(word_ids)
    for word, label in enumerate(word_labels):
        places = [place for place, other in enumerate(word_ids) if other == word]
        for number, place in enumerate(places):
            if number == 0:
                aligned[place] = label
            elif all_pieces:
                aligned[place] = inside(label)
    return aligned


register(
    name="align_labels",
    lesson="07",
    reference=solution.align_labels,
    cases=[
        Case("two words of two pieces", _aligned([None, 0, 0, 1, 1, None], "B-ORG I-ORG")),
        Case("the same, all pieces",
             _aligned([None, 0, 0, 1, 1, None], "B-ORG I-ORG", all_pieces=True),
             why="B- must not be repeated"),
        Case("a word of three pieces that is O",
             _aligned([None, 0, 0, 0, 1, None], "O B-LOC", all_pieces=True)),
        Case("a word without a piece", _aligned([None, 0, 2, None], "B-PER O B-LOC"),
             why="word ids skip a number: counting goes wrong"),
        Case("padding behind the sentence", _aligned([None, 0, 1, 1, None, None, None], "O B-PER")),
        Case("two one-piece words of one label", _aligned([None, 0, 1, None], "B-PER B-PER",
                                                          all_pieces=True)),
        Case("no special tokens", _aligned([0, 0, 1], "B-LOC O", all_pieces=True)),
    ],
    mistakes=[
        Mistake("one_a_word", _one_a_word,
                "One label for each word. The model gives a row for each token, so there must be "
                "as many entries as word_ids has."),
        Mistake("by_place", _by_place,
                "You read word_labels at the token's own place. A word may be several tokens: look "
                "its label up by word id."),
        Mistake("by_counting", _by_counting,
                "You count the words as they come. A word of which the tokenizer leaves nothing "
                "has no token, and from there on every label is one off: use the word id itself."),
        Mistake("specials_dropped", _specials_dropped,
                "The entries of [CLS], [SEP] and padding are missing. Every token has one, so that "
                "entry i belongs to token i; theirs is -100."),
        Mistake("zero_is_false", _align_wrong(_zero_is_false),
                "Word 0 got -100. It has the number 0, and `if not word` is true for 0 as it is "
                "for None: ask `word is None`."),
        Mistake("specials_o", _align_wrong(_specials_o),
                "[CLS], [SEP] and padding got O. They are no words: -100 keeps them out of the "
                "loss."),
        Mistake("rest_o", _align_wrong(_rest_o),
                "The further pieces of a word got O. That would teach the model that an entity "
                "ends inside its first word: -100 instead."),
        Mistake("last_piece", _last_piece,
                "The label stands on each word's last piece. By convention the first piece has "
                "it."),
        Mistake("repeated", _align_wrong(_repeated),
                "With all_pieces, a B- is repeated on every piece, which says that each piece "
                "begins an entity of its own. A word begins once: the pieces that follow get I-."),
        Mistake("copied",
                lambda word_ids, word_labels, all_pieces=False:
                [-100 if word is None else word_labels[word] for word in word_ids],
                "Every piece has its word's label, in both modes. By default only the first piece "
                "is labeled and the others get -100; with all_pieces the others continue the word, "
                "so their B- turns into I-."),
        Mistake("first_inside", _align_wrong(_first_inside),
                "With all_pieces, a word's first piece lost its B- too. It keeps the word's own "
                "label; only the pieces behind it go on with I-."),
        Mistake("i_o", _align_wrong(_inside_always),
                "I-O is no label: the pieces of an O word are O."),
        Mistake("all_pieces_ignored", _align_wrong(_all_ignored),
                "Right for first pieces; `all_pieces` is not used yet."),
        Mistake("never_ignored", _align_wrong(_never_ignored),
                "Every piece has a label, with and without all_pieces. Without it, only first "
                "pieces are labeled, the others -100."),
    ],
    also_right=[_align_by_sets, _align_by_index],
    hints=[
        "Go through word_ids and compare each entry with the one before it: what are the three "
        "things it can be?",
        "None: -100. Another word than before: word_labels[word]. The same word again: -100 or, "
        "with all_pieces, `inside` of its label.",
        "Keep `previous = None`; in the loop append -100 if word is None, word_labels[word] if "
        "word != previous, inside(word_labels[word]) if all_pieces, else -100; then previous = "
        "word.",
    ],
)

# --- decode_entities ----------------------------------------------------------------------------


def _labels(text, **options):
    return lambda rng: ((text.split(),), dict(options))


def _decode(labels, strict=False, *, start, go_on, fix=lambda found: found):
    """Decoding with its two rules chosen freely."""
    entities, running = [], None
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        if go_on(prefix, kind, running):
            entities[-1] = (entities[-1][0], entities[-1][1], place)
        elif start(prefix, kind, running, strict):
            entities.append((kind, place, place))
            running = kind
        else:
            running = None
    return fix(entities)


def _starts(prefix, kind, running, strict):
    return prefix == "B" or (prefix == "I" and not strict)


def _goes_on(prefix, kind, running):
    return prefix == "I" and kind == running


def _decode_wrong(start=_starts, go_on=_goes_on, fix=lambda found: found):
    return lambda labels, strict=False: _decode(labels, strict, start=start, go_on=go_on, fix=fix)


def _forgets_last(labels, strict=False):
    """Entities are closed when the next label says so; the end of the sentence is forgotten."""
    found = decode_entities(labels, strict)
    return [entity for entity in found if entity[2] != len(labels) - 1]


def _joins_anything(labels, strict=False):
    """Every I- moves the end of the last entity, whatever it is and wherever it ended."""
    entities = []
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        if prefix == "I" and entities:
            entities[-1] = (*entities[-1][:2], place)
        elif prefix == "B":
            entities.append((kind, place, place))
    return entities


def _i_unread(labels, strict=False):
    """Only B- and O change anything: an entity runs from its B- to before the next of them."""
    entities, running = [], False
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        if prefix == "B":
            entities.append((kind, place, place))
        elif prefix == "I" and running:
            entities[-1] = (*entities[-1][:2], place)
        running = prefix == "B" or (prefix == "I" and running)
    return entities


def _not_cleared(labels, strict=False):
    entities, running = [], None
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        if prefix == "I" and kind == running:
            entities[-1] = (kind, entities[-1][1], place)
        elif prefix == "B" or (prefix == "I" and not strict):
            entities.append((kind, place, place))
            running = kind
    return entities


def _decode_no_check(labels, strict=False):
    entities, running = [], None
    for place, label in enumerate(labels):
        prefix, kind = label[:1], label[2:]
        if prefix == "I" and kind == running:
            entities[-1] = (kind, entities[-1][1], place)
        elif prefix == "B" or (prefix == "I" and not strict):
            entities.append((kind, place, place))
            running = kind
        else:
            running = None
    return entities


def _decode_by_borders(labels, strict=False):
    """As conlleval does: where does an entity begin, and how far does it run?"""
    split = [split_label(label) for label in labels]
    found, place = [], 0
    while place < len(split):
        prefix, kind = split[place]
        if prefix == "O" or (prefix == "I" and strict):
            place += 1
            continue
        last = place
        while last + 1 < len(split) and split[last + 1] == ("I", kind):
            last += 1
        found.append((kind, place, last))
        place = last + 1
    return found


def _decode_backward(labels, strict=False):
    found, last = [], None
    for place in reversed(range(len(labels))):
        prefix, kind = split_label(labels[place])
        if prefix == "O":
            last = None
            continue
        last = place if last is None else last
        before = split_label(labels[place - 1]) if place else ("O", None)
        if prefix == "I" and before[1] == kind:
            continue
        if prefix == "B" or not strict:
            found.append((kind, place, last))
        last = None
    return found[::-1]


register(
    name="decode_entities",
    lesson="07",
    reference=solution.decode_entities,
    cases=[
        Case("one entity in the middle", _labels("O B-PER I-PER O")),
        Case("three words", _labels("O B-ORG I-ORG I-ORG"), why="its first word stays the first"),
        Case("one at each end", _labels("B-PER O O B-LOC I-LOC"),
             why="the last entity has no label after it that closes it"),
        Case("two of one type side by side", _labels("B-LOC B-LOC I-LOC O"),
             why="only B- tells them apart"),
        Case("two types side by side", _labels("B-ORG I-ORG B-LOC O")),
        Case("I- after O", _labels("O I-PER I-PER O")),
        Case("I- after O, strict", _labels("O I-PER I-PER O", strict=True)),
        Case("I- of another type", _labels("B-ORG I-LOC I-LOC")),
        Case("I- of another type, strict", _labels("B-ORG I-LOC I-LOC I-ORG", strict=True),
             why="the ORG is over: it does not come back"),
        Case("O between two parts of one type", _labels("B-PER O I-PER")),
        Case("O between two parts, strict", _labels("B-PER I-PER O I-PER", strict=True)),
        Case("nothing", _labels("O O")),
        Case("an empty sentence", _labels("")),
    ],
    raises=[Case("a label that is none", _labels("O PER O")),
            Case("E- is no prefix of BIO", _labels("B-PER E-PER"))],
    mistakes=[
        Mistake("each_token",
                _decode_wrong(start=lambda p, k, r, s: p != "O", go_on=lambda p, k, r: False),
                "Every labeled word is an entity of its own. I- of the same type goes on with the "
                "entity before it."),
        Mistake("stop_excluded",
                _decode_wrong(fix=lambda found: [(k, f, last + 1) for k, f, last in found]),
                "Your last number is one past the entity. Here `last` is the entity's last word, "
                "included."),
        Mistake("places_first",
                _decode_wrong(fix=lambda found: [(f, last, k) for k, f, last in found]),
                "Right entities in another order: (type, first, last)."),
        Mistake("with_prefix",
                _decode_wrong(fix=lambda found: [("B-" + k, f, last) for k, f, last in found]),
                "The type still carries its prefix: B-PER is the label, PER the type."),
        Mistake("forgets_last", _forgets_last,
                "An entity at the end of a sentence is missing. No label comes after it to close "
                "it."),
        Mistake("merges_neighbors",
                _decode_wrong(go_on=lambda p, k, r: p != "O" and k == r),
                "Two entities of one type side by side became one. A B- always begins a new one; "
                "that is what it is for."),
        Mistake("only_b",
                _decode_wrong(start=lambda p, k, r, s: p == "B"),
                "You leave out every I- that continues nothing. That is right for strict=True; by "
                "default such an I- begins an entity."),
        Mistake("strict_ignored", _decode_wrong(start=lambda p, k, r, s: p != "O"),
                "Right by default; with strict=True an I- that continues nothing of its type is "
                "left out."),
        Mistake("strict_inverted",
                _decode_wrong(start=lambda p, k, r, s: p == "B" or (p == "I" and s)),
                "The two modes are swapped: strict=True is the one that leaves a stray I- out."),
        Mistake("type_ignored",
                _decode_wrong(go_on=lambda p, k, r: p == "I" and r is not None),
                "An I- of another type was taken into the entity before it. I-LOC cannot go on "
                "with an ORG."),
        Mistake("i_unread", _i_unread,
                "Only B- and O decide in your version. An I- has two questions of its own: is its "
                "type that of the running entity, and if nothing runs, does it begin one? By "
                "default it does."),
        Mistake("joins_anything", _joins_anything,
                "Every I- stretches the last entity, also one of another type or one that ended "
                "words ago. It goes on only with an entity of its own type that the previous word "
                "belongs to; otherwise, by default, it begins one."),
        Mistake("not_cleared", _not_cleared,
                "An I- after O was joined to the entity before the O. Once something else has come "
                "in between, the entity is over."),
        Mistake("no_check", _decode_no_check,
                "Right on good labels. A label that is not O, B-type or I-type must raise "
                "ValueError, or a typing error would silently count as O: `split_label` raises."),
    ],
    also_right=[_decode_by_borders, _decode_backward],
    hints=[
        "Walk through the labels and remember one thing: the type of the entity that the previous "
        "word belongs to, or None.",
        "Three cases: I- of the running type (move the last entity's end), the beginning of an "
        "entity (append; B- always, I- unless strict), anything else (nothing is running).",
        "prefix, kind = split_label(label). If prefix == 'I' and kind == running: entities[-1] = "
        "(kind, entities[-1][1], place). elif prefix == 'B' or (prefix == 'I' and not strict): "
        "append (kind, place, place), running = kind. else: running = None.",
    ],
)

# --- character_spans ----------------------------------------------------------------------------

# "Zoë met Novatek  Oslo." in pieces: zoe met nova ##tek oslo .
_WORDS = [None, 0, 1, 2, 2, 3, 4, None]
_OFFSETS = [(0, 0), (0, 3), (4, 7), (8, 12), (12, 15), (17, 21), (21, 22), (0, 0)]


def _spans(entities, words=_WORDS, offsets=_OFFSETS):
    return lambda rng: ((list(entities), list(words), list(offsets)), {})


def _by_token(entities, word_ids, offsets):
    return [(offsets[first][0], offsets[last][1], kind) for kind, first, last in entities]


def _by_token_after_cls(entities, word_ids, offsets):
    return [(offsets[first + 1][0], offsets[last + 1][1], kind) for kind, first, last in entities]


def _first_piece_only(entities, word_ids, offsets):
    return [(offsets[word_ids.index(first)][0], offsets[word_ids.index(last)][1], kind)
            for kind, first, last in entities]


def _first_word_only(entities, word_ids, offsets):
    return solution.character_spans([(k, f, f) for k, f, _ in entities], word_ids, offsets)


def _last_included(entities, word_ids, offsets):
    return [(start, stop - 1, kind)
            for start, stop, kind in solution.character_spans(entities, word_ids, offsets)]


def _last_piece_start(entities, word_ids, offsets):
    where = dict(zip(word_ids, offsets, strict=True))
    return [(where[first][0], where[last][1], kind) for kind, first, last in entities]


def _to_next_word(entities, word_ids, offsets):
    found = []
    for start, stop, kind in solution.character_spans(entities, word_ids, offsets):
        found.append((start, min((s for s, e in offsets if s >= stop and e > s), default=stop),
                      kind))
    return found


def _summed_lengths(entities, word_ids, offsets):
    found = []
    for kind, first, last in entities:
        own = [(start, stop) for word, (start, stop) in zip(word_ids, offsets, strict=True)
               if word is not None and first <= word <= last]
        found.append((own[0][0], own[0][0] + sum(stop - start for start, stop in own), kind))
    return found


def _spans_by_index(entities, word_ids, offsets):
    backward = word_ids[::-1]
    return [(offsets[word_ids.index(first)][0], offsets[::-1][backward.index(last)][1], kind)
            for kind, first, last in entities]


def _spans_by_dict(entities, word_ids, offsets):
    begin, end = {}, {}
    for word, (start, stop) in zip(word_ids, offsets, strict=True):
        begin.setdefault(word, start)
        end[word] = stop
    return [(begin[first], end[last], kind) for kind, first, last in entities]


register(
    name="character_spans",
    lesson="07",
    reference=solution.character_spans,
    cases=[
        Case("Zoë and Novatek", _spans([("PER", 0, 0), ("ORG", 2, 2)]),
             why="Novatek has two pieces"),
        Case("two words with two blanks between them", _spans([("ORG", 2, 3)])),
        Case("no entity", _spans([])),
        Case("a word without a piece before it",
             _spans([("LOC", 2, 2)], [None, 0, 2, None], [(0, 0), (0, 3), (5, 9), (0, 0)]),
             why="word 2 is the third token, not the fourth"),
        Case("no special tokens, first word in three pieces",
             _spans([("PER", 0, 1)], [0, 0, 0, 1], [(0, 1), (1, 3), (3, 4), (5, 9)])),
    ],
    mistakes=[
        Mistake("type_first",
                lambda entities, word_ids, offsets: [
                    (kind, start, stop) for start, stop, kind
                    in solution.character_spans(entities, word_ids, offsets)],
                "Right numbers in another order: (start, stop, type), as `entities` draws them."),
        Mistake("by_token", _by_token,
                "You used the number of a word as the number of a token. [CLS] stands before them, "
                "and a word may be several tokens: search word_ids for the word."),
        Mistake("by_token_after_cls", _by_token_after_cls,
                "You skip [CLS], and then count tokens as words. A word may be several tokens: "
                "search word_ids for it."),
        Mistake("first_word_only", _first_word_only,
                "The span ends with the entity's first word. It reaches to the stop of the last "
                "word."),
        Mistake("first_piece_only", _first_piece_only,
                "The span ends with the first piece of the last word: 'Nova' without 'tek'. Take "
                "the stop of that word's last piece."),
        Mistake("last_piece_start", _last_piece_start,
                "The span begins with the last piece of its first word: 'tek' without 'Nova'. Take "
                "the start of that word's first piece. (A dict made of word ids and offsets keeps "
                "only the last piece of each word.)"),
        Mistake("to_next_word", _to_next_word,
                "Your stop is the start of the word behind, so blanks come along. Take the stop of "
                "the entity's own last piece."),
        Mistake("last_included", _last_included,
                "Your stop is the last character. Python slices exclude their end: "
                "text[start:stop] would lose a character."),
        Mistake("summed", _summed_lengths,
                "You add up the lengths of the pieces, so the blanks between words are missing. "
                "Start and stop are places in the text."),
    ],
    also_right=[_spans_by_index, _spans_by_dict],
    hints=[
        "Which tokens belong to the first word of an entity, and which to its last?",
        "Collect the starts of all tokens whose word id is `first`, and the stops of those whose "
        "word id is `last`. You want the smallest start and the largest stop.",
        "For each entity: starts = [start for word, (start, _) in zip(word_ids, offsets) if word "
        "== first], stops likewise for last; append (min(starts), max(stops), kind).",
    ],
)

# --- entity_scores ------------------------------------------------------------------------------


def _sentences(*pairs, **options):
    """Each pair is "true labels / predicted labels"."""
    def make(rng):
        halves = [[half.split() for half in pair.split("/")] for pair in pairs]
        return ([t for t, _ in halves], [p for _, p in halves]), dict(options)

    return make


def _count(true, predicted, strict=False, key=lambda place, entity: (place, *entity), **how):
    """Scores from sets of keys; `how` changes one part at a time."""
    t = {key(i, e) for i, labels in enumerate(true) for e in decode_entities(labels, strict)}
    p = {key(i, e) for i, labels in enumerate(predicted) for e in decode_entities(labels, strict)}
    found = len(t & p)
    precision = found / len(p) if p else how.get("empty", 0.0)
    recall = found / len(t) if t else how.get("empty", 0.0)
    both = precision + recall
    f1 = 2 * precision * recall / both if both else how.get("empty", 0.0)
    f1 = {"mean": both / 2, "product": precision * recall}.get(how.get("f1"), f1)
    if how.get("swapped"):
        precision, recall = recall, precision
    return {"precision": precision, "recall": recall, "f1": f1,
            "support": len(p) if how.get("swapped") else len(t)}


def _token_level(true, predicted, strict=False):
    pairs = [(t, p) for ts, ps in zip(true, predicted, strict=True)
             for t, p in zip(ts, ps, strict=True)]
    found = sum(t == p != "O" for t, p in pairs)
    num_predicted, support = sum(p != "O" for _, p in pairs), sum(t != "O" for t, _ in pairs)
    return {"precision": found / num_predicted if num_predicted else 0.0,
            "recall": found / support if support else 0.0,
            "f1": 2 * found / (num_predicted + support) if num_predicted + support else 0.0,
            "support": support}


def _accuracy(true, predicted, strict=False):
    pairs = [t == p for ts, ps in zip(true, predicted, strict=True)
             for t, p in zip(ts, ps, strict=True)]
    share = sum(pairs) / len(pairs) if pairs else 0.0
    return {**_count(true, predicted, strict), "precision": share, "recall": share, "f1": share}


def _joined(true, predicted, strict=False):
    """All sentences as one: an entity can run over the end of a sentence."""
    as_one = ([[label for labels in side for label in labels]] for side in (true, predicted))
    return _count(*as_one, strict)


def _mean_of_sentences(true, predicted, strict=False):
    each = [_count([t], [p], strict) for t, p in zip(true, predicted, strict=True)]
    names = ("precision", "recall", "f1")
    means = {n: sum(one[n] for one in each) / len(each) if each else 0.0 for n in names}
    return {**means, "support": sum(one["support"] for one in each)}


def _overlap(true, predicted, strict=False):
    found = num_predicted = support = 0
    for t, p in zip(true, predicted, strict=True):
        t, p = decode_entities(t, strict), decode_entities(p, strict)
        found += sum(any(k == kind and f <= last and e >= first for kind, first, last in t)
                     for k, f, e in p)
        num_predicted, support = num_predicted + len(p), support + len(t)
    return {"precision": found / num_predicted if num_predicted else 0.0,
            "recall": found / support if support else 0.0,
            "f1": 2 * found / (num_predicted + support) if num_predicted + support else 0.0,
            "support": support}


def _scores_by_counter(true, predicted, strict=False):
    found = num_predicted = support = 0
    for t, p in zip(true, predicted, strict=True):
        t, p = decode_entities(t, strict), decode_entities(p, strict)
        found += sum(entity in t for entity in p)
        num_predicted, support = num_predicted + len(p), support + len(t)
    precision, recall = found / max(num_predicted, 1), found / max(support, 1)
    f1 = 2 * precision * recall / (precision + recall) if found else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "support": support}


register(
    name="entity_scores",
    lesson="07",
    reference=solution.entity_scores,
    cases=[
        Case("one border is wrong: three of four labels are right",
             _sentences("B-PER I-PER I-PER O / B-PER I-PER O O")),
        Case("one found of three, two predicted",
             _sentences("B-PER B-LOC O B-ORG / B-PER O O B-PER"),
             why="precision and recall differ"),
        Case("two sentences of unequal size",
             _sentences("B-PER O / B-PER O", "B-LOC B-LOC B-LOC O / O O O B-LOC"),
             why="a mean of sentences is not the score of all together"),
        Case("the same entity in two sentences",
             _sentences("B-PER O O / B-PER O O", "B-PER O O / O O O"),
             why="places have to be counted within their sentence"),
        Case("an I- behind the end of a sentence",
             _sentences("O B-PER / O B-PER", "O B-LOC / I-PER B-LOC"),
             why="no entity runs from one sentence into the next"),
        Case("wrong type", _sentences("B-ORG I-ORG O / B-LOC I-LOC O")),
        Case("I- at the beginning", _sentences("O B-PER I-PER / O I-PER I-PER")),
        Case("I- at the beginning, strict",
             _sentences("O B-PER I-PER B-LOC / O I-PER I-PER B-LOC", strict=True)),
        Case("I- at the beginning of a true one, strict",
             _sentences("O I-PER O B-LOC / O B-PER O B-LOC", strict=True),
             why="strict is for both sides"),
        Case("nothing predicted", _sentences("B-PER O / O O")),
        Case("nothing to find", _sentences("O O / O B-PER")),
        Case("no entity anywhere", _sentences("O O / O O"), why="nothing to divide by: 0.0"),
    ],
    mistakes=[
        Mistake("accuracy", _accuracy,
                "These are shares of right labels. Most words are O, so that would look good "
                "whatever happens to entities: decode both sides and compare entities."),
        Mistake("token_level", _token_level,
                "You compare label by label. An entity with one wrong border must count as wrong: "
                "decode both sides and compare whole entities."),
        Mistake("overlap", _overlap,
                "Entities that merely overlap count as found. The first and the last word must "
                "both be right."),
        Mistake("type_ignored",
                lambda true, predicted, strict=False:
                _count(true, predicted, strict, key=lambda i, e: (i, *e[1:])),
                "An entity of the wrong type counts as found. Compare (type, first, last)."),
        Mistake("one_bag",
                lambda true, predicted, strict=False:
                _count(true, predicted, strict, key=lambda i, e: e),
                "Entities of all sentences went into one set, so equal places in two sentences "
                "became one. Compare sentence by sentence and add up the counts."),
        Mistake("joined", _joined,
                "You put all sentences in one row before decoding, and an entity at the end of one "
                "goes on into the next. Decode each sentence by itself."),
        Mistake("mean_of_sentences", _mean_of_sentences,
                "You averaged the scores of the sentences. Add up found, predicted and true over "
                "all sentences first, and divide once."),
        Mistake("swapped",
                lambda true, predicted, strict=False: _count(true, predicted, strict, swapped=True),
                "Precision and recall are swapped: precision divides by what was predicted, recall "
                "by what is true."),
        Mistake("plain_mean",
                lambda true, predicted, strict=False: _count(true, predicted, strict, f1="mean"),
                "F1 is not the plain mean of precision and recall, but the harmonic one: 2 found / "
                "(predicted + true). It is low as soon as one of them is."),
        Mistake("product",
                lambda true, predicted, strict=False: _count(true, predicted, strict, f1="product"),
                "F1 is not the product: 2 times the product, divided by the sum; or 2 found / "
                "(predicted + true)."),
        Mistake("strict_ignored",
                lambda true, predicted, strict=False: solution.entity_scores(true, predicted),
                "Right by default; `strict` is not handed on to decode_entities."),
        Mistake("nothing_is_perfect",
                lambda true, predicted, strict=False: _count(true, predicted, strict, empty=1.0),
                "Where there is nothing to divide by, the score here is 0.0, as in conlleval."),
        Mistake("nan",
                lambda true, predicted, strict=False:
                _count(true, predicted, strict, empty=float("nan")),
                "NaN where there is nothing to divide by; the score there is 0.0."),
    ],
    also_right=[_scores_by_counter, lambda true, predicted, strict=False:
                _count(true, predicted, strict)],
    hints=[
        "Three counts over all sentences are all you need: entities found, predicted, and true.",
        "Decode both sides of each sentence. Found are those in both lists: the size of set(a) & "
        "set(b). Divide only at the end, and guard against dividing by 0.",
        "precision = found / num_predicted, recall = found / support, f1 = 2 * found / "
        "(num_predicted + support), each 0.0 where the divisor is 0; return the four in a dict.",
    ],
)

# --- aggregate_words ----------------------------------------------------------------------------

_TWO = np.array([[0.40, 0.50, 0.10], [0.42, 0.03, 0.55]])


def _pieces(word_ids, strategy, labels=4, dtype="float64"):
    def make(rng):
        logits = rng.normal(size=(len(word_ids), labels))
        return (softmax(logits).astype(dtype), list(word_ids), strategy), {}

    return make


def _fixed(strategy):
    return lambda rng: ((_TWO.copy(), [0, 0], strategy), {})


def _aggregate(probabilities, word_ids, strategy, **changed):
    """Aggregation with the rule of one strategy exchanged."""
    rules = {"first": lambda p: p[0], "max": lambda p: p[p.max(axis=1).argmax()],
             "average": lambda p: p.mean(axis=0), **changed}
    words = sorted({word for word in word_ids if word is not None})
    rows = np.zeros((max(words, default=-1) + 1, probabilities.shape[1]), probabilities.dtype)
    for word in words:
        rows[word] = rules[strategy](probabilities[[w == word for w in word_ids]])
    return rows


def _aggregate_wrong(**changed):
    return lambda probabilities, word_ids, strategy: _aggregate(
        probabilities, word_ids, strategy, **changed)


def _squeezed(probabilities, word_ids, strategy):
    rows = _aggregate(probabilities, word_ids, strategy)
    return rows[sorted({word for word in word_ids if word is not None})]


def _specials_kept(probabilities, word_ids, strategy):
    """[CLS] is counted as part of the first word, [SEP] of the last."""
    known = [word for word in word_ids if word is not None]
    if not known:
        return _aggregate(probabilities, word_ids, strategy)
    filled = [known[0] if word is None and place == 0 else known[-1] if word is None else word
              for place, word in enumerate(word_ids)]
    return _aggregate(probabilities, filled, strategy)


def _aggregate_matrix(probabilities, word_ids, strategy):
    ids = np.array([-1 if word is None else word for word in word_ids])
    member = ids == np.arange(ids.max(initial=-1) + 1)[:, None]  # (words, tokens)
    if strategy == "average":
        total = np.maximum(member.sum(axis=1, keepdims=True), 1)
        return (member @ probabilities / total).astype(probabilities.dtype)
    sure = probabilities.max(axis=1) if strategy == "max" else -np.arange(len(ids))
    best = np.where(member, sure, -np.inf).argmax(axis=1)
    return probabilities[best] * member.any(axis=1, keepdims=True)


register(
    name="aggregate_words",
    lesson="07",
    reference=solution.aggregate_words,
    cases=[
        *[Case(f"a word in two pieces, {s}", _fixed(s)) for s in solution.STRATEGIES],
        *[Case(f"words of one, two and three pieces, {s}",
               _pieces([None, 0, 1, 1, 2, 2, 2, None], s)) for s in solution.STRATEGIES],
        *[Case(f"a word without a piece, {s}", _pieces([None, 0, 2, 2, None], s), why="word ids "
               "skip a number") for s in solution.STRATEGIES],
        Case("the surest piece says O, max",
             lambda rng: ((np.array([[0.90, 0.04, 0.06], [0.35, 0.40, 0.25]]), [0, 0], "max"), {}),
             why="O, the first column, counts like the others"),
        Case("no words at all", _pieces([None, None], "average")),
        Case("float32", _pieces([0, 0, 1], "average", dtype="float32")),
    ],
    mistakes=[
        Mistake("labels",
                lambda probabilities, word_ids, strategy:
                _aggregate(probabilities, word_ids, strategy).argmax(axis=1),
                "You return the number of the likeliest label. Return the whole row: its "
                "probabilities are needed for the confidence."),
        Mistake("squeezed", _squeezed,
                "Rows stand one after another, but a word of which the tokenizer leaves nothing "
                "has no token. Row i has to belong to word i: leave that row at zeros."),
        Mistake("specials_kept", _specials_kept,
                "[CLS] or [SEP] went into a word. Their word id is None: leave them out."),
        Mistake("always_first",
                lambda probabilities, word_ids, strategy:
                _aggregate(probabilities, word_ids, "first"),
                "You take the first piece under every strategy."),
        Mistake("elementwise_max", _aggregate_wrong(max=lambda p: p.max(axis=0)),
                "With 'max' you took the highest number of each column; such a row sums to more "
                "than 1. Take the whole row of the piece that is surest."),
        Mistake("elementwise_divided",
                _aggregate_wrong(max=lambda p: p.max(axis=0) / p.max(axis=0).sum()),
                "With 'max' you took the highest number of each column and divided by their sum. "
                "Such a row belongs to no piece: take the whole row of the piece that is surest."),
        Mistake("surest_entity",
                _aggregate_wrong(max=lambda p: p[p[:, 1:].max(axis=1).argmax()]),
                "With 'max' you left out the first column, O. A piece may be surest that the word "
                "is no entity."),
        Mistake("argmax_of_all", _aggregate_wrong(max=lambda p: p[p.argmax() % len(p)]),
                "With 'max', p.argmax() counts through the flattened array. First the highest "
                "number of each row, then the place of the highest of those."),
        Mistake("last", _aggregate_wrong(first=lambda p: p[-1]),
                "With 'first' you took the word's last piece."),
        Mistake("summed", _aggregate_wrong(average=lambda p: p.sum(axis=0)),
                "With 'average' the rows are summed: divide by the number of pieces."),
        Mistake("over_labels",
                _aggregate_wrong(average=lambda p: np.full(p.shape[1], p.mean())),
                "With 'average' everything became one number. Average over the pieces (axis 0) and "
                "keep the labels."),
        Mistake("median", _aggregate_wrong(average=lambda p: np.median(p, axis=0)),
                "With 'average' you took the median. Take the mean, which still sums to 1."),
        Mistake("geometric", _aggregate_wrong(
            average=lambda p: softmax(np.log(p).mean(axis=0))),
                "With 'average' you averaged logarithms. Average the probabilities themselves."),
    ],
    also_right=[_aggregate_wrong(), _aggregate_matrix],
    hints=[
        "First collect, for each word id, the numbers of its tokens. How many rows does the result "
        "have, if the highest word id is 2?",
        "rows = np.zeros((highest + 1, labels)); pieces = probabilities[tokens] is (pieces, "
        "labels). 'first' is pieces[0], 'average' pieces.mean(axis=0).",
        "'max' is pieces[pieces.max(axis=1).argmax()]. Use max(tokens_of, default=-1) + 1 for the "
        "number of rows, and the dtype of probabilities.",
    ],
)

# --- error_kinds --------------------------------------------------------------------------------


def _found(true, predicted):
    """Entities as text: "PER 0 1, LOC 3 3"."""
    def read(text):
        parts = [part.split() for part in text.split(",") if part.strip()]
        return [(kind, int(first), int(last)) for kind, first, last in parts]

    return lambda rng: ((read(true), read(predicted)), {})


def _kinds(true, predicted, *, same=None, touch=None, order=("wrong type", "wrong border")):
    """Sorting errors with its tests exchanged; the tests take two entities."""
    same = same or (lambda a, b: a[1:] == b[1:])
    touch = touch or (lambda a, b: a[1] <= b[2] and b[1] <= a[2])
    tests = {"wrong type": same, "wrong border": touch}
    outcome = []
    for entity in true:
        if entity in predicted:
            outcome.append(("right", entity))
            continue
        kind = next((k for k in order if any(tests[k](entity, p) for p in predicted)), "missed")
        outcome.append((kind, entity))
    outcome += [("invented", p) for p in predicted if not any(touch(t, p) for t in true)]
    return outcome


def _kinds_by_words(true, predicted):
    def words(entity):
        return set(range(entity[1], entity[2] + 1))

    outcome = []
    for entity in true:
        near = [p for p in predicted if words(p) & words(entity)]
        if entity in near:
            outcome.append(("right", entity))
        elif any(words(p) == words(entity) for p in near):
            outcome.append(("wrong type", entity))
        else:
            outcome.append(("wrong border" if near else "missed", entity))
    covered = set().union(*map(words, true)) if true else set()
    return outcome + [("invented", p) for p in predicted if not words(p) & covered]


def _exact_invented(true, predicted):
    base = [pair for pair in _kinds(true, predicted) if pair[0] != "invented"]
    return base + [("invented", p) for p in predicted if p not in true]


def _one_to_one(true, predicted):
    """By place in the lists: the first true entity against the first predicted one."""
    pairs = list(zip(true, predicted, strict=False))
    outcome = []
    for t, p in pairs:
        outcome.append(("right" if t == p else "wrong type" if t[1:] == p[1:] else "wrong border",
                        t))
    outcome += [("missed", t) for t in true[len(pairs):]]
    return outcome + [("invented", p) for p in predicted[len(pairs):]]


register(
    name="error_kinds",
    lesson="07",
    reference=solution.error_kinds,
    cases=[
        Case("one of each", _found("PER 0 1, ORG 3 3, LOC 5 7, PER 9 9",
                                   "PER 0 1, LOC 3 3, LOC 6 7, ORG 11 12")),
        Case("two words of another type", _found("PER 0 1", "LOC 0 1")),
        Case("a border that is too wide on the left", _found("LOC 2 3", "LOC 1 3")),
        Case("a border that is too wide on the right", _found("LOC 2 3", "LOC 2 4")),
        Case("another border and another type", _found("ORG 2 4", "LOC 4 5"),
             why="they share word 4"),
        Case("one long guess over two entities", _found("ORG 1 1, LOC 2 2", "ORG 1 2")),
        Case("next to it, not on it", _found("PER 1 1", "PER 2 2, PER 0 0"),
             why="no word in common"),
        Case("two guesses inside one entity", _found("LOC 0 3", "LOC 0 0, LOC 3 3")),
        Case("nothing predicted", _found("PER 0 0", "")),
        Case("nothing true", _found("", "PER 0 0")),
        Case("the middle of a long one", _found("ORG 2 6", "ORG 3 4")),
        Case("a guess around a short one", _found("ORG 3 3", "PER 1 6")),
    ],
    mistakes=[
        Mistake("only_kinds", lambda true, predicted: [k for k, _ in _kinds(true, predicted)],
                "The kinds are right; return each with its entity: (kind, entity)."),
        Mistake("no_invented",
                lambda true, predicted: [p for p in _kinds(true, predicted) if p[0] != "invented"],
                "What the model made up is missing: predicted entities that share no word with a "
                "true one are 'invented'."),
        Mistake("invented_twice", _exact_invented,
                "Every wrong guess is 'invented' in your list, also those with only a wrong type "
                "or border. Those are counted with the true entity already."),
        Mistake("by_list_place", _one_to_one,
                "You compare the first true with the first predicted entity, and so on. One missed "
                "entity shifts all that follow: compare each with all."),
        Mistake("border_before_type",
                lambda true, predicted: _kinds(true, predicted,
                                               order=("wrong border", "wrong type")),
                "Where the words are exactly right and the type is not, you say 'wrong border'. "
                "Test for the same words before you test for shared words."),
        Mistake("type_by_overlap",
                lambda true, predicted: _kinds(
                    true, predicted,
                    same=lambda a, b: a[0] != b[0] and a[1] <= b[2] and b[1] <= a[2]),
                "'wrong type' is for exactly the same words. If the words differ too, it is a "
                "'wrong border'."),
        Mistake("same_end_only",
                lambda true, predicted: _kinds(
                    true, predicted, touch=lambda a, b: a[1] == b[1] or a[2] == b[2]),
                "You look for a border in common. Two spans overlap when each begins before the "
                "other ends, wherever their borders are."),
        Mistake("same_type_only",
                lambda true, predicted: [
                    ("missed" if kind == "wrong border" and not any(
                        p[0] == e[0] and p[1] <= e[2] and e[1] <= p[2] for p in predicted)
                     else kind, e) for kind, e in _kinds(true, predicted)],
                "A guess that shares words with a true entity counts in your version only if its "
                "type is the same. 'wrong border' asks for shared words, whatever the type."),
        Mistake("one_side",
                lambda true, predicted: _kinds(
                    true, predicted, touch=lambda a, b: a[1] <= b[1] <= a[2]),
                "You ask only whether a guess begins inside the true entity. One that begins "
                "before it may share words too: test both sides."),
        Mistake("one_side_of_true",
                lambda true, predicted: [
                    pair for pair in _kinds(
                        true, predicted, touch=lambda a, b: a[1] <= b[1] <= a[2])
                    if pair[0] != "invented"
                ] + [pair for pair in _kinds(true, predicted) if pair[0] == "invented"],
                "For 'wrong border' you ask only whether a guess begins inside the true entity. "
                "One that begins before it may share words too: test both sides."),
        Mistake("touching",
                lambda true, predicted: _kinds(
                    true, predicted, touch=lambda a, b: a[1] <= b[2] + 1 and b[1] <= a[2] + 1),
                "Neighbors count as overlapping. `last` is included, so they share a word only if "
                "first <= other's last, on both sides."),
        Mistake("strictly_inside",
                lambda true, predicted: _kinds(
                    true, predicted, touch=lambda a, b: a[1] < b[2] and b[1] < a[2]),
                "Spans that share only one word do not count as overlapping in your version: "
                "`last` is included, so use <=."),
    ],
    also_right=[_kinds_by_words, lambda true, predicted: _kinds(true, predicted)],
    hints=[
        "For each true entity ask four questions in order, and stop at the first yes. Then look "
        "for predicted entities that touch nothing.",
        "Two spans share a word when each begins no later than the other ends: f <= last and l >= "
        "first.",
        "entity in predicted: right. any((f, l) == (first, last)): wrong type. any(f <= last and l "
        ">= first): wrong border. Otherwise missed. Then each predicted one that overlaps no true "
        "one: invented.",
    ],
)

# --- occlusion ----------------------------------------------------------------------------------


def _shy(words, place):
    """A stand-in for a model: what the word and its neighbors are worth, by their letters."""
    near = sum(len(word) / (2 + abs(i - place)) for i, word in enumerate(words))
    return near / (len(words[place]) + 3)


def _cue(words, place):
    """Sure of itself where "signed" is in the sentence and the word asked about is a name."""
    return (0.9 if "signed" in words else 0.4) if words[place][0].isupper() else 0.05


def _taken_out(words, place, probability=_shy):
    return lambda rng: ((probability, words.split(), place), {})


def _occluded(probability, words, place, *, shift=True, sign=1, skip=True, with_mask=None):
    before = probability(words, place)
    fall = np.zeros(len(words))
    for gone in range(len(words)):
        if skip and gone == place:
            continue
        rest = (words[:gone] + words[gone + 1:] if with_mask is None
                else [*words[:gone], with_mask, *words[gone + 1:]])
        moved = place - (gone < place) if shift and with_mask is None else place
        fall[gone] = sign * (before - probability(rest, min(moved, len(rest) - 1)))
    return fall


def _only_after(probability, words, place):
    return np.array([probability(words, place) if gone == place else
                     probability(words[:gone] + words[gone + 1:], place - (gone < place))
                     for gone in range(len(words))])


def _alone(probability, words, place):
    """Keeps only the word and the one other, instead of leaving the other out."""
    before, fall = probability(words, place), np.zeros(len(words))
    for other in range(len(words)):
        if other != place:
            rest = [words[i] for i in sorted((place, other))]
            fall[other] = before - probability(rest, int(other < place))
    return fall


def _by_spelling(probability, words, place):
    before, fall = probability(words, place), np.zeros(len(words))
    for gone, word in enumerate(words):
        if word != words[place]:
            rest = [other for other in words if other != word]
            fall[gone] = before - probability(rest, rest.index(words[place]))
    return fall


def _occlusion_deleting(probability, words, place):
    fall = []
    for gone in range(len(words)):
        rest = list(words)
        del rest[gone]
        moved = place - 1 if gone < place else place
        fall.append(0.0 if gone == place
                    else probability(words, place) - probability(rest, moved))
    return np.array(fall)


register(
    name="occlusion",
    lesson="07",
    reference=solution.occlusion,
    cases=[
        Case("Washington signed it", _taken_out("Washington signed it", 0, _cue)),
        Case("we know Washington signed it", _taken_out("we know Washington signed it", 2, _cue),
             why="two words stand before the name"),
        Case("the last of four words", _taken_out("in a small Phoenix", 3)),
        Case("a word in the middle", _taken_out("They met in Paris last May", 3)),
        Case("a sentence of one word", _taken_out("Paris", 0)),
        Case("a word that hurts", _taken_out("b a Washingtonian c", 0),
             why="without it the probability rises: below 0"),
        Case("words that occur twice", _taken_out("the old Jordan met the new Jordan", 6),
             why="one place is taken out, not every word of that spelling"),
    ],
    mistakes=[
        Mistake("place_not_moved",
                lambda probability, words, place: _occluded(probability, words, place, shift=False),
                "Where you take out a word before it, the word asked about moves one place to the "
                "left, and you look at its neighbor. Use place - 1 there."),
        Mistake("negative",
                lambda probability, words, place: _occluded(probability, words, place, sign=-1),
                "After minus before: your signs are turned. A word that helped has a positive "
                "fall."),
        Mistake("only_after", _only_after,
                "These are the probabilities after each removal. Wanted is how far they fell: "
                "before minus after, and 0 at `place`."),
        Mistake("no_rise", lambda probability, words, place: np.maximum(
                    _occluded(probability, words, place), 0),
                "A word that hurt has 0 in your version. Where the probability rises without a "
                "word, its fall is below 0: leave it so."),
        Mistake("absolute", lambda probability, words, place: np.abs(
                    _occluded(probability, words, place)),
                "All your numbers are positive. Keep the sign: a word that hurt is below 0."),
        Mistake("by_spelling", _by_spelling,
                "You take out every word of the same spelling, or look for the word asked about by "
                "its spelling. A word may occur twice: go by places."),
        Mistake("itself",
                lambda probability, words, place: _occluded(probability, words, place, skip=False)
                if len(words) > 1 else np.zeros(1),
                "The word itself was taken out too. What would its label be then? Leave 0 there."),
        Mistake("masked",
                lambda probability, words, place: _occluded(probability, words, place,
                                                            with_mask="[MASK]"),
                "You put [MASK] in the word's place. That is a method too; here the word is taken "
                "out, and the sentence gets shorter."),
        Mistake("alone", _alone,
                "You keep only one other word each time. Take one word out and keep all the "
                "others."),
        Mistake("whole_list",
                lambda probability, words, place: _occluded(probability, words, place).tolist(),
                "Right numbers in a list; an array of floats is wanted."),
    ],
    also_right=[
        lambda probability, words, place: _occluded(probability, words, place),
        _occlusion_deleting,
    ],
    hints=[
        "Remember the probability before. Then, for each other word: build the sentence without it "
        "and ask again. Where does the word asked about stand now?",
        "rest = words[:gone] + words[gone + 1:]. If gone < place, the word moved to place - 1.",
        "fall = np.zeros(len(words)); for every gone != place: fall[gone] = before - "
        "probability(rest, place - (gone < place)).",
    ],
)
