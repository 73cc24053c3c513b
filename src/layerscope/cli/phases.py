"""Two accounts of a language model in one output: reading a prompt, and one token after it."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import UsageError

FORMS = ("text", "markdown", "json")
SCHEMA = 1


def check_phases(form: str, timed: bool = False) -> None:
    """Raise where `--tokens` with `--decode`, which are two accounts, cannot be printed."""
    if form not in FORMS or timed:
        what = "times" if timed else f"--as {form}"
        raise UsageError(
            "--tokens with --decode are two accounts, as text, markdown or json; "
            f"they cannot be combined with {what}"
        )


def phases(texts: Sequence[str], form: str, lengths: tuple[int | None, int | None]) -> str:
    """The two accounts in one text; in JSON one member each."""
    prompt, past = lengths
    if form == "json":
        import json

        from layerscope.escaping import json_text

        prefill, decode = map(json.loads, texts)
        return json_text({"kind": "phases", "schema": SCHEMA, "prefill": prefill, "decode": decode})
    titles = (
        f"Prefill: {prompt:,} tokens at once",
        f"Decode: one token after {past:,} in the cache",
    )
    mark = "## " if form == "markdown" else ""
    parts = [f"{mark}{title}\n\n{text}" for title, text in zip(titles, texts, strict=True)]
    return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts)
