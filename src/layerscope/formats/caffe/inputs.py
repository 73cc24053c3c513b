"""Shapes of a network's inputs: `input:` headers, Input layers, data layers.

The batch size of a data layer is one of training or testing and no property of the network, so the
batch is 1. Shapes that are written out are kept as they are, with their batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.codecs.message import Message
from layerscope.graph.types import Shape

MOST = (1 << 31) - 1  # Caffe's sizes are 32-bit integers
MOST_AXES = 32  # Caffe's kMaxBlobAxes

MOVING = ("video", "volume")  # types whose data has more axes than an image

Shapes = Sequence[Shape | None]  # of every top; None where the file does not give it


def sizes(message: Message, name: str = "dim") -> Shape:
    """The sizes of a shape, each at least 1."""
    found = tuple(message.wholes(name))
    if name == "dim" and len(found) > MOST_AXES:
        raise message.error(f"a shape of {len(found)} axes, expected at most {MOST_AXES}", name)
    for size in found:
        if not 1 <= size <= MOST:
            raise message.error(f"{name} {size}, expected 1 to {MOST}", name)
    return found


def headers(net: Message) -> list[tuple[str, Shape | None]]:
    """Inputs declared ahead of the layers: `input` with `input_shape`, or four `input_dim` each."""
    inputs = net.fields.get("input", [])
    given: list[Shape | None] = [sizes(shape) for shape in net.messages("input_shape")]
    flat = sizes(net, "input_dim")
    if not given and flat:
        if len(inputs) == 1 and len(flat) > MOST_AXES:
            what = f"a shape of {len(flat)} axes, expected at most {MOST_AXES}"
            raise net.error(what, "input_dim")
        each = len(flat) if len(inputs) == 1 else 4
        given = [flat[n : n + each] for n in range(0, len(flat), each)]
    if given and len(given) != len(inputs):
        field = "input_shape" if "input_shape" in net else "input_dim"
        raise net.error(f"{len(given)} shapes for {len(inputs)} inputs", field)
    found: list[tuple[str, Shape | None]] = []
    for n, value in enumerate(inputs):
        if isinstance(value, Message):  # input { name: "data" dim: 1 … }
            shape = value.message("shape") if "shape" in value else value
            found.append((value.text("name", f"input{n + 1}"), sizes(shape) or None))
        else:
            found.append((value.text, given[n] or None if given else None))
    return found


def _repeated(shapes: Sequence[Shape], tops: int) -> Shapes:
    """Shapes of all tops; a single shape is that of each."""
    if len(shapes) == 1:
        return [shapes[0]] * tops
    return [*shapes, *[None] * tops][:tops]


def _input(layer: Message, tops: int) -> Shapes:
    return _repeated([sizes(shape) for shape in _input_shapes(layer)], tops)


def _input_shapes(layer: Message) -> list[Message]:
    return layer.message("input_param").messages("shape")


def _cropped(layer: Message, param: str) -> tuple[int, int] | None:
    """Height and width that images are cropped or resized to."""
    transform, own = layer.message("transform_param"), layer.message(param)
    for high, wide in (("crop_h", "crop_w"), ("crop_height", "crop_width")):
        for settings in (transform, own):
            if settings.whole(high) and settings.whole(wide):
                return settings.whole(high), settings.whole(wide)
    for settings in (transform, own):
        if settings.whole("crop_size"):
            return settings.whole("crop_size"), settings.whole("crop_size")
    resize = transform.message("resize_param")
    if resize.whole("height") and resize.whole("width"):
        return resize.whole("height"), resize.whole("width")
    if own.whole("new_height") and own.whole("new_width"):
        return own.whole("new_height"), own.whole("new_width")
    return None


def _images(param: str, *, labels: bool = True) -> Callable[[Message, int], Shapes]:
    """Color images of the size they are cropped to, and one label for each."""

    def shapes(layer: Message, tops: int) -> Shapes:
        if _input_shapes(layer):  # added to a data layer so that Netscope can draw it
            return [_input(layer, tops)[0], *[(1,)] * (tops - 1)]
        size = _cropped(layer, param)
        gray = layer.message("transform_param").flag("force_gray")
        gray = gray or not layer.message(param).flag("is_color", True)
        for length in size or ():
            if not 1 <= length <= MOST:
                raise layer.error(f"images of {length}, expected 1 to {MOST}")
        image = (1, 1 if gray else 3, *size) if size else None
        return [image, *[(1,) if labels else None] * (tops - 1)]

    return shapes


def _segmented(layer: Message, tops: int) -> Shapes:
    """DeepLab's: images, a label for each image or each pixel, and the original size."""
    image = _images("image_data_param", labels=False)(layer, tops)[0]
    kind = layer.message("image_data_param").text("label_type", "IMAGE").upper()
    label: Shape | None = (1, 1, 1, 1)
    if kind not in ("IMAGE", "1"):
        label = (1, 1, *image[2:]) if image is not None and kind in ("PIXEL", "2") else None
    return [image, label, (1, 1, 1, 2), *[None] * tops][:tops]


def _dense(layer: Message, tops: int) -> Shapes:
    """SegNet's: images, and a label for each pixel."""
    image = _images("dense_image_data_param", labels=False)(layer, tops)[0]
    label = (1, 1, *image[2:]) if image is not None else None
    return [image, label, *[None] * tops][:tops]


def _memory(layer: Message, tops: int) -> Shapes:
    param = layer.message("memory_data_param")
    image = tuple(size for name in ("channels", "height", "width") for size in sizes(param, name))
    return [(1, *image) if len(image) == 3 else None, *[(1,)] * (tops - 1)]


def _dummy(layer: Message, tops: int) -> Shapes:
    param = layer.message("dummy_data_param")
    if "shape" in param:
        return _repeated([sizes(shape) for shape in param.messages("shape")], tops)
    columns = [sizes(param, name) for name in ("num", "channels", "height", "width")]
    full = [column if len(column) > 1 else column * tops for column in columns]
    return _repeated(list(zip(*full, strict=False)), tops)


SHAPES: dict[str, Callable[[Message, int], Shapes]] = {
    "input": _input,
    "data": _images("data_param"),
    "imagedata": _images("image_data_param"),
    "windowdata": _images("window_data_param"),
    "annotateddata": _images("data_param", labels=False),
    "imagesegdata": _segmented,
    "denseimagedata": _dense,
    "memorydata": _memory,
    "dummydata": _dummy,
}


def batch_of(layer: Message) -> int:
    """The batch size of a data layer, which its shapes do not have; 0 if it gives none."""
    params = [name for name in layer.fields if name.endswith("data_param")]
    return max((layer.message(name).whole("batch_size") for name in params), default=0)


def shapes_of(kind: str, layer: Message, tops: int) -> Shapes:
    """Shapes of the tops of a layer without bottoms; None where the file does not give it."""
    if kind in SHAPES:
        return [shape or None for shape in SHAPES[kind](layer, tops)] if tops else []
    if _input_shapes(layer):
        return [shape or None for shape in _input(layer, tops)]
    if tops and "transform_param" in layer and not kind.startswith(MOVING):
        return _images("image_data_param", labels=False)(layer, tops)
    return [None] * tops
