"""The pretrained encoder against transformers on PyTorch: time, memory, and equal numbers.

    python tests/benchmarks/inference.py --torch-python PATH [--threads 2] [--rounds 7] [--record]

--torch-python: a Python that has torch, transformers and NumPy; this one needs NumPy alone. Both
sides run in processes of their own with the same number of threads, and answer in turn, ours,
theirs, ours, ...: a loaded machine then slows both. Each case prints the ratio of the medians, as
`NAME ratio 0.xx (at most 0.yy)`; the exit code is 1 if one is above what it may be. Beside it
stands what the products with the weights take alone: no encoder on this BLAS can be below that.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CASES = {  # name: ((sentences, shortest, longest), most)
    "32x32": ((32, 32, 32), 0.7),
    "32x128": ((32, 128, 128), 0.9),
    "1x16": ((1, 16, 16), 0.7),
    "256x5-60": ((256, 5, 60), 0.5),
}


def inputs(sentences, shortest, longest):
    """Ids and a mask of made-up sentences, in any order of length, padded to the longest."""
    rng = np.random.default_rng(sentences + longest)
    lengths = rng.integers(shortest, longest + 1, sentences)
    lengths[0] = longest
    ids = rng.integers(1000, 30000, (sentences, longest))
    mask = np.arange(longest) < lengths[:, None]
    return np.where(mask, ids, 0), mask


def peak_megabytes():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def products(encoder, tokens):
    """The products of `tokens` rows with every layer's weights, shared out as the encoder does."""
    from solutions import _inference

    weights = [array for name, array in encoder.params.items()
               if name.startswith("layers.") and array.ndim == 2]  # fmt: skip
    parts = _inference.portions(np.ones(tokens, int))

    def run(part):
        rows = {size: np.ones((len(part), size), np.float32) for size in {len(w) for w in weights}}
        for weight in weights:
            rows[len(weight)] @ weight

    _inference.side_by_side(run, parts)


def serve(side, folder, out):
    """Answer lines of standard input: a case's name and how often; a time in seconds for each."""
    if side == "ours":
        sys.path.insert(0, str(ROOT))
        from solutions.pretrained import load_pretrained

        encoder, _ = load_pretrained(folder)

        def run(ids, mask):
            return encoder(ids, mask)
    else:
        import torch
        import transformers

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        model = transformers.BertModel.from_pretrained(folder).eval()

        def run(ids, mask):
            with torch.inference_mode():
                ids, mask = torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
                return model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()

    made = {name: inputs(*case) for name, (case, _) in CASES.items()}
    if side == "ours":
        made |= {f"{name}-products": (encoder, int(made[name][1].sum())) for name in CASES}
    print("ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        if name == "numbers":
            arrays = {case: run(*made[case])[made[case][1]][::7] for case in CASES}
            np.savez(out, **arrays)
            print(json.dumps(peak_megabytes()), flush=True)
            continue
        began = time.perf_counter()
        for _ in range(int(count)):
            (products if name.endswith("-products") else run)(*made[name])
        print(json.dumps((time.perf_counter() - began) / int(count)), flush=True)


class Side:
    """One of the two processes."""

    def __init__(self, python, side, folder, out, threads):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, str(threads))}
        command = [python, __file__, "--serve", side, "--folder", str(folder), "--out", str(out)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.out = Path(out)
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit(f"{python} could not run {side}: are its packages there?")

    def ask(self, name, count=1):
        self.process.stdin.write(f"{name} {count}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--record", action="store_true", help="keep the figures in results.json")
    parser.add_argument("--serve")
    parser.add_argument("--folder")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve, args.folder, args.out)

    sys.path.insert(0, str(ROOT))
    from solutions.pretrained import fetch

    folder, above, figures = fetch(), [], {}
    with tempfile.TemporaryDirectory() as temporary:
        ours, theirs = (
            Side(python, side, folder, Path(temporary) / f"{side}.npz", args.threads)
            for python, side in ((sys.executable, "ours"), (args.torch_python, "theirs"))
        )
        for name in args.only:
            (sentences, _, _), most = CASES[name]
            count = 10 if sentences == 1 else 1
            for side in (ours, theirs):
                side.ask(name, count)
            times = [
                (ours.ask(name, count), theirs.ask(name, count),
                 ours.ask(name + "-products", count))
                for _ in range(args.rounds)
            ]  # fmt: skip
            mine, other, least = (statistics.median(side) for side in zip(*times, strict=True))
            print(f"{name} ratio {mine / other:.2f} (at most {most}; {mine * 1e3:.1f} ms, theirs "
                  f"{other * 1e3:.1f} ms; our products alone {least * 1e3:.1f} ms, "
                  f"{least / other:.2f})", flush=True)  # fmt: skip
            figures[name] = {"ratio": round(mine / other, 2), "ms": round(mine * 1e3, 1),
                             "products": round(least / other, 2)}  # fmt: skip
            if mine / other > most:
                above.append(name)
        memory = [side.ask("numbers") for side in (ours, theirs)]
        print(f"peak memory {memory[0]:.0f} MB, theirs {memory[1]:.0f} MB")
        with np.load(ours.out) as a, np.load(theirs.out) as b:
            differs = max(float(np.abs(a[name] - b[name]).max()) for name in CASES)
        print(f"largest difference {differs:.1e}")
        for side in (ours, theirs):
            side.end()
    if args.record:
        from results import record

        figures["peak MB"], figures["peak MB of PyTorch"] = (round(one) for one in memory)
        record("inference", figures)
    return 1 if above or differs > 1e-5 else 0


if __name__ == "__main__":
    sys.exit(main())
