"""User data inside an HTML file: JSON that cannot leave its element, and hashes for the policy."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

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
