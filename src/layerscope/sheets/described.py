"""Sizes in words: `96 11*11 filters at stride 4, pad 0`, `Conv2d k=11 p=2 s=4`, `in=3, out=64`."""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 400  # characters of a description
BY = r"\s*(?:[x×*✕]|\\times)\s*"
SIZE = rf"(\d{{1,5}})(?:(?:{BY}|\s*,\s*)(\d{{1,5}}))?"
AREA = rf"(\d{{1,5}}){BY}(\d{{1,5}})"
FILTERS = r"(?:f\w*ters?|kernels?)"
WINDOWS = (
    rf"(?:{FILTERS}|conv|max|avg|average|mean|pool|kernel|window|,|at\b"
    r"|卷积|池化|平均|最大|窗口|滤波器)"
)
TO = r"\s*(?:->|→|⟶|\\(?:rightarrow|to)\b)\s*"
OUTPUTS = (
    (("hout", "wout", "cout"), rf"(?:outputs?|输出)\s*[:=：]?\s*[(\[]?{AREA}{BY}(\d{{1,6}})"),
    (("cout",), rf"\boutputs?\s*[:=]?\s*(\d{{1,6}})(?!\d|{BY}\d)"),
    (("cout",), r"(?<![\dx×*.])(\d{1,6})\s+outputs?\b"),
)
INPUTS = (
    (("cin",), r"\bin(?:put)?(?:_channels|_features)?\s*=\s*(\d{1,6})"),
    (("cin",), rf"\binput\s+(\d{{1,6}})(?!\d|{BY}\d)"),
    (("cin",), r"(?<![\dx×*.])(\d{1,6})\s+inputs?\b"),
)
WINDOW = (
    (("kh", "kw"), rf"\bkernel(?:[_ ]?size)?\s*[=:]?\s*\(?{SIZE}"),
    (("kh", "kw"), rf"\b(?:pool[_ ]?size|[kf])\s*=\s*\(?{SIZE}"),
    (("kh", "kw"), rf"(?:卷积核|池化核|核)(?:尺寸|大小)?\s*[=:：]?\s*{AREA}"),
    (("sh", "sw"), rf"{AREA}\s*strides?\b"),
    (("sh", "sw"), r"(?:\b(?:strides?|s\s*=)|步长|步幅)\s*[=:：]?\s*\(?(\d{1,3})"),
    (("ph", "pw"), r"\b(?:pad(?:ding)?\s*[=:]?|p\s*=)\s*\(?(\d{1,3})(?!\.\d)"),
)
WORDED = (
    (("kh", "kw"), r"\bk\s*\(?(\d+)(?:\s*[x×*,]\s*(\d+))?"),
    (("kh", "kw"), rf"{AREA}(?:{BY}\d+)?\s*{WINDOWS}"),
    (("kh", "kw"), rf"^\s*{AREA}\s*$"),
    (("sh", "sw"), r"\bs\s*\(?(\d+)"),
    (("ph", "pw"), r"\bp\s*\(?(\d+)(?!\.\d)"),
)
COUNTS = (
    (("cout",), r"\bout(?:put)?(?:_channels|_features)?\s*=\s*(\d{1,6})"),
    (("cout",), r"\bfilters?\s*=\s*(\d{1,6})"),
    (
        ("cout",),
        r"(?<![\dx×*])(?<![x×*] )(\d+)\s+(?:\d+\s*[x×*]\s*\d+\s*)?"
        rf"(?:{FILTERS}\b|neurons|units)",
    ),
    (("cout",), rf"卷积核(?:尺寸|大小)?\s*[=:：]?\s*\d{{1,5}}{BY}\d{{1,5}}{BY}(\d{{1,6}})"),
    (("cout",), rf"^\s*\d{{1,5}}{BY}\d{{1,5}}\s*,\s*(\d{{1,6}})(?!\d|{BY}\d)"),
    (("cout",), rf"(\d{{1,6}})\s*个\s*(?:{AREA}\s*)?(?:卷积核|滤波器|神经元)"),
    (("cin", "cout"), rf"(?<![\w.])(\d{{1,6}}){TO}(\d{{1,6}})\b"),
)
# in names: `Conv(7x7) S=2`, `Maxpooling(3*3, stride=2)`, `conv 3, stride 1`, `Conv dw / s2`
NAMED = (
    *WINDOW,
    (("kh", "kw"), rf"(?:conv|pool)[a-z0-9]*\s*\(\s*{AREA}"),
    (("kh", "kw"), r"^\w*(?:conv|pool)[a-z]*\s+(\d{1,2})\s*,"),
    (("sh", "sw"), r"(?:/|\s)\s*s\s*=?\s*(\d)\s*$"),
)
IMAGE = re.compile(rf"(?<![\dx×*]){AREA}(?:{BY}(\d{{1,4}}))?\b")
GRAY = re.compile(r"gr[ae]y|灰度|单通道|monochrome")
PADDED = re.compile(r"\b(same|valid)\b", re.IGNORECASE)
Patterns = tuple[tuple[tuple[str, ...], str], ...]


def described(text: str) -> Mapping[str, int]:
    """The sizes that a description says."""
    words = _words(text)  # `plain` drops asterisks
    found = _found(words, OUTPUTS)
    if "hout" in found:
        words = re.sub(OUTPUTS[0][1], " ", words)
        found |= _ordered(found)
    return _found(words, (*WINDOW, *WORDED, *COUNTS, *INPUTS)) | found


def named_window(text: str) -> Mapping[str, int]:
    """The window that a name says behind the word for its layer."""
    return _found(_words(text), NAMED)


def image_of(text: str) -> Mapping[str, int]:
    """The size of an image: `32x32x3 RGB image`, `32x32 gray`."""
    words = _words(text)
    match = IMAGE.search(words)
    if match is None:
        return {}
    high, wide, channels = match.groups()
    deep = channels or ("1" if GRAY.search(words) else "3" if "rgb" in words else "")
    found = {"hout": int(high), "wout": int(wide)} | ({"cout": int(deep)} if deep else {})
    return found | _ordered(found) if channels else found


def padding_word(text: str) -> str:
    """The rule of TensorFlow by which a window pads: `same` or `valid`; "" without one."""
    match = PADDED.search(text)
    return match[1].lower() if match else ""


def _words(text: str) -> str:
    return re.sub(r"[$`]|\\(?=[*_])", "", text[:LONGEST]).lower()


def _ordered(found: Mapping[str, int]) -> dict[str, int]:
    """Three axes with the channels first, where the last two and not the first two are equal."""
    if "cout" not in found:
        return {}
    first, second, last = found["hout"], found["wout"], found["cout"]
    return {"cout": first, "hout": second, "wout": last} if first != second == last else {}


def _found(words: str, patterns: Patterns) -> dict[str, int]:
    found: dict[str, int] = {}
    for names, pattern in patterns:
        match = re.search(pattern, words) if names[0] not in found else None
        if match is None:
            continue
        numbers = [int(number) for number in match.groups() if number]
        for name, number in zip(names, [*numbers, *numbers], strict=False):
            found.setdefault(name, number)
    return found
