"""Lesson 00's sliders: the finished thing."""

import html

from course import weights
from course.drawing import INK, PALETTE, Picture, bars, entities, mix, visible
from course.explore import Text, slider
from course.sliders import lesson06, lesson07, lesson08


@slider(text=Text("The hotel was not bad but good.", label="a sentence", max_length=200),
        lesson="00", given=lambda: {"model": weights.sentiment()})
def read_a_sentence(text, model):
    """A sentence of the reader's through the trained classifier."""
    return lesson06.read_a_sentence(text, model)


def _three():
    return {"classifier": weights.sentiment(), "tagger": lesson07.trained()["model"],
            "reader": lesson08.trained()["model"]}


# One text cannot be of the kind that each of three small models was trained on: each has its own.
@slider(review=Text("The museum was dull, not lovely.", label="a text to judge", max_length=200),
        names=Text("Maria Keller left Siemens in Berlin for Google.", label="a text with names",
                   max_length=160),
        passage=Text("Mara Lind plays the violin. John Smith lives in New York.",
                     label="a passage", max_length=240),
        question=Text("What does Mara play?", label="a question", max_length=80),
        lesson="00", given=_three)
def three_heads(review, names, passage, question, classifier, tagger, reader):
    """What three heads say: a class, a label for each word, an answer to a question."""
    if not (review.strip() and names.strip() and passage.strip()):
        return Picture("Type a text in each field.", "A text is missing.", kind="html")
    probabilities = classifier.probabilities([review])[0]
    verdict = bars(probabilities, classifier.labels, vmax=1, width=240,
                   color=[PALETTE[name] for name in classifier.labels],
                   probabilities=probabilities)
    found = [(e.start, e.end, e.type) for e in tagger.predict(names)]
    tagged = entities(names, found)
    try:
        answer = reader.answer(question, passage)
        said = answer.text or "it says: not in this text"
    except ValueError as error:
        answer, said = None, str(error)
    marked = f"<i>{html.escape(visible(said))}</i>"
    if answer is not None and answer.text:
        marked = (html.escape(visible(passage[:answer.start]))
                  + f'<span style="background:{mix(PALETTE["start"], 0.3)};color:{INK};'
                  f'border-radius:4px;padding:1px 4px">{html.escape(visible(answer.text))}</span>'
                  + html.escape(visible(passage[answer.end:])))
    rows = (f'<b>06, a class for the text</b>: {html.escape(visible(review))}'
            f'<div style="margin-top:6px">'
            f"{verdict._repr_html_()}</div>",
            f"<b>07, a label for each word</b><br>{tagged.body}",
            f"<b>08, an answer in the text</b>: {html.escape(visible(question))}<br>"
            f'<span style="line-height:2">{marked}</span>')
    return Picture("".join(f'<div style="margin-bottom:10px">{row}</div>' for row in rows),
                   f"{verdict.alt} {tagged.alt} {visible(question)} {visible(said)}.",
                   {"probabilities": probabilities}, kind="html")
