"""Makes tests/pretrained_reference.npz: what transformers computes for a few sentences.

    pip install torch transformers
    python tests/make_pretrained_reference.py

Needed only to make the file again; the tests read it without torch or transformers.
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers

from solutions.pretrained import fetch

PATH = Path(__file__).with_name("pretrained_reference.npz")
TEXTS = [
    "Washington signed it.",
    "They flew to Washington.",
    "The plot is thin, yet I would watch the naïve café scene again!",
    "Who dammed the Linnet Brook in 1788, and why?",
    "好 ok 👍🏽 unbelievably",
    "A",
]
PAIR = ("Where does the wheel stand?", "Today the mill belongs to the town, and the wheel is gone.")
CARD = ["This is an example sentence", "Each sentence is converted"]


def main():
    folder = fetch()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    about = {
        "texts": TEXTS,
        "pair": PAIR,
        "card": CARD,
        "made with": f"torch {torch.__version__}, transformers {transformers.__version__}",
    }
    arrays = {"about": np.array(json.dumps(about, ensure_ascii=False))}
    with torch.no_grad():
        batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
        arrays["batch_ids"] = batch["input_ids"].numpy().astype(np.int32)
        arrays["batch_mask"] = batch["attention_mask"].numpy().astype(bool)
        arrays["batch_hidden"] = model(**batch).last_hidden_state.numpy()
        for i, text in enumerate(TEXTS):
            alone = tokenizer(text, return_tensors="pt")
            arrays[f"alone_{i}"] = model(**alone).last_hidden_state[0].numpy()
        pair = tokenizer(*PAIR, return_tensors="pt")
        out = model(**pair, output_hidden_states=True)
        arrays["pair_ids"] = pair["input_ids"][0].numpy().astype(np.int32)
        arrays["pair_segments"] = pair["token_type_ids"][0].numpy().astype(np.int32)
        for i, hidden in enumerate(out.hidden_states):
            arrays[f"pair_layer_{i}"] = hidden[0, ::4].numpy()  # every fourth token
        card = tokenizer(CARD, padding=True, return_tensors="pt")
        hidden, mask = model(**card).last_hidden_state, card["attention_mask"][:, :, None]
        mean = (hidden * mask).sum(1) / mask.sum(1)  # as on the model card
        arrays["card_vectors"] = torch.nn.functional.normalize(mean).numpy()
    with open(PATH, "wb") as file:
        np.savez_compressed(file, **arrays)
    print(f"{PATH.name}: {PATH.stat().st_size / 1e3:.0f} kB, {about['made with']}")


if __name__ == "__main__":
    main()
