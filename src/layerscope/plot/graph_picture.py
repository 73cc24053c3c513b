"""A network as a picture: boxes of layers and modules from top to bottom, as SVG.

Repeated modules are one box or frame with × N. Boxes are coloured by their share of the
multiply-adds, or of the parameters where there are none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.escaping import html
from layerscope.graph.names import shape_text
from layerscope.graph.types import Tensor
from layerscope.plot.graph_items import IN, OUT, GraphItem, picture_items
from layerscope.plot.layered import BoxLayout, BoxSize, layered
from layerscope.plot.text_width import shortened, text_width, wrapped
from layerscope.plot.theme import FONT, HEAT_STEPS, THEMES
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.numbers import cell_text, percent_text
from layerscope.report.outline import outline
from layerscope.report.types import Report

THEME = THEMES["light"]
INK, SOFT, FAINT = THEME.ink
NAME, SMALL = 12.5, 11.0  # font sizes
LEAST, MOST = 150.0, 330.0  # width of a box
LINE, BOX, PILL = 16.0, 44.0, 24.0  # height of a line, of a box, of an input
HEADER, PAD, MARGIN = 30.0, 14.0, 24.0  # of a frame; around the picture
SHEET = 4.0  # distance of the sheets behind a repeated box
CORNER, BEND = 5.0, 20.0


class Placed(Struct):
    """An item with its size and, once its frame is laid out, its top left corner."""

    item: GraphItem
    width: float
    height: float
    inner: BoxLayout | None = None
    children: list[Placed] = []
    order: list[int] = []  # numbers of the children as laid out; ports at the ends
    edges: list[tuple[int, int]] = []  # as in the item
    left: float = 0.0
    top: float = 0.0
    port_in: float = 0.0  # where edges arrive and leave, from the left
    port_out: float = 0.0


def write(report: Report, depth: int | None = None) -> str:
    """The picture; `depth` is the number of levels of the module tree that are open."""
    if depth is not None and depth < 1:
        raise UsageError(f"--depth {depth}, expected at least 1")
    root = picture_items(report, outline(report), depth)
    drawing = _Drawing(report, root)
    placed = drawing.arrange(root)
    drawing.move(placed, MARGIN, MARGIN)
    return "\n".join(drawing.svg(placed)) + "\n"


class _Drawing:
    """Sizes, colours and texts of the items of one report."""

    def __init__(self, report: Report, root: GraphItem) -> None:
        self.report = report
        self.column = COLUMNS["macs" if report.totals.macs else "params"]
        self.width = max(map(self._needed, _boxes(root)), default=LEAST)

    def share(self, item: GraphItem) -> Fraction:
        """The share of the column that the picture is coloured by."""
        whole = report_total(self.report, self.column.name)
        if item.row is None or not whole:
            return Fraction(0)
        value = self.column.value(item.row, self.report)
        return Fraction(value, whole) if isinstance(value, int) else Fraction(0)

    def words(self, item: GraphItem) -> tuple[str, str, str, str]:
        """Name and share, then type and figure."""
        if item.row is None:
            return item.label, "", "", ""
        row, report = item.row, self.report
        kind = cell_text(cell(COLUMNS["type"], row, report), "text")
        window = cell_text(cell(COLUMNS["window"], row, report), "text")
        if row.kind == "op":
            kind = f"{item.count:,} layers"
        figures = []
        for name in dict.fromkeys(("params", self.column.name)):
            value = cell(COLUMNS[name], row, report)
            text = cell_text(value, "count", short=True)
            if text not in ("", "0"):
                figures.append(f"{text} {COLUMNS[name].title}")
        share = percent_text(self.share(item))
        return (
            item.label,
            f"{share} %" if share else "",
            f"{kind} {window}".strip(),
            " · ".join(figures),
        )

    def arrange(self, item: GraphItem) -> Placed:
        """The size of an item; a frame is laid out inside."""
        if not item.children:
            return self._box(item)
        children = [self.arrange(child) for child in item.children]
        order = sorted(range(len(children)), key=lambda n: _drawing_order(item.children[n]))
        has_in = any(start == IN for start, _ in item.edges)
        has_out = any(end == OUT for _, end in item.edges)
        order = [*([IN] if has_in else []), *order, *([OUT] if has_out else [])]
        at = {n: k for k, n in enumerate(order)}
        edges = list(item.edges)
        lines = [(min(at[a], at[b]), max(at[a], at[b])) for a, b in edges]
        ends = {start for start, _ in lines}
        loose = [(k, len(order) - 1) for k in range(len(order) - 1) if k not in ends and has_out]
        sizes = [self._size(n, children) for n in order]
        inner = layered(sizes, [*lines, *loose])
        label, share, kind, _ = self.words(item)
        header = text_width(f"{label}  {kind}   {share}", NAME, bold=True) + 2 * PAD
        placed = Placed(item, 0.0, 0.0, inner, children, order, edges)
        placed.width = max(inner.width + 2 * PAD, header)
        placed.height = inner.height + HEADER + PAD
        spare = (placed.width - inner.width) / 2
        centre = placed.width / 2
        placed.port_in = spare + inner.left[at[IN]] if has_in else centre
        placed.port_out = spare + inner.left[at[OUT]] if has_out else centre
        return placed

    def _size(self, n: int, children: list[Placed]) -> BoxSize:
        if n in (IN, OUT):
            return BoxSize(0.0, 0.0)
        child = children[n]
        return BoxSize(
            child.width, child.height, 1 + 4 * float(self.share(child.item)), child.port_in
        )

    def _box(self, item: GraphItem) -> Placed:
        if item.row is None:
            text = self._pill(item)
            width = text_width(text, SMALL) + 2 * PAD
            return Placed(item, width, PILL, port_in=width / 2, port_out=width / 2)
        return Placed(item, self.width, BOX, port_in=self.width / 2, port_out=self.width / 2)

    def _needed(self, item: GraphItem) -> float:
        """The width that the texts of a box need, at most MOST; all boxes get the same."""
        name, share, kind, figure = self.words(item)
        first = text_width(name, NAME, bold=True) + text_width(f"   {share}", SMALL)
        second = text_width(f"{kind}   {figure}", SMALL)
        return min(max(first, second, LEAST) + 2 * 10, MOST)

    def _pill(self, item: GraphItem) -> str:
        shape = "" if item.tensor is None else _shape(item.tensor)
        return shortened(f"{item.label}  {shape}".strip(), MOST - 2 * PAD, SMALL)

    def move(self, placed: Placed, left: float, top: float) -> None:
        """Set the corner of an item and of all that is in it."""
        placed.left, placed.top = left, top
        if placed.inner is None:
            return
        spare = (placed.width - placed.inner.width) / 2
        for k, n in enumerate(placed.order):
            if n >= 0:
                x, y = placed.inner.left[k], placed.inner.top[k]
                self.move(placed.children[n], left + spare + x, top + HEADER + y)

    def svg(self, root: Placed) -> Iterator[str]:
        """The lines of the document."""
        width = root.width + 2 * MARGIN
        room = max(width - 2 * MARGIN, 200.0)
        facts = (self.report.stamp, str(self.report.coverage), *self.report.notes)
        stamp = [line for fact in facts for line in wrapped(fact, room, SMALL)]
        height = root.height + 2 * MARGIN + len(stamp) * LINE
        title = html(f"Graph of {self.report.name}")
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{title}" '
            f'font-family="{html(FONT)}" font-size="{SMALL}">'
        )
        yield f"<title>{title}</title>"
        yield f'<rect width="100%" height="100%" fill="{THEME.surface}"/>'
        yield from self._heading(root)
        yield from self._inside(root)
        for n, line in enumerate(stamp):
            yield _text(MARGIN, root.height + MARGIN + (n + 1) * LINE, line, FAINT)
        yield "</svg>"

    def _heading(self, root: Placed) -> Iterator[str]:
        column = self.column.title
        total = (
            cell_text(cell(self.column, root.item.row, self.report), "count", short=True)
            if root.item.row
            else ""
        )
        room = root.width - text_width(f"{total} {column}", SMALL) - 2 * PAD
        name = shortened(root.item.label, max(room, 60.0), 15, bold=True)
        yield (
            f'<text x="{MARGIN}" y="{MARGIN + 6:.1f}" font-size="15" font-weight="600" '
            f'fill="{INK}">{html(name)}</text>'
        )
        yield _text(MARGIN + root.width, MARGIN + 6, f"{total} {column}", SOFT, "end")

    def _inside(self, frame: Placed) -> Iterator[str]:
        """Edges of a frame, then its boxes, so that boxes lie over lines."""
        yield from self._edges(frame)
        for child in frame.children:
            if child.inner is None:
                yield from self._draw(child)
            else:
                yield from self._frame(child)
                yield from self._inside(child)

    def _frame(self, placed: Placed) -> Iterator[str]:
        name, share, kind, _ = self.words(placed.item)
        x, y = placed.left, placed.top
        yield from self._sheets(placed, 8)
        yield _rect(placed, "#f7f8fa", THEME.line, 8)
        yield f"<title>{html(self._tip(placed.item))}</title></rect>"
        yield _text(x + PAD, y + 19, name, INK, bold=True)
        after = text_width(name, NAME, bold=True) * 0.86 + 8
        yield _text(x + PAD + after, y + 19, kind, FAINT)
        yield _text(x + placed.width - PAD, y + 19, share, SOFT, "end")

    def _sheets(self, placed: Placed, radius: float) -> Iterator[str]:
        """Two sheets behind a repeated item."""
        for step in (2, 1) if placed.item.repeat > 1 else ():
            d = step * SHEET
            yield (
                f'<rect x="{placed.left + d:.1f}" y="{placed.top + d:.1f}" rx="{radius}" '
                f'width="{placed.width:.1f}" height="{placed.height:.1f}" '
                f'fill="{THEME.surface}" stroke="{THEME.edge}"/>'
            )

    def _draw(self, placed: Placed) -> Iterator[str]:
        item, x, y = placed.item, placed.left, placed.top
        if item.row is None:
            yield _rect(placed, THEME.surface, THEME.edge, PILL / 2) + "</rect>"
            yield _text(x + placed.width / 2, y + 16, self._pill(item), SOFT, "middle")
            return
        yield from self._sheets(placed, CORNER)
        step = bisect_right(HEAT_STEPS, self.share(item))
        fill = THEME.heat[step] if self.share(item) else THEME.surface
        unknown = item.row.unknown
        yield _rect(placed, fill, THEME.warning if unknown else THEME.edge, CORNER)
        yield f"<title>{html(self._tip(item))}</title></rect>"
        name, share, kind, figure = self.words(item)
        room = placed.width - 2 * 10
        for down, (left, right), bold in ((18, (name, share), True), (34, (kind, figure), False)):
            size = NAME if bold else SMALL
            right = shortened(right, room, SMALL) if right else ""
            spare = max(room - (text_width(f"  {right}", SMALL) if right else 0), 20.0)
            left = shortened(left, spare, size, bold=bold)
            yield _text(x + 10, y + down, left, INK if bold or step > 3 else SOFT, bold=bold)
            yield _text(x + placed.width - 10, y + down, right, INK if step > 3 else SOFT, "end")

    def _tip(self, item: GraphItem) -> str:
        """Every figure of a box, for readers that show titles."""
        if item.row is None:
            return item.label
        parts = [item.row.name or item.label]
        for name in ("type", "window", "output", "params", "macs", "memory"):
            column = COLUMNS[name]
            text = cell_text(cell(column, item.row, self.report), column.kind)
            parts += [f"{column.title} {text}"] if text else []
        return "\n".join(parts)

    def _edges(self, frame: Placed) -> Iterator[str]:
        inner = frame.inner
        if inner is None:  # a network without layers
            return
        spare = (frame.width - inner.width) / 2
        labelled: set[tuple[int, str]] = set()
        for (start, end), bends in zip(frame.edges, inner.bends, strict=False):
            tensor = frame.item.edges[start, end]
            first, last = self._ends(frame, start, end)
            middle = [
                (frame.left + spare + x, frame.top + HEADER + y, frame.top + HEADER + below)
                for x, y, below in bends
            ]
            if first[1] > last[1]:
                middle.reverse()
            yield _path(first, middle, last, end != OUT)
            text = _shape(tensor)
            if start == IN or end == OUT or frame.children[start].item.row is None:
                continue
            if (start, text) not in labelled:
                labelled.add((start, text))
                toward = (middle[0] if middle else last)[0]
                side, anchor = (-5, "end") if toward > first[0] + 1 else (5, "start")
                yield _label(first[0] + side, first[1] + 13, text, anchor)

    def _ends(
        self, frame: Placed, start: int, end: int
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where an edge begins and ends."""
        below = frame.top + frame.height
        if start == IN:
            first = (frame.left + frame.port_in, frame.top + HEADER - 4)
        else:
            box = frame.children[start]
            sheets = 2 * SHEET if box.item.repeat > 1 else 0.0
            first = (box.left + box.port_out, box.top + box.height + sheets)
        if end == OUT:
            return first, (frame.left + frame.port_out, below)
        box = frame.children[end]
        return first, (box.left + box.port_in, box.top)


def _boxes(item: GraphItem) -> Iterator[GraphItem]:
    """The boxes inside an item."""
    for child in item.children:
        if child.children:
            yield from _boxes(child)
        elif child.row is not None:
            yield child


def report_total(report: Report, column: str) -> int:
    """The total of a column."""
    return report.totals.macs if column == "macs" else report.totals.params


def _drawing_order(item: GraphItem) -> int:
    """Inputs stand before layers; outputs, which were added after them, stay behind."""
    return 0 if item.row is not None else (1 if item.is_output else -1)


def _shape(tensor: Tensor) -> str:
    """The shape without the batch."""
    return "?" if tensor.shape is None else shape_text(tensor.shape[1:]).replace("x", "×")


def _rect(placed: Placed, fill: str, line: str, radius: float) -> str:
    return (
        f'<rect x="{placed.left:.1f}" y="{placed.top:.1f}" width="{placed.width:.1f}" '
        f'height="{placed.height:.1f}" rx="{radius}" fill="{fill}" stroke="{line}">'
    )


def _text(
    x: float, y: float, text: str, fill: str, anchor: str = "start", *, bold: bool = False
) -> str:
    if not text:
        return ""
    style = f' font-size="{NAME}" font-weight="600"' if bold else ""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{style}{where}>{html(text)}</text>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{FAINT}" stroke="{THEME.surface}" stroke-width="4" '
        f'stroke-linejoin="round" paint-order="stroke" text-anchor="{anchor}">{html(text)}</text>'
    )


def _path(
    first: tuple[float, float],
    bends: list[tuple[float, float, float]],
    last: tuple[float, float],
    arrow: bool,
) -> str:
    """A line that leaves and arrives vertically and passes the bends."""
    x, y = first
    parts = [f"M{x:.1f} {y:.1f}"]
    for across, top, bottom in [*bends, (last[0], last[1] - (5 if arrow else 0), 0.0)]:
        if abs(across - x) < 0.5:
            parts.append(f"L{across:.1f} {top:.1f}")
        else:
            half = (top - y) / 2
            parts.append(
                f"C{x:.1f} {y + half:.1f} {across:.1f} {top - half:.1f} {across:.1f} {top:.1f}"
            )
        x, y = across, top
        if bottom:
            parts.append(f"L{across:.1f} {bottom:.1f}")
            y = bottom
    line = f'<path d="{"".join(parts)}" fill="none" stroke="{THEME.edge}" stroke-width="1.4"/>'
    if not arrow:
        return line
    x, y = last
    return line + f'<path d="M{x - 3.5:.1f} {y - 6:.1f}h7L{x:.1f} {y:.1f}z" fill="{THEME.edge}"/>'
