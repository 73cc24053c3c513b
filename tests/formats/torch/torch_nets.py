"""PyTorch for tests, and small networks that are hard on counters. Skips where it is not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
nn: Any = torch.nn
f: Any = torch.nn.functional


def vision() -> Any:
    """torchvision's models."""
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed: make test-torch")
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    return torchvision_models(torch)


def on(device: str, make: Any) -> Any:
    with torch.device(device):
        return make()


def saved_bytes(model: Any, given: Any) -> int:
    """Bytes of every storage that autograd saves, parameters and buffers apart."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    found: dict[int, tuple[int, Any]] = {}  # the tensor too, so that no address is used again

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(*given)
    return sum(size for size, _ in found.values())


class Doing(nn.Module):  # type: ignore[misc]
    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, *given: Any) -> Any:
        return self.call(*given)


class Reused(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(100, 100)

    def forward(self, x: Any) -> Any:
        return self.linear(self.linear(self.linear(x)))


class Einsum(nn.Module):  # type: ignore[misc]
    def forward(self, a: Any, b: Any) -> Any:
        return torch.einsum("ij,jk->ik", a, b)


class Tied(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Any) -> Any:
        return self.head(self.embed(ids))


class Bare(nn.Module):  # type: ignore[misc]
    """Parameters used by functions alone, one of them twice, one never."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.weight = nn.Parameter(torch.zeros(6, 8))
        self.matrix = nn.Parameter(torch.zeros(6, 6))
        self.unused = nn.Parameter(torch.zeros(7))
        self.unused.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        return f.linear(x, self.weight) @ self.matrix @ self.matrix


class Written(nn.Module):  # type: ignore[misc]
    """Views written in place, read again through what they are views of."""

    def forward(self, x: Any) -> Any:
        y = x.clone()
        y[:, 1:3] = x[:, :2] * 2
        y[:, 0].add_(1)
        rows = y.view(-1)
        rows.mul_(3)
        out = x.new_zeros(x.shape)
        out[..., ::2] = y[..., ::2]
        return out + y


class Attending(nn.Module):  # type: ignore[misc]
    """Grouped heads, causal, with a mask."""

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        whole = f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
        return whole + f.scaled_dot_product_attention(q, k, v, mask.tril(), enable_gqa=True)


class Weighted(nn.Module):  # type: ignore[misc]
    """A kernel that is worked out on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 3, 3, 3))

    def forward(self, x: Any) -> Any:
        return f.conv2d(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), padding=1)


class Branching(nn.Module):  # type: ignore[misc]
    """Looks at its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.linear(x) if self.linear(x).sum() > 1e9 else x


class Restless(nn.Module):  # type: ignore[misc]
    """Changes all it can while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("steps", torch.zeros(()))
        self.seen: list[Any] = []
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        self.last = x
        self.seen.append(x)
        self.steps += 1
        self.extra = torch.rand(3)
        self.train(not self.training)
        self.norm.running_mean.mul_(2)
        return self.drop(self.norm(x))


class Failing(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(10, 2))

    def forward(self, x: Any) -> Any:
        return self.inner(self.first(x))


class Painted(nn.Module):  # type: ignore[misc]
    """Views of constants that become more than that, read by a module that is not run."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        ground = x.new_zeros(4, 6)
        ground[3, 2:] = 1
        top, pairs = ground[:1], ground.chunk(2)
        turned = ground.t()
        ground[0] = x[0] * 2
        return self.fc(top) + self.fc(pairs[1]).sum() + turned.sum() + ground.unsqueeze(0)[0, 0, 0]


class DetectorParts(nn.Module):  # type: ignore[misc]
    """All of a torchvision detector that computes with weights, on so many finds of an image.

    What lies between (anchors, non-maximum suppression, cutting regions out) has no products, and
    needs operators that not every build of torchvision has.
    """

    def __init__(self, detector: Any, proposals: int | None = None, detections: int = 0) -> None:
        super().__init__()
        self.detector = detector
        transform = detector.transform
        if transform.fixed_size:
            self.side = transform.fixed_size[0]
        else:
            multiple = transform.size_divisible
            self.side = -(-transform.min_size[-1] // multiple) * multiple
        if proposals is None and hasattr(detector, "rpn"):
            proposals = detector.rpn._post_nms_top_n["testing"]
        self.proposals, self.detections = proposals, detections

    def forward(self, x: Any) -> Any:
        made = self.detector.backbone(x)
        features = list(made.values()) if isinstance(made, dict) else [made]
        if hasattr(self.detector, "head"):
            return self.detector.head(features)
        heads = self.detector.roi_heads
        found = [self.detector.rpn.head(features)]
        if self.proposals:
            regions = x.new_empty(self.proposals, 256, *heads.box_roi_pool.output_size)
            found.append(heads.box_predictor(heads.box_head(regions)))
        for kind in ("mask", "keypoint") if self.detections else ():
            head = getattr(heads, f"{kind}_head", None)
            if head is not None:
                size = getattr(heads, f"{kind}_roi_pool").output_size
                regions = x.new_empty(self.detections, 256, *size)
                found.append(getattr(heads, f"{kind}_predictor")(head(regions)))
        return found
