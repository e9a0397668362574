"""Draws every figure of the README and the lessons: `python figures/make.py`.

Writes NAME.svg for each function listed in `FIGURES`, and alt.json with the alt text of each, so
that the README and the lessons use the same words. The same course gives the same bytes.

    python figures/make.py              all of them, into this folder
    python figures/make.py --into DIR   into another one
    python figures/make.py masks mlm    these only (alt.json is left as it is)
"""

import argparse
import html
import json
import sys
from pathlib import Path

import draw_attention
import draw_encoder
import draw_map
import draw_text

FIGURES = {
    "course_map": draw_map.course_map,
    "attention_table": draw_attention.table,
    "attention_arrows": draw_attention.arrows,
    "masks": draw_attention.masks,
    "split_heads": draw_attention.heads,
    "multi_head": draw_attention.multi_head,
    "tokens_to_ids": draw_text.tokens_to_ids,
    "encoder_layer": draw_encoder.encoder_layer,
    "bidirectional_causal": draw_encoder.bidirectional_causal,
    "mlm": draw_encoder.mlm,
    "three_heads": draw_encoder.three_heads,
}


def document(name, picture):
    """The SVG of a Picture, with its question and its words where screen readers look for them."""
    said = (f'role="img" aria-labelledby="{name}-title {name}-desc">'
            f'<title id="{name}-title">{html.escape(picture.facts["question"])}</title>'
            f'<desc id="{name}-desc">{html.escape(picture.alt)} '
            f'{html.escape(picture.facts["details"])}</desc>')
    return picture.body.replace(">", " " + said, 1) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="figures to draw; all when none is named")
    parser.add_argument("--into", type=Path, default=Path(__file__).resolve().parent)
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(FIGURES))
    if unknown:
        parser.error(f"no figure named {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    options.into.mkdir(parents=True, exist_ok=True)
    written, alts = [], {}
    for name in options.names or FIGURES:
        picture = FIGURES[name]()
        alts[name] = picture.alt
        written.append(options.into / f"{name}.svg")
        written[-1].write_bytes(document(name, picture).encode())
    if not options.names:
        written.append(options.into / "alt.json")
        said = json.dumps(alts, indent=2, ensure_ascii=False)
        written[-1].write_bytes((said + "\n").encode())
    for file in written:
        print(f"wrote {file.name} ({file.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
