"""Options that take one value and are given several: click would use the last one silently."""

from __future__ import annotations

from copy import copy

import click

from layerscope.errors import UsageError


def check_repeats(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise if an option with one value is given with two different ones."""
    single: list[click.Option] = []
    params: list[click.Parameter] = []
    for param in command.params:
        if isinstance(param, click.Option) and not (param.multiple or param.is_flag):
            param = copy(param)
            param.multiple = True
            single.append(param)
        params.append(param)
    collecting = click.Command(command.name, params=params)
    child = click.Context(collecting, parent=ctx, info_name=command.name)
    try:
        values, _, _ = collecting.make_parser(child).parse_args(list(args))
    except click.ClickException:
        return  # click says it when the command itself is parsed
    for option in single:
        given = list(dict.fromkeys(map(str, values.get(str(option.name)) or ())))
        if len(given) > 1:
            name = max(option.opts, key=len)
            raise UsageError(f"{name} {given[0]} cannot be combined with {name} {given[1]}")
