"""What the tokenizer has to know about characters, the same under each version of Python.

The `tokenizers` library takes its categories from Unicode 8 and its decompositions from Unicode 9.
Python's `unicodedata` is newer, and newer with each version of Python. What matters of the
difference is here, so that a text gets the same ids on every Python as from the library.

The hexadecimal ranges are marks, punctuation and format characters that came later, and characters
whose decomposition or combining class came later. To the library they are plain letters. (The list
goes up to Unicode 18; stability rules of Unicode keep what it leaves out in its place.)
"""

import unicodedata

_LATER_THAN_8 = """
8D4-8E1 1DFB 11442 11446 11C3F 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A
1E944-1E94A
"""

_LATER_THAN_9 = """
5C8-5C9 61D 7FD 890-891 897-89F 8CA-8D3 8E2 9FD-9FE A76 AFA-AFF B53-B55 C04 C3C C77 C84 D00
D3B-D3C D81 EBA ECE 1715 180F 1885-1886 1ABF-1AF0 1B4E-1B4F 1B7D-1B7F 1DF6-1DFA 2E43-2E4F
2E52-2E5D 2E60-2E63 A82C A8C5 A8FF A9BD 105C9 105E4 10D24-10D27 10D69-10D6E 10EAB-10EAD
10ECB-10ED0 10EF0-10EFF 10F46-10F50 10F55-10F59 10F82-10F89 11070 11073-11074 110C2 110CD
111CF 1123E 11241 1133B 11383 11385 1138E 11391 113BB-113C0 113C5 113C7-113C8 113CE-113D0
113D2 113D4-113D5 113D7-113D8 113E1-113E2 11438-1143F 11443-11444 1144B-1144F 1145A-1145B
1145D-1145E 11660-1166C 116B9 1182F-11837 11839-1183B 11938 1193B-1193E 11943-11946
119D4-119D7 119DA-119DB 119E0 119E2 11A01-11A0A 11A33-11A38 11A3B-11A47 11A51-11A56
11A59-11A5B 11A8A-11A96 11A98-11A9C 11A9E-11AA2 11B00-11B09 11B60 11B62-11B64 11B66 11BE1
11C30-11C36 11C38-11C3D 11C41-11C45 11C70-11C71 11C92-11CA7 11CAA-11CB0 11CB2-11CB3
11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11DF0
11EF3-11EF4 11EF7-11EF8 11F00-11F01 11F36-11F3A 11F40-11F4F 11F5A 11FFF 12FF1-12FF2
13430-13440 13447-13455 1611E-16129 1612D-1612F 16D68-16D6A 16D6D-16D6F 16E97-16E9A 16F4F
16FE2 16FE4 16FF0-16FF1 1CF00-1CF2D 1CF30-1CF46 1D127-1D128 1D250-1D252 1D25B-1D25C 1D25F
1D280-1D281 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E5FF 1E6E3 1E6E6
1E6EE-1E6EF 1E6F5 1E95E-1E95F
"""

# Four characters have moved since: a Canadian syllabics sign and a Sharada mark were punctuation,
# a Hanunoo and an Ahom sign were non-spacing marks.
_MOVED = {"\u166d": "Po", "\U000111c9": "Po", "\u1734": "Mn", "\U0001171e": "Mn"}

# Capitals later than Unicode 14 (Python 3.11), and the first of their small letters.
_CAPITALS = (
    "1C89 1C8A, A7CB 264, A7CC A7CD, A7CE A7CF, A7D2 A7D3, A7D4 A7D5, A7DA A7DB, A7DC 19B, "
    "10D50-10D65 10D70, 16EA0-16EB8 16EBB"
)


def _characters(ranges):
    for item in ranges.split():
        first, _, last = item.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


_CATEGORY = {**dict.fromkeys(_characters(_LATER_THAN_8 + _LATER_THAN_9), "Lo"), **_MOVED}
_INERT = frozenset(_characters(_LATER_THAN_9))
_SMALL = {
    capital: chr(int(first, 16) + number)
    for capitals, first in map(str.split, _CAPITALS.split(","))
    for number, capital in enumerate(_characters(capitals))
}


def category(character):
    """The general category in Unicode 8: "Mn", "Po", "Lu", ..."""
    return _CATEGORY.get(character) or unicodedata.category(character)


def combining(character):
    """The canonical combining class in Unicode 9: 0 for a character that starts a cluster."""
    return 0 if character in _INERT else unicodedata.combining(character)


def decompose(character):
    """The canonical decomposition in Unicode 9 (NFD) of one character."""
    return character if character in _INERT else unicodedata.normalize("NFD", character)


def lower(character):
    """One character in lower case, whatever stands next to it: both sigmas become the same."""
    return _SMALL.get(character) or character.lower()
