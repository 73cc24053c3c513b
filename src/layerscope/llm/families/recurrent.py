"""State-space layers (Mamba 1 and 2) and gated delta nets, and the models of Mamba layers alone."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import FormatError
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import DecoderLayer, LanguageModel, Recurrence, Weights
from layerscope.llm.families.shapes import linear, norm, outer_parts

RANK = 16  # channels per row of the step's projection, where the rank is "auto"


def step_rank(config: ConfigValues, name: str, hidden: int) -> int:
    """The rank of the projection of time steps."""
    if config.value(name) in (None, "auto"):
        return -(-hidden // RANK)
    return config.size(name)


def mamba_weights(hidden: int, mixer: Recurrence, rank: int, biases: tuple[bool, bool]) -> Weights:
    """The weights of a Mamba layer; `biases` are those of projections and of the convolution."""
    inner, state = mixer.state
    return {
        **linear("in_proj", 2 * inner, hidden, biases[0]),
        **_convolution(mixer, biases[1]),
        **linear("x_proj", rank + 2 * state, inner),
        **linear("dt_proj", inner, rank, True),
        "A_log": (inner, state),
        "D": (inner,),
        **linear("out_proj", hidden, inner, biases[0]),
    }


def mamba2_weights(hidden: int, mixer: Recurrence, biases: tuple[bool, bool]) -> Weights:
    """The weights of a Mamba-2 layer, with the norm before its output."""
    heads, head, _ = mixer.state
    inner = heads * head
    return {
        **linear("in_proj", inner + mixer.conv_channels + heads, hidden, biases[0]),
        **_convolution(mixer, biases[1]),
        "dt_bias": (heads,),
        "A_log": (heads,),
        "D": (heads,),
        **norm("norm", inner),
        **linear("out_proj", hidden, inner, biases[0]),
    }


def delta_weights(hidden: int, mixer: Recurrence, value_heads: int, value_dim: int) -> Weights:
    """The weights of a gated delta net."""
    values = value_heads * value_dim
    return {
        **linear("in_proj_qkv", mixer.conv_channels, hidden),
        **linear("in_proj_z", values, hidden),
        **linear("in_proj_b", value_heads, hidden),
        **linear("in_proj_a", value_heads, hidden),
        **_convolution(mixer, False),
        "dt_bias": (value_heads,),
        "A_log": (value_heads,),
        **norm("norm", value_dim),
        **linear("out_proj", hidden, values),
    }


def _convolution(mixer: Recurrence, bias: bool) -> Weights:
    weights = {"conv1d": (mixer.conv_channels, 1, mixer.conv_kernel)}
    return {**weights, "conv1d.bias": (mixer.conv_channels,)} if bias else weights


def delta_net(config: ConfigValues) -> tuple[Recurrence, Weights]:
    """The gated delta net of a configuration of Qwen3-Next's form."""
    key_heads = config.size("linear_num_key_heads")
    value_heads = config.size("linear_num_value_heads")
    key_dim = config.size("linear_key_head_dim")
    value_dim = config.size("linear_value_head_dim")
    mixer = Recurrence(
        kind="delta",
        conv_channels=2 * key_heads * key_dim + value_heads * value_dim,
        conv_kernel=config.size("linear_conv_kernel_dim"),
        state=(value_heads, key_dim, value_dim),
    )
    return mixer, delta_weights(config.size("hidden_size"), mixer, value_heads, value_dim)


def mamba2(names: tuple[str, str, str, str, str], config: ConfigValues) -> Recurrence:
    """A Mamba-2 layer; `names` are those of heads, head size, state size, groups and kernel."""
    heads = config.size(names[0])
    head = config.value(names[1])
    if head in (None, "auto"):
        inner = config.size("mamba_expand", "expand") * config.size("hidden_size")
        if inner % heads:
            raise FormatError(f"{config.where}: {heads} heads do not divide {inner} channels")
        head_dim = inner // heads
    else:
        head_dim = config.size(names[1])
    state, groups = config.size(names[2]), config.size(names[3])
    return Recurrence(
        kind="mamba2",
        conv_channels=heads * head_dim + 2 * groups * state,
        conv_kernel=config.size(names[4]),
        state=(heads, head_dim, state),
    )


def _of_layers(config: ConfigValues, mixer: Recurrence, weights: Weights) -> LanguageModel:
    hidden, vocabulary = config.size("hidden_size"), config.size("vocab_size")
    layer = DecoderLayer(parts={"recurrence": weights, "norms": norm("norm", hidden)}, mixer=mixer)
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=(layer,) * config.layers(),
        vocabulary=vocabulary,
        outer=outer_parts(
            hidden, vocabulary, config.flag("tie_word_embeddings"), norm("norm_f", hidden)
        ),
    )


def mamba_model(config: ConfigValues) -> LanguageModel:
    """Mamba and Falcon-Mamba."""
    hidden = config.size("hidden_size")
    inner = config.size("expand") * hidden
    mixer = Recurrence(
        kind="mamba",
        conv_channels=inner,
        conv_kernel=config.size("conv_kernel"),
        state=(inner, config.size("state_size")),
    )
    biases = (config.flag("use_bias"), config.flag("use_conv_bias"))
    weights = mamba_weights(hidden, mixer, step_rank(config, "time_step_rank", hidden), biases)
    return _of_layers(config, mixer, weights)


def mamba2_model(config: ConfigValues) -> LanguageModel:
    """Mamba-2."""
    mixer = mamba2(("num_heads", "head_dim", "state_size", "n_groups", "conv_kernel"), config)
    biases = (config.flag("use_bias"), config.flag("use_conv_bias"))
    return _of_layers(config, mixer, mamba2_weights(config.size("hidden_size"), mixer, biases))


FAMILY: dict[str, Callable[[ConfigValues], LanguageModel]] = {
    "falcon_mamba": mamba_model,
    "mamba": mamba_model,
    "mamba2": mamba2_model,
}
