"""Options that take one value and are given several: click would use the last one silently."""

from __future__ import annotations

from copy import copy

import click

from layerscope.errors import UsageError


def check_repeats(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise if an option with one value is given with two different ones.

    Options that set the same argument count as one: `--json` is short for `--as json`.
    """
    options = [param for param in command.params if isinstance(param, click.Option)]
    collecting = [_collecting(option, n) for n, option in enumerate(options)]
    others = [param for param in command.params if not isinstance(param, click.Option)]
    copied = click.Command(command.name, params=[*collecting, *others])
    child = click.Context(copied, parent=ctx, info_name=command.name)
    try:
        values, _, _ = copied.make_parser(child).parse_args(list(args))
    except click.ClickException:
        return  # click says it when the command itself is parsed
    given: dict[str, dict[str, str]] = {}  # argument -> value -> how it is given
    for option, copy_of_it in zip(options, collecting, strict=True):
        found = values.get(str(copy_of_it.name))
        name = max(option.opts, key=len)
        if option.multiple or found is None:
            continue
        texts = {str(found): name} if option.is_flag else {text: f"{name} {text}" for text in found}
        given.setdefault(str(option.name), {}).update(texts)
    for texts in given.values():
        if len(texts) > 1:
            first, second = list(texts.values())[:2]
            raise UsageError(f"{first} cannot be combined with {second}")


def _collecting(option: click.Option, number: int) -> click.Option:
    """The option with an argument of its own, which collects every value that is given."""
    found = copy(option)
    found.name = f"option {number}"
    found.multiple = not option.is_flag
    return found
