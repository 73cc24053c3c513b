"""Networks as MatConvNet has them: the patch classifier, and a residual block of a DagNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layerscope.zoo.patch32 import CONVS, POOLS
from tests.formats.matconvnet.matfiles import Structs, Zeros

Fields = dict[str, Any]


def simple_conv(name: str, filters: tuple[int, int, int, int], **more: Any) -> Fields:
    weights = [Zeros(filters), Zeros((1, filters[3]))]
    return {"name": name, "type": "conv", "weights": weights, **more}


def patch32() -> Fields:
    """The patch classifier of the zoo as a SimpleNN; sizes and pads in every form MATLAB takes."""
    layers: list[Fields] = []
    depth = 32
    for n, (channels, kernel, groups) in enumerate(CONVS, 1):
        pads = ({"pad": 1}, {"pad": (1, 1)}, {"pad": (1, 1, 1, 1)})[n % 3]
        filters = (kernel, kernel, depth // groups, channels)
        layers.append(simple_conv(f"conv{n}", filters, stride=1, **pads))
        layers.append({"name": f"relu{n}", "type": "relu"})
        depth = channels
        if n in POOLS:
            pool = {"name": POOLS[n], "type": "pool", "method": "max", "pool": (2, 2)}
            layers.append({**pool, "stride": 2, "pad": 0})
    layers.append(simple_conv("fc9", (4, 4, depth, 1024), stride=(4, 4), pad=(0, 0, 0, 0)))
    layers.append({"name": "relu9", "type": "relu", "leak": 0})
    layers.append(simple_conv("fc10", (1, 1, 1024, 1024)))
    layers.append({"name": "relu10", "type": "relu"})
    layers.append(simple_conv("fc11", (1, 1, 1024, 5)))
    layers.append({"name": "sftmx", "type": "softmaxloss"})
    return {"layers": layers, "meta": {"inputSize": (32, 32, 32)}}


class Dag:
    """Layers one by one, as `addLayer` takes them; `net` is what `saveobj` makes of them."""

    def __init__(self) -> None:
        self.layers: list[Fields] = []
        self.params: dict[str, Zeros] = {}
        self.meta: Fields = {}

    def add(
        self,
        name: str,
        kind: str,
        inputs: list[str],
        params: Mapping[str, tuple[int, ...]] | None = None,
        **block: Any,
    ) -> str:
        stored = {key: Zeros(shape) for key, shape in (params or {}).items()}
        self.params.update(stored)
        whole = {"name": name, "type": f"dagnn.{kind}", "inputs": inputs, "outputs": [f"{name}x"]}
        self.layers.append({**whole, "params": list(stored), "block": block or {"opts": []}})
        return f"{name}x"

    def conv(self, name: str, x: str, size: tuple[int, int, int, int], **more: Any) -> str:
        bias = {f"{name}b": (size[3], 1)} if more.get("hasBias", True) else {}
        given = {"size": size, "pad": (0, 0, 0, 0), "stride": (1, 1), "dilate": (1, 1), **more}
        return self.add(name, "Conv", [x], {f"{name}f": size, **bias}, **given)

    def bnorm(self, name: str, x: str, depth: int) -> str:
        params = {f"{name}_mult": (depth, 1), f"{name}_bias": (depth, 1)}
        moments = {f"{name}_moments": (depth, 2)}
        return self.add(name, "BatchNorm", [x], params | moments, numChannels=depth, epsilon=1e-5)

    @property
    def net(self) -> Fields:
        params = [{"name": name, "value": value} for name, value in self.params.items()]
        return {"layers": Structs(self.layers), "params": Structs(params), "meta": self.meta}


def residual() -> Fields:
    """Two branches of a residual block on 3x32x48, then a pool, a classifier, a loss, an error."""
    d = Dag()
    d.meta = {"inputs": Structs([{"name": "data", "size": (32, 48, 3, 1)}])}
    x = d.conv("stem", "data", (7, 7, 3, 16), pad=(3, 3, 3, 3), stride=(2, 2), hasBias=False)
    x = d.add("stem_relu", "ReLU", [d.bnorm("stem_bn", x, 16)], leak=0)
    x = d.add(
        "pool", "Pooling", [x], method="max", poolSize=(3, 3), stride=(2, 2), pad=(0, 1, 0, 1)
    )
    short = d.bnorm("bn_1", d.conv("branch1", x, (1, 1, 16, 64), hasBias=False), 64)
    y = d.conv("branch2a", x, (3, 3, 16, 64), pad=(1, 1, 1, 1), hasBias=False)
    y = d.add("relu2a", "ReLU", [d.bnorm("bn_2a", y, 64)], leak=0)
    y = d.conv("branch2b", y, (3, 3, 32, 64), pad=(2, 2, 2, 2), dilate=(2, 2))  # two groups
    x = d.add("relu", "ReLU", [d.add("sum", "Sum", [short, y])], leak=0)
    x = d.add("mean", "Pooling", [x], method="avg", poolSize=(8, 12), stride=1, pad=0)
    x = d.conv("fc", x, (1, 1, 64, 10))
    d.add("loss", "Loss", [x, "label"], loss="softmaxlog")
    d.add("error", "Loss", [x, "label"], loss="classerror")
    return d.net
