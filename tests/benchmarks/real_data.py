"""Fine-tune all layers on real data: files that you name, in the field's formats; NumPy only.

    python tests/benchmarks/real_data.py sentiment TRAIN.tsv DEV.tsv --examples 600 --epochs 3
    python tests/benchmarks/real_data.py answers SQUAD.json --train-articles 36 --epochs 4

sentiment: text<TAB>label, as in SST-2; all of TRAIN, or the first --examples after a shuffle.
answers: SQuAD 1.1 or 2.0; the first --train-articles articles train, the others test.
Prints result, time of training and peak memory. `--torch-python PATH` (with torch, transformers and
NumPy) trains the same on PyTorch in a process of its own: the two take turns, some steps each, so
that a loaded machine slows both, and `NAME ratio 0.xx` compares their times. `--record` keeps the
figures in results.json.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]

BATCH, TURN = 16, 10  # examples a step; steps a turn


# ---------------------------------------------------------------- data, the same for both sides


def sentiment_data(args):
    from course.texts import load_reviews

    reviews = load_reviews(args.files[0])
    order = np.random.default_rng(args.seed).permutation(len(reviews))
    return [reviews[i] for i in order[: args.examples or None]], load_reviews(args.files[1])


def answers_data(args):
    from course.texts import load_squad

    questions, mismatches = load_squad(args.files[0])
    titles = list(dict.fromkeys(question.title for question in questions))
    print(f"{len(questions)} questions, {len(titles)} articles, {len(mismatches)} not found",
          file=sys.stderr)  # fmt: skip
    first = set(titles[: args.train_articles])
    train, test = [], []
    for question in questions:
        (train if question.title in first else test).append(question)
    return train, test


def sentiment_model(args, train):
    from solutions.pretrained import load_pretrained
    from solutions.text_classification import TextClassifier

    labels = sorted({review.label for review in train})
    return TextClassifier(*load_pretrained(), labels, args.pooling, seed=args.seed)


def answers_model(args):
    """A question answerer whose inputs are windows of at most --length tokens."""
    from solutions.encoder import Encoder
    from solutions.pretrained import load_pretrained
    from solutions.question_answering import QuestionAnswerer

    encoder, tokenizer = load_pretrained()
    length = min(args.length, encoder.config.max_length)
    params = dict(encoder.params)
    params["embeddings.position"] = params["embeddings.position"][:length].copy()
    config = dataclasses.replace(encoder.config, max_length=length)
    return QuestionAnswerer(Encoder(config, params), tokenizer, seed=args.seed)


def answer_scores(model, test):
    from solutions.question_answering import mean_scores

    said = [answer.text for answer in model.answer_all(test, decide=False)]
    scores = mean_scores(said, [[gold.text for gold in question.answers] for question in test])
    return {"f1": scores["f1"], "exact": scores["exact_match"]}


# ---------------------------------------------------------------- our side


class Turns:
    """A watch of `fit` that runs as many steps as it is told to, and says how long they took."""

    def start(self, total):
        say({"total": total})
        self.wait()

    def wait(self):
        self.left = int(sys.stdin.readline())
        self.began = time.perf_counter()

    def step(self, step, loss, lr):
        if self.left == 0:
            say({"seconds": time.perf_counter() - self.began})
            self.wait()
        self.left -= 1

    def dev(self, step, score):
        pass

    def end(self, reason):
        say({"seconds": time.perf_counter() - self.began, "done": True})


def say(what):
    print(json.dumps(what), flush=True)


def head_faster(name):
    return 1 if name.startswith("encoder.") else 5


def ours(args):
    from solutions.training import SideBySide, fit

    if args.task == "sentiment":
        train, dev = sentiment_data(args)
        model = sentiment_model(args, train)
        ready, dev = (
            model.prepare([r.text for r in some], [r.label for r in some]) for some in (train, dev)
        )
    else:
        train, dev = answers_data(args)
        model = answers_model(args)
        ready = model.prepare(train)
    fit(SideBySide(model), ready, epochs=args.epochs, batch_size=BATCH, lr=args.lr,
        lr_scale=head_faster, seed=args.seed, watch=Turns())  # fmt: skip
    if args.task == "sentiment":
        say({"accuracy": model.evaluate(dev)})
    else:
        say(answer_scores(model, dev))


# ---------------------------------------------------------------- PyTorch's side


def pytorch(args):
    """The same fine-tuning: batches of like lengths, AdamW, linear warm-up, clipped gradients."""
    import torch
    import transformers

    from solutions.pretrained import fetch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    encoder = transformers.BertModel.from_pretrained(fetch())
    head = torch.nn.Linear(encoder.config.hidden_size, 2)
    torch.nn.init.normal_(head.weight, 0, 0.02)
    torch.nn.init.zeros_(head.bias)
    kind = torch_sentiment if args.task == "sentiment" else torch_answers
    examples, length, loss_of, evaluate = kind(args, torch, encoder, head)

    params = [{"params": encoder.parameters(), "lr": args.lr},
              {"params": head.parameters(), "lr": 5 * args.lr}]  # fmt: skip
    optimizer = torch.optim.AdamW(params, weight_decay=0.01)
    total = args.epochs * -(-len(examples) // BATCH)
    warm = max(1, round(0.1 * total))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warm, (total - s) / (total - warm))
    )
    rng, turns = np.random.default_rng(args.seed), Turns()
    encoder.train()
    turns.start(total)
    for _ in range(args.epochs):
        order = sorted(rng.permutation(len(examples)), key=lambda i: length(examples[i]))
        groups = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        for g in rng.permutation(len(groups)):
            loss = loss_of([examples[i] for i in groups[g]])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*encoder.parameters(), *head.parameters()], 1.0)
            optimizer.step()
            rate.step()
            turns.step(None, None, None)
    turns.end(None)
    encoder.eval()
    with torch.inference_mode():
        say(evaluate())


def torch_sentiment(args, torch, encoder, head):
    import transformers

    from solutions.pretrained import fetch

    tokenizer = transformers.AutoTokenizer.from_pretrained(fetch())
    train, dev = sentiment_data(args)

    def logits(reviews):
        batch = tokenizer([r.text for r in reviews], padding=True, return_tensors="pt")
        hidden = encoder(**batch).last_hidden_state
        if args.pooling == "cls":
            return head(hidden[:, 0])
        mask = batch["attention_mask"][:, :, None]
        return head((hidden * mask).sum(1) / mask.sum(1))

    def loss_of(reviews):
        labels = torch.tensor([review.label for review in reviews])
        return torch.nn.functional.cross_entropy(logits(reviews), labels)

    def evaluate():
        right = 0
        for i in range(0, len(dev), 64):
            some = dev[i : i + 64]
            right += int(sum(logits(some).argmax(-1).numpy() == [r.label for r in some]))
        return {"accuracy": right / len(dev)}

    return train, lambda review: len(review.text), loss_of, evaluate


def torch_answers(args, torch, encoder, head):
    """Windows and decoding are ours, so that the two differ in nothing but the network."""
    train, test = answers_data(args)
    model = answers_model(args)

    def run(made):
        batch, allowed = model._batch(made)
        both = head(
            encoder(
                input_ids=torch.from_numpy(batch["input_ids"]),
                attention_mask=torch.from_numpy(batch["attention_mask"].astype(np.int64)),
                token_type_ids=torch.from_numpy(batch["token_type_ids"].astype(np.int64)),
            ).last_hidden_state
        )
        allowed[:, 0] = True  # [CLS]: no answer in this window
        return both, torch.from_numpy(allowed)

    def loss_of(made):
        both, candidates = run(made)
        both = both.masked_fill(~candidates[:, :, None], torch.finfo(both.dtype).min / 4)
        labels = torch.tensor([[window.start, window.end] for window in made])
        return torch.nn.functional.cross_entropy(both, labels)

    def logits(made, batch_size=32):
        order = np.argsort([len(window) for window in made], kind="stable")
        result = [None] * len(made)
        for first in range(0, len(made), batch_size):
            rows = order[first : first + batch_size]
            both = run([made[i] for i in rows])[0].numpy()
            for row, i in enumerate(rows):
                result[i] = both[row, : len(made[i]), 0], both[row, : len(made[i]), 1]
        return result

    model.logits = logits
    return model.prepare(train), len, loss_of, lambda: answer_scores(model, test)


# ---------------------------------------------------------------- turns


class Side:
    """One of the two processes, and the seconds that its steps took."""

    def __init__(self, python, side, args):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, str(args.threads))}
        self.process = subprocess.Popen(
            [python, __file__, *sys.argv[1:], "--serve", side],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
        self.seconds, self.done, self.total = 0.0, False, self.hear()["total"]

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a side ended early; what it said stands above")
        return json.loads(line)

    def turn(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        heard = self.hear()
        self.seconds += heard["seconds"]
        self.done = heard.get("done", False)

    def end(self):
        """The scores, and the peak memory in MB."""
        heard = self.hear()
        heard["mb"] = self.hear()["mb"]
        self.process.wait()
        return {**heard, "seconds": self.seconds}


def shown(who, result):
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
    parser.add_argument("--length", type=int, default=256, help="tokens of an input, for answers")
    parser.add_argument("--pooling", choices=["cls", "mean"], default="cls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-python")
    parser.add_argument("--record", action="store_true", help="keep the figures in results.json")
    parser.add_argument("--serve", choices=["ours", "torch"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        import resource

        (ours if args.serve == "ours" else pytorch)(args)
        say({"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
        return

    sides = {"NumPy": Side(sys.executable, "ours", args)}
    if args.torch_python:
        sides["PyTorch"] = Side(args.torch_python, "torch", args)
    number = 0
    while not all(side.done for side in sides.values()):
        for side in list(sides.values())[:: -1 if number % 2 else 1]:
            if not side.done:
                side.turn(TURN)
        number += 1
    results = {who: side.end() for who, side in sides.items()}
    for who, result in results.items():
        shown(who, result)
    figures = {who: {k: round(v, 3) for k, v in one.items()} for who, one in results.items()}
    if args.torch_python:
        figures["ratio"] = round(sides["NumPy"].seconds / sides["PyTorch"].seconds, 2)
        print(f"{args.task} ratio {figures['ratio']:.2f} (at most 1.0)")
    if args.record:
        from results import record

        figures |= {"examples": args.examples, "epochs": args.epochs}
        record(f"real_data {args.task}", figures)


if __name__ == "__main__":
    main()
