"""layerscope completion: the script that completes commands and networks in a shell."""

from __future__ import annotations

import click

from layerscope.errors import UnknownName

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="\b\nExamples:\n  layerscope completion bash >> ~/.bashrc\n"
    "  layerscope completion zsh >> ~/.zshrc\n"
    "  layerscope completion fish > ~/.config/fish/completions/layerscope.fish\n"
)
@click.argument("shell")
def command(shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    from layerscope.cli import group

    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise UnknownName("shell", shell, SHELLS, f"; choose from {', '.join(SHELLS)}")
    click.echo(found(group, {}, "layerscope", "_LAYERSCOPE_COMPLETE").source())
