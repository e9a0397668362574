"""The glossary: what each term of the course means, in one sentence, and where it is introduced.

    python -m course glossary        print which words the build marks, each with what stands around

There is one list, TERMS. `define` and `glossary` show it; `python -m course build` takes from it
the definition that the first use of a term in each lesson carries on hover.
"""

from __future__ import annotations

import argparse
import difflib
import html
import re
from dataclasses import dataclass

from .exercises._report import Notice, show
from .progress import LESSONS

MOST_WORDS = 25
MARKED = re.compile(r'<abbr title="[^"]*">(.*?)</abbr>', re.DOTALL)


@dataclass(frozen=True)
class Term:
    """A term of the course.

    name       : as it stands in running text
    lesson     : the lesson that introduces it, two digits
    definition : one sentence, at most 25 words, plain text
    forms      : its other forms: plurals, and verbs made of it. A form between backticks is code
    only       : the lessons in which a form is marked; all if empty. For words that mean
                 something else elsewhere
    short      : short forms, which mean this term only in the lessons of `short_in`
    unless     : phrases in which a form is an everyday word
    """

    name: str
    lesson: str
    definition: str
    forms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    short_in: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    @property
    def all_forms(self) -> tuple[str, ...]:
        return (self.name, *self.forms)

    def marked_in(self, lesson: str) -> tuple[str, ...]:
        """The forms that mean this term in a lesson."""
        forms = self.all_forms if not self.only or lesson in self.only else ()
        return forms + (self.short if lesson in self.short_in else ())


def _term(name, lesson, definition, forms="", only="", short="", short_in="", unless="") -> Term:
    """Forms and phrases are separated by commas, lessons by blanks."""

    def listed(given):
        return tuple(one.strip() for one in given.split(",") if one.strip())

    return Term(
        name, lesson, definition, listed(forms), tuple(only.split()), listed(short),
        tuple(short_in.split()), listed(unless),
    )  # fmt: skip


TERMS = (
    # ------------------------------------------------------------ 00
    _term("encoder", "00",
          "A model that turns each token of a text into a vector that depends on the words "
          "around it.",
          "encoders"),
    _term("vector", "00",
          "A list of numbers; here, what a model knows about one token or one text.",
          "vectors"),
    _term("task head", "00",
          "The small last part of a model, which turns an encoder's vectors into the answer to "
          "one task.",
          "task heads", short="head, heads", short_in="00 05 06 07 08 09 10"),
    _term("classifier", "00",
          "A model that puts its input into one of a few given classes.",
          "classifiers"),
    # ------------------------------------------------------------ 01
    _term("attention", "01",
          "The step in which each token looks at the others and takes over a weighted mean of "
          "what they offer."),
    _term("dot product", "01",
          "Multiply two vectors number by number and add up: large when both are large in the "
          "same places.",
          "dot products"),
    _term("query", "01",
          "The vector with which a token asks: its dot products with the keys say where it "
          "looks.",
          "queries"),
    _term("key", "01",
          "The vector by which a token is found when others look for something.",
          "keys"),
    _term("value", "01",
          "The vector that a token hands over when attention finds it.",
          "values", only="01 02 03 04 09"),
    _term("score", "01",
          "How well a key answers a query: their dot product, before softmax.",
          "scores", only="01 02"),
    _term("softmax", "01",
          "Turns any numbers into positive ones that sum to 1, the larger the number the larger "
          "its share."),
    _term("attention weight", "01",
          "The share of attention that a query gives to one key; a query's weights sum to 1.",
          "attention weights", short="weights", short_in="01 02"),
    _term("temperature", "01",
          "A number by which scores are divided before softmax: low makes the choice sharp, "
          "high makes it even."),
    _term("saturated", "01",
          "Of a softmax: one weight is almost 1, the others almost 0, and their slopes vanish.",
          "saturate, saturates, saturating"),
    _term("entropy", "01",
          "How widely weights are spread: 0 if one has everything, largest if all are equal."),
    _term("width", "01",
          "How many numbers a vector has.",
          only="01 02 04"),
    _term("mask", "01",
          "A table of True and False: False hides a place, True lets it be used.",
          "masks", only="01 02 03 04 08", unless="mask rate"),
    _term("padding", "01",
          "Filler tokens that bring the rows of a batch to one length; a mask hides them.",
          "`[PAD]`"),
    _term("attention mask", "01",
          "For each token of a row, True if it is real and False if it is padding.",
          "attention masks"),
    _term("padding mask", "01",
          "A mask that hides padding from every query.",
          "padding masks"),
    _term("causal mask", "01",
          "A mask that lets each token look only at itself and at what stands before it.",
          "causal masks"),
    _term("batch", "01",
          "Several examples that go through the model together.",
          "batches", unless="batch normalization"),
    _term("attention head", "01",
          "One of several attentions side by side, each with queries, keys and values of its "
          "own.",
          "attention heads", short="head, heads", short_in="01 02 03 04"),
    # ------------------------------------------------------------ 02
    _term("projection", "02",
          "Multiplying a vector by a learned matrix, to see it from another side.",
          "projections"),
    _term("self-attention", "02",
          "Attention whose queries, keys and values all come from the same text."),
    _term("multi-head attention", "02",
          "Several attentions side by side on slices of the vectors, joined again at the end."),
    _term("cross-attention", "02",
          "Attention in which the queries come from one text, the keys and values from another."),
    _term("bias", "02",
          "A learned number that is added after multiplying by weights.",
          "biases"),
    _term("BERT", "02",
          "An encoder that Google published in 2018, trained to guess hidden words; this course "
          "builds its parts.",
          "BERT-base"),
    _term("NaN", "02",
          "Not a number: what a computer gives where a result is undefined, such as 0 divided "
          "by 0."),
    # ------------------------------------------------------------ 03
    _term("tokenizer", "03",
          "The program that cuts a text into tokens and gives each its id.",
          "tokenizers"),
    _term("token", "03",
          "A unit of text that has a number of its own: a word, a piece of one, or a special "
          "mark.",
          "tokens"),
    _term("vocabulary", "03",
          "All tokens that a model knows, each with its id.",
          "vocabularies"),
    _term("word piece", "03",
          "A token that is a word or part of one; a part that continues a word is written with "
          "##.",
          "word pieces", short="piece, pieces", short_in="00 03 07 09", unless="in one piece"),
    _term("longest match first", "03",
          "BERT's way to cut a word: from the left, always the longest piece that the "
          "vocabulary has."),
    _term("id", "03",
          "The number of a token in the vocabulary; a name, not a quantity.",
          "ids", only="00 01 02 03 04 05 06 08 09 10", unless="word id, word ids"),
    _term("code point", "03",
          "The number that Unicode gives to a character; Python counts a text in these.",
          "code points"),
    _term("offsets", "03",
          "Where a token begins and stops in the text as it was typed, counted in characters.",
          only="03 07 08"),
    _term("word id", "03",
          "Which word a token belongs to: 0 for the first word, 1 for the second; none for "
          "special tokens.",
          "word ids"),
    _term("uncased", "03",
          "Of a model that lower-cases all text, so that Reading and reading are the same "
          "token."),
    _term("[CLS]", "03",
          "The special token in front of every text; its vector can stand for the whole text.",
          "`[CLS]`"),
    _term("[SEP]", "03",
          "The special token that ends a text and separates two.",
          "`[SEP]`"),
    _term("[UNK]", "03",
          "The token for a word that the vocabulary cannot spell.",
          "`[UNK]`"),
    _term("special token", "03",
          "A token that stands for no word, such as [CLS], [SEP] and [PAD].",
          "special tokens"),
    _term("segment", "03",
          "Which of two texts in one row a token belongs to: 0 for the first, 1 for the second.",
          "segments"),
    _term("embedding", "03",
          "The vector in a learned table that stands for a token, a segment or a position.",
          "embeddings"),
    _term("position", "03",
          "The place of a token in its row, counted from 0.",
          "positions"),
    _term("position vector", "03",
          "A vector added to a token's embedding to say where the token stands.",
          "position vectors, position embedding, position embeddings"),
    _term("d_model", "03",
          "The width of a model: how many numbers the vector of each token has.",
          "`d_model`"),
    # ------------------------------------------------------------ 04
    _term("linear layer", "04",
          "Multiplies a vector by a matrix of weights and adds a bias.",
          "linear layers"),
    _term("layer", "04",
          "One round of attention and feed-forward network; an encoder is a stack of them.",
          "layers"),
    _term("feed-forward network", "04",
          "Two linear layers with a bend between them, applied to each token by itself.",
          "feed-forward networks", short="feed-forward", short_in="04"),
    _term("ReLU", "04",
          "The simplest bend: negative numbers become 0, the others stay."),
    _term("GELU", "04",
          "BERT's bend: like ReLU, but smooth near 0."),
    _term("LayerNorm", "04",
          "Shifts and scales each token's vector to mean 0 and variance 1, then applies a "
          "learned scale and shift.",
          unless="LayerNorms"),
    _term("batch normalization", "04",
          "Brings each number of the vectors to mean 0 over the whole batch, so that its "
          "examples influence each other."),
    _term("residual", "04",
          "Adding what came into a step to what comes out, so that a step only makes a change.",
          "residuals"),
    _term("dropout", "04",
          "In training, setting some numbers to 0 at random, so that the model relies on no "
          "single one."),
    _term("hidden state", "04",
          "The vector of a token between two layers, or after the last one.",
          "hidden states"),
    _term("bidirectional", "04",
          "Each token sees the words on both sides of it."),
    _term("causal", "04",
          "Each token sees only itself and what stands before it."),
    _term("parameter", "04",
          "A number that training changes: a weight or a bias.",
          "parameters"),
    _term("weight", "04",
          "A learned number by which inputs are multiplied; the weights of a model are all that "
          "it has learned.",
          only="04", short="weights", short_in="04 05 06 07 08 09 10"),
    _term("post-LN", "04",
          "The order of BERT's layers: add first, then LayerNorm on the sum."),
    _term("pre-LN", "04",
          "The order of most later models: LayerNorm on what goes into a step, nothing on the "
          "sum."),
    _term("pooler", "04",
          "One more linear layer that BERT puts on the vector of [CLS]."),
    _term("cosine similarity", "04",
          "How alike the directions of two vectors are: 1 for the same, 0 for nothing in "
          "common, -1 for opposite.",
          "cosine, cosines", only="04 05 06 07 08 09 10"),
    # ------------------------------------------------------------ 05
    _term("training", "05",
          "Changing a model's weights in many small steps, so that its loss on given examples "
          "falls."),
    _term("loss", "05",
          "One number that says how wrong a model is; training makes it smaller.",
          "losses", unless="loss of any"),
    _term("logit", "05",
          "The score that a model gives to one choice; softmax turns the logits of all choices "
          "into probabilities.",
          "logits"),
    _term("label", "05",
          "The right answer that belongs to an example, or the one that a model gives.",
          "labels", only="05 06 07 08 10"),
    _term("cross-entropy", "05",
          "A loss: minus the log of the probability that the model gave to the right answer.",
          "cross-entropies"),
    _term("gradient", "05",
          "For each number, how fast the loss grows when that number grows; training goes the "
          "other way.",
          "gradients", unless="plain gradient"),
    _term("learning rate", "05",
          "How far each training step goes: the number by which its direction is multiplied.",
          "learning rates"),
    _term("diverge", "05",
          "Of a training run: the loss rises instead of falling, because the steps are too "
          "long.",
          "diverges, diverged"),
    _term("optimizer", "05",
          "The rule that makes a step of the weights out of their gradients.",
          "optimizers"),
    _term("clipping", "05",
          "Shortening the gradients, all together, when they are longer than a limit."),
    _term("Adam", "05",
          "An optimizer that divides each weight's step by the usual size of its gradient."),
    _term("AdamW", "05",
          "Adam with weight decay kept apart from the gradient; the usual optimizer for "
          "encoders."),
    _term("momentum", "05",
          "Stepping along a running mean of the gradients instead of the last one alone."),
    _term("weight decay", "05",
          "Making every weight a little smaller at each step, whatever its gradient."),
    _term("warm-up", "05",
          "Letting the learning rate grow from near 0 to its full size over the first steps."),
    _term("[MASK]", "05",
          "The special token that takes the place of a hidden word in pretraining.",
          "`[MASK]`"),
    _term("mask rate", "05",
          "Which share of the tokens is hidden and asked for in pretraining."),
    _term("pretraining", "05",
          "Training on much text without labels, before the task itself; here, by guessing "
          "hidden words.",
          "pretrained"),
    _term("dev split", "05",
          "Examples kept out of training, on which settings are chosen.",
          "dev sentences, dev tokens, dev questions, dev set", short="dev",
          short_in="05 06 07 08 10"),
    _term("baseline", "05",
          "A simple answer, or a simple model, that a better one has to beat.",
          "baselines"),
    _term("seed", "05",
          "The number that fixes a random generator, so that the same random numbers come "
          "again.",
          "seeds"),
    # ------------------------------------------------------------ 06
    _term("pool", "06",
          "Make one vector for a whole text out of the vectors of its tokens.",
          "pooling, pooled", only="06 09", unless="pool the vectors of"),
    _term("bag of words", "06",
          "A model that counts which words occur and ignores their order."),
    _term("accuracy", "06",
          "The share of answers that are right."),
    _term("confusion matrix", "06",
          "A table that counts, for each true class, how often each class was predicted."),
    _term("precision", "06",
          "Of all that the model found, the share that is right."),
    _term("recall", "06",
          "Of all that was there to find, the share that the model found."),
    _term("F1", "06",
          "One number for precision and recall, their harmonic mean: low as soon as one of them "
          "is low."),
    _term("macro F1", "06",
          "The plain mean of the classes' F1, so that a rare class counts as much as a common "
          "one."),
    _term("calibration", "06",
          "Whether a model that says 90 % is right in 90 of 100 such cases."),
    _term("threshold", "06",
          "The limit that a score must pass to count as a yes.",
          "thresholds"),
    _term("test split", "06",
          "Examples that are used once, at the end, to measure the finished model.",
          "test set, test sentences, test reviews, test questions"),
    _term("epoch", "06",
          "One pass through all training examples.",
          "epochs"),
    # ------------------------------------------------------------ 07
    _term("token classification", "07",
          "Giving every token of a text a label."),
    _term("named-entity recognition", "07",
          "Marking the names in a text and saying what kind each is: person, organization, "
          "place."),
    _term("entity", "07",
          "A name in a text, of one or more words, with its type.",
          "entities"),
    _term("BIO", "07",
          "Labels that mark entities: B- begins one, I- continues it, O is outside of all."),
    _term("strict", "07",
          "Of decoding: an I- label that continues nothing is left out.",
          only="07"),
    _term("tagger", "07",
          "A model that gives every word of a text a label.",
          "taggers"),
    _term("occlusion", "07",
          "Taking a word out of the text to see how much the decision depended on it."),
    # ------------------------------------------------------------ 08
    _term("extractive question answering", "08",
          "Answering a question by marking where the answer stands in a given passage."),
    _term("span", "08",
          "Neighboring tokens, given by the first and the last of them.",
          "spans"),
    _term("no-answer score", "08",
          "The score of the claim that the passage has no answer: start and end at [CLS].",
          "no-answer scores"),
    _term("window", "08",
          "A part of a long text, short enough for the model; neighboring windows overlap.",
          "windows"),
    _term("overlap", "08",
          "The tokens that two neighboring windows share.",
          only="08", unless="They overlap"),
    _term("exact match", "08",
          "The share of answers that equal a right one word for word, after normalization.",
          "exact-match", unless="exact-match feature"),
    _term("held-out", "08",
          "Kept out of training, so that the model has never seen it."),
    _term("curriculum", "08",
          "Ordering what is learned from easy to hard."),
    _term("SQuAD", "08",
          "A large public data set of questions about passages of Wikipedia; its format and "
          "measures are the usual ones."),
    # ------------------------------------------------------------ 09
    _term("checkpoint", "09",
          "The files that hold a trained model: its sizes, its vocabulary and its weights.",
          "checkpoints"),
    _term("safetensors", "09",
          "A file format for weights that holds names, shapes and numbers, and no program."),
    _term("pickle", "09",
          "An older format of Python; reading such a file can run a program hidden in it."),
    _term("tensor", "09",
          "An array of numbers with any number of axes.",
          "tensors"),
    _term("frozen", "09",
          "Frozen weights stay as they are while the rest of the model is trained.",
          "freeze, freezes"),
    _term("fine-tuning", "09",
          "Training a pretrained model further, on a task of its own.",
          "fine-tuned, fine-tune, fine-tunes"),
    _term("linear probe", "09",
          "A linear classifier on frozen vectors; what it can tell, the vectors hold openly.",
          "linear probes, probe, probes"),
    # ------------------------------------------------------------ 10
    _term("entailment", "10",
          "The relation of two sentences in which the second is true whenever the first is."),
    _term("contradiction", "10",
          "The relation of two sentences that cannot both be true.",
          "contradictions"),
)  # fmt: skip

# One word for one thing: words that are good elsewhere, and the one that the lessons use.
INSTEAD_OF = {
    "subword": "word piece",
    "sub-word": "word piece",
    "subwords": "word piece",
    "sub-words": "word piece",
    "wordpiece": "word piece",
    "wordpieces": "word piece",
    "token type": "segment",
    "token types": "segment",
    "masked language modeling": "pretraining",
    "masked language model": "pretraining",
    "masked-language modeling": "pretraining",
    "MLM": "pretraining",
    "pre-training": "pretraining",
    "pre-trained": "pretraining",
    "finetuning": "fine-tuning",
    "finetuned": "fine-tuning",
    "finetune": "fine-tuning",
    "warmup": "warm-up",
    "validation set": "dev split",
    "validation split": "dev split",
    "development set": "dev split",
    "layer normalization": "LayerNorm",
    "layer norm": "LayerNorm",
    "MLP": "feed-forward network",
    "FFN": "feed-forward network",
    "feedforward": "feed-forward network",
    "skip connection": "residual",
    "skip connections": "residual",
    "shortcut connection": "residual",
    "unidirectional": "causal",
    "autoregressive": "causal",
    "left-to-right": "causal",
    "positional encoding": "position vector",
    "positional encodings": "position vector",
    "positional embedding": "position vector",
    "positional embeddings": "position vector",
    "hidden vector": "hidden state",
    "hidden vectors": "hidden state",
    "null score": "no-answer score",
    "NER": "named-entity recognition",
    "EM": "exact match",
    "F1 score": "F1",
    "F1-score": "F1",
    "step size": "learning rate",
    "dataset": "data set",
    "datasets": "data set",
}


# ---------------------------------------------------------------- finding a term


def _key(text: str) -> str:
    """What two spellings of one term have in common: no case, hyphens, brackets or backticks."""
    return " ".join(re.sub(r"[`\[\]_-]", " ", text).casefold().split())


def _index() -> dict[str, list[Term]]:
    found: dict[str, list[Term]] = {}
    for term in TERMS:
        for form in {_key(form) for form in (*term.all_forms, *term.short)}:
            found.setdefault(form, []).append(term)
    return found


def find(text: str) -> list[Term]:
    """The terms that a word means, [] if it is none: case, hyphens and plurals are forgiven."""
    found = _in_index(text)
    if not found:
        names = [name for variant, name in INSTEAD_OF.items() if _key(variant) in _singulars(text)]
        found = _in_index(names[0]) if names else []
    return found


def _in_index(text: str) -> list[Term]:
    index = _index()
    return next((index[key] for key in _singulars(text) if key in index), [])


def _singulars(text: str) -> list[str]:
    key = _key(text)
    return [key, *(key.removesuffix(end) for end in ("s", "es") if key.endswith(end))]


def nearest(text: str) -> list[str]:
    """The names of at most three terms that are spelled much like a word."""
    index = _index()
    close = difflib.get_close_matches(_key(text), list(index), n=6, cutoff=0.7)
    return list(dict.fromkeys(_plain(term.name) for key in close for term in index[key]))[:3]


def _plain(name: str) -> str:
    return name.strip("`")


# ---------------------------------------------------------------- showing


def _title(lesson: str) -> str:
    return f"lesson {lesson}, {LESSONS[lesson][0]}"


def _link(lesson: str) -> str:
    # The place as seen from notebooks/ and from solutions/ alike; the color for the light ground of
    # a notice, in both themes.
    return (
        f'<a href="../notebooks/{LESSONS[lesson][1]}.ipynb" style="color:#0b4a91;'
        f'text-decoration:underline">{html.escape(_title(lesson))}</a>'
    )


def define(term) -> None:
    """Show what a term means and which lesson introduces it.

    term: the word, as in define("logit"). Case, hyphens and plurals are forgiven; a function is
    looked up by its name. What is not in the glossary is said, with the words nearest to it.
    """
    text = term if isinstance(term, str) else getattr(term, "__name__", None)
    if not isinstance(text, str) or not _key(text):
        got = "nothing" if isinstance(term, str) else f"`{type(term).__name__}`"
        show(
            Notice(
                "alert-warning",
                f'`define` takes a word in quotes, as in `define("logit")`; it got {got}. '
                "`glossary()` shows all words.",
            )
        )
        return
    found = find(text)
    if not found:
        near = " or ".join(f'`define("{one}")`' for one in nearest(text))
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        show(
            Notice(
                "alert-warning",
                f'The glossary has no "{" ".join(shown.split())}". '
                + (f"Did you mean {near}? " if near else "")
                + "`glossary()` shows all words.",
            )
        )
        return
    lines = [(_plain(one.name), one.definition, one.lesson) for one in found]
    other = "" if _in_index(text) else f'The course says "{lines[0][0]}".'
    show(
        Notice(
            "alert-info",
            other,
            "".join(
                f"<div><strong>{html.escape(name)}</strong>: {html.escape(definition)} "
                f"<em>Introduced in {_link(lesson)}.</em></div>"
                for name, definition, lesson in lines
            ),
            "\n".join(
                [other] * bool(other)
                + [
                    f"{name}: {definition} Introduced in {_title(lesson)}."
                    for name, definition, lesson in lines
                ]
            ),
        )
    )


class Glossary:
    """All terms, folded by the lesson that introduces them."""

    def __init__(self):
        self.lessons = {
            lesson: sorted(
                (one for one in TERMS if one.lesson == lesson), key=lambda one: _key(one.name)
            )
            for lesson in LESSONS
        }

    def __str__(self) -> str:
        lines = []
        for lesson, terms in self.lessons.items():
            if terms:
                lines.append(_title(lesson)[0].upper() + _title(lesson)[1:])
                lines.extend(f"  {_plain(one.name)}: {one.definition}" for one in terms)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/html": self._html(), "text/plain": str(self)}

    def _html(self) -> str:
        parts = [
            f"<div>{len(TERMS)} terms, each under the lesson that introduces it. "
            '<code>define("logit")</code> shows a single one.</div>'
        ]
        for lesson, terms in self.lessons.items():
            if not terms:
                continue
            rows = "".join(
                f'<dt style="font-weight:bold;margin:6px 0 0">{html.escape(_plain(one.name))}</dt>'
                f'<dd style="margin:0 0 0 24px">{html.escape(one.definition)}</dd>'
                for one in terms
            )
            title = _title(lesson)
            parts.append(
                '<details style="margin:4px 0"><summary style="cursor:pointer">'
                f"{html.escape(title[0].upper() + title[1:])} ({len(terms)})</summary>"
                f'<dl style="margin:4px 0 8px 16px;display:block">{rows}</dl></details>'
            )
        return f'<div style="max-width:48em;line-height:1.5">{"".join(parts)}</div>'


def glossary() -> None:
    """Show all terms of the course, folded by the lesson that introduces them."""
    show(Glossary())


def main(arguments=None) -> int:
    """Print every word that the build marks, for an author to see whether it means the term."""
    parser = argparse.ArgumentParser(
        prog="python -m course glossary",
        description="Print the words that carry a definition, each with what stands around it.",
    )
    parser.parse_args(arguments)
    from . import build

    for lesson in build.lessons():
        print(lesson.name)
        for cell in build.normal(build.read(lesson.blank), lesson.number).cells:
            for found in MARKED.finditer(cell.source):
                before = build.without_abbreviations(cell.source[: found.start()])
                after = build.without_abbreviations(cell.source[found.end() :])
                around = f"{before[-40:]:>40} [{found[1]}] {after[:40]}"
                print("  " + around.replace("\n", " "))
    return 0
