"""Fine-tune all layers on real data: files that you name, in the field's formats; NumPy only.

    python tests/benchmarks/real_data.py sentiment TRAIN.tsv DEV.tsv --examples 600 --epochs 3
    python tests/benchmarks/real_data.py answers SQUAD.json --train-articles 36 --epochs 4

sentiment: text<TAB>label, as in SST-2; all of TRAIN, or the first --examples after a shuffle.
answers: SQuAD 1.1 or 2.0; the first --train-articles articles train, the others test.
Prints result, time and memory. `--torch-python PATH` (with torch and transformers) trains the same
on PyTorch in a process of its own, before and after, and prints `NAME ratio 0.xx` of the times.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]


def shuffled(path, count, seed):
    from course.texts import load_reviews

    reviews = load_reviews(path)
    order = np.random.default_rng(seed).permutation(len(reviews))[: count or len(reviews)]
    return [reviews[i] for i in order]


def split_articles(path, train_articles):
    from course.texts import load_squad

    questions, mismatches = load_squad(path)
    titles = list(dict.fromkeys(q.title for q in questions))
    first = set(titles[:train_articles])
    print(f"{len(questions)} questions, {len(titles)} articles, {len(mismatches)} not found")
    return (
        [q for q in questions if q.title in first],
        [q for q in questions if q.title not in first],
    )


def head_faster(name):
    return 1 if name.startswith("encoder.") else 5


def train_sentiment(args):
    from course.texts import load_reviews

    from solutions.pretrained import load_pretrained
    from solutions.text_classification import TextClassifier
    from solutions.training import fit

    encoder, tokenizer = load_pretrained()
    train, dev = shuffled(args.files[0], args.examples, args.seed), load_reviews(args.files[1])
    labels = sorted({review.label for review in train})
    model = TextClassifier(encoder, tokenizer, labels, args.pooling, seed=args.seed)
    ready = [
        model.prepare([r.text for r in some], [r.label for r in some]) for some in (train, dev)
    ]
    began = time.perf_counter()
    fit(model, ready[0], epochs=args.epochs, batch_size=16, lr=args.lr, lr_scale=head_faster,
        seed=args.seed)  # fmt: skip
    seconds = time.perf_counter() - began
    return {"accuracy": model.evaluate(ready[1]), "seconds": seconds}


def train_answers(args):
    from solutions.encoder import Encoder
    from solutions.pretrained import load_pretrained
    from solutions.question_answering import QuestionAnswerer, mean_scores
    from solutions.training import fit

    encoder, tokenizer = load_pretrained()
    encoder = Encoder(encoder.config, encoder.params)
    train, test = split_articles(args.files[0], args.train_articles)
    model = QuestionAnswerer(encoder, tokenizer, seed=args.seed)
    ready = model.prepare(train)
    began = time.perf_counter()
    fit(model, ready, epochs=args.epochs, batch_size=16, lr=args.lr, lr_scale=head_faster,
        seed=args.seed)  # fmt: skip
    seconds = time.perf_counter() - began
    said = [answer.text for answer in model.answer_all(test, decide=False)]
    scores = mean_scores(said, [[gold.text for gold in q.answers] for q in test])
    return {"f1": scores["f1"], "exact": scores["exact_match"], "seconds": seconds}


def torch_sentiment(args):
    """The same fine-tuning on PyTorch: batches padded to their longest, AdamW, linear warm-up."""
    import torch
    import transformers

    from solutions.pretrained import fetch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    folder = fetch()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = transformers.BertModel.from_pretrained(folder)
    train = shuffled(args.files[0], args.examples, args.seed)
    head = torch.nn.Linear(encoder.config.hidden_size, 2)
    params = [{"params": encoder.parameters(), "lr": args.lr},
              {"params": head.parameters(), "lr": 5 * args.lr}]  # fmt: skip
    optimizer = torch.optim.AdamW(params, weight_decay=0.01)
    total = args.epochs * -(-len(train) // 16)
    warm = max(1, round(0.1 * total))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warm, (total - s) / (total - warm))
    )

    def logits(reviews):
        batch = tokenizer([r.text for r in reviews], padding=True, return_tensors="pt")
        hidden = encoder(**batch).last_hidden_state
        if args.pooling == "cls":
            return head(hidden[:, 0])
        mask = batch["attention_mask"][:, :, None]
        return head((hidden * mask).sum(1) / mask.sum(1))

    began, rng = time.perf_counter(), np.random.default_rng(args.seed)
    encoder.train()
    for _ in range(args.epochs):
        order = sorted(rng.permutation(len(train)), key=lambda i: len(train[i].text))
        groups = [order[i : i + 16] for i in range(0, len(order), 16)]  # like lengths, as ours
        for g in rng.permutation(len(groups)):
            some = [train[i] for i in groups[g]]
            loss = torch.nn.functional.cross_entropy(
                logits(some), torch.tensor([r.label for r in some])
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*encoder.parameters(), *head.parameters()], 1.0)
            optimizer.step()
            rate.step()
    seconds = time.perf_counter() - began
    encoder.eval()
    from course.texts import load_reviews

    dev, right = load_reviews(args.files[1]), 0
    with torch.inference_mode():
        for i in range(0, len(dev), 64):
            some = dev[i : i + 64]
            right += sum(logits(some).argmax(-1).numpy() == [r.label for r in some])
    return {"accuracy": right / len(dev), "seconds": seconds}


def on_torch(args):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(args.threads))}
    command = [args.torch_python, __file__, *sys.argv[1:], "--serve"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"PyTorch's side failed: {done.stderr[-400:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def said(who, result):
    scores = ", ".join(f"{k} {v:.3f}" for k, v in result.items() if k not in ("seconds", "mb"))
    print(f"{who}: {scores}, {result['seconds']:.0f} s, {result['mb']:.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=["sentiment", "answers"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--examples", type=int, default=0)
    parser.add_argument("--train-articles", type=int, default=36)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--pooling", choices=["cls", "mean"], default="cls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-python")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_python and args.task != "sentiment":
        parser.error("--torch-python: only for sentiment")
    if args.serve:
        result = torch_sentiment(args)
    else:
        theirs = [on_torch(args)] if args.torch_python else []
        result = {"sentiment": train_sentiment, "answers": train_answers}[args.task](args)
    result["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if args.serve:
        print(json.dumps({name: float(value) for name, value in result.items()}))
        return
    said("NumPy", result)
    if theirs:
        theirs.append(on_torch(args))
        for one in theirs:
            said("PyTorch", one)
        mean = sum(one["seconds"] for one in theirs) / 2
        print(f"{args.task} ratio {result['seconds'] / mean:.2f} (at most 1.0)")


if __name__ == "__main__":
    main()
