"""User data inside an HTML file: JSON that cannot leave its element, and hashes for the policy."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_LONG = re.compile(r"(\w{40})\w{20,}")
# Escapes that mean the same to JSON and nothing to HTML.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded_json(value: Any) -> str:
    r"""Return JSON in ASCII that is safe inside a ``script`` element.

    Examples
    --------
    >>> embedded_json(["</script>", "é\u2028"])
    '["\\u003c/script\\u003e","\\u00e9\\u2028"]'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def source_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy knows an inline script or style.

    Examples
    --------
    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def prose(text: str) -> str:
    r"""Return a sentence of ours with names of users in it.

    Marks that turn the direction of writing would turn the rest of the sentence too; very long
    words are cut.

    Examples
    --------
    >>> prose("Label 'a\u202eb' is " + "x" * 99 + ": 5 %")
    "Label 'ab' is xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…: 5\xa0%"
    """
    text = _TURNS.sub("", plain(text)).replace(" %", "\u00a0%")
    return _LONG.sub(lambda word: word[1] + "…", text)


def plain(value: Any) -> str:
    r"""Return a value as text that UTF-8 and HTML can hold.

    Half surrogates, as in names of files that are not UTF-8, and NUL have no place in HTML.

    Examples
    --------
    >>> plain("caf\udce9\0 au lait")
    'caf\ufffd\ufffd au lait'
    """
    text = str(value).replace("\0", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
