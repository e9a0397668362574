"""Make vocab.txt, the WordPiece vocabulary of the course's texts: `python -m course vocab`.

The `tokenizers` library (a test dependency) chooses the pieces: it starts from single characters
and joins, again and again, the two neighbors that come together most often. It reads the training
splits only, and the words of the generated sentences. Made again, the file is the same.
"""

import argparse
import string
import sys
from pathlib import Path

from solutions.embeddings import SPECIAL_TOKENS, is_punctuation, normalize

from . import VOCAB, load_conll, load_reviews, load_squad
from .generators import HELD_OUT_NOUNS, NOUNS, controlled_reviews

SIZE = 3000

# Sentences that the lessons come back to.
EXAMPLES = (
    "This movie was fantastic!",
    "John works at Google in California.",
    "John Smith works at Google headquarters.",
    "Where does John work?",
    "The animal did not cross the street because it was too tired.",
)

# Characters that any text may have, so that an unusual word is spelled out and not [UNK].
ALPHABET = string.ascii_lowercase + string.digits
SIGNS = string.punctuation + "“”‘’«»–—…•°€£©™"


def training_texts():
    """All that the vocabulary is made from, in a fixed order."""
    texts = [review.text for review in load_reviews(split="train")]
    texts += [" ".join(sentence.words) for sentence in load_conll(split="train")]
    questions, _ = load_squad(split="train")
    texts += list(dict.fromkeys(question.passage for question in questions))
    texts += [question.question for question in questions]
    # Often enough for each word to become a token. (The nouns for tests are ordinary words here; it
    # is training that holds them out.)
    texts += [review.text for review in controlled_reviews(1000, seed=0, nouns=NOUNS)]
    texts += [" ".join(HELD_OUT_NOUNS)] * 20
    texts += list(EXAMPLES) * 20
    return texts


def make_vocab(size=SIZE):
    """The tokens in the order of their ids."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    texts = training_texts()
    seen = set("".join(normalize(text)[0] for text in texts)) - {" "}
    characters = sorted(seen.union(ALPHABET, SIGNS))
    # Given in this order, the single characters get the same ids in every run. Left to the trainer
    # they would not, and equally frequent pairs would be joined in another order each time.
    fixed = [*SPECIAL_TOKENS, *characters]
    fixed += ["##" + character for character in characters if not is_punctuation(character)]

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, special_tokens=fixed, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.get)


def main(arguments=None) -> int:
    """Write the vocabulary to vocab.txt, or to the file that is given."""
    parser = argparse.ArgumentParser(
        prog="python -m course vocab", description="Make the WordPiece vocabulary of the texts."
    )
    parser.add_argument(
        "--into", type=Path, default=VOCAB, metavar="FILE", help="the course's own by default"
    )
    path = parser.parse_args(arguments).into
    tokens = make_vocab()
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8", newline="\n")
    print(f"{path.name}: {len(tokens)} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
