"""The rows of a document as a Graph: an op and its inputs for every row, and notes of the rest.

A row takes the row above if that explains what the row prints, else the last earlier row that does.
A row that nothing explains is an unknown op with the output that is printed, never left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.document.choices import (
    ACTIVATIONS,
    JOINED,
    KINDS,
    Choice,
    Chooser,
    explains,
    same_shape,
)
from layerscope.formats.document.inputs import first_input
from layerscope.formats.document.notes import Opened, notes_of
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.graph.attributes import Opaque
from layerscope.graph.names import document_op
from layerscope.graph.types import Claims, Graph, Node, Shape, Source, Tensor
from layerscope.ops import SPECS
from layerscope.sheets.stages import SheetStage, convolved, pool_stage, stage_of

NEAR = 24  # earlier outputs of different shapes that are tried as the input of a row
WRONG = 10  # one row in so many may have a wrong figure in a chain
JOINABLE = 64  # earlier rows that a join is looked for in
WHY = "the document does not say what it computes"
NORMS = ("batch_norm", "layer_norm", "group_norm", "instance_norm")


def network_of(found: PrintedNetwork, file: str, name: str = "") -> Graph:
    """The network that some rows describe; what the text leaves open is in its notes."""
    if found.branched is None:
        chain = _assembled(replace(found, branched=False), file)
        wrong = len(chain.opened.contradicted) + len(chain.opened.unknown)
        joined = any(_op(row) in JOINED for row in found.rows)
        is_chain = not joined and wrong * WRONG <= len(found.rows)
        result = chain
        if not is_chain or chain.misplaced:
            branches = _assembled(replace(found, branched=True), file)
            result = branches if not is_chain or branches.is_explained else chain
    else:
        result = _assembled(found, file)
    return result.graph(name or found.name)


def _assembled(found: PrintedNetwork, file: str) -> _Assembly:
    """The rows as nodes, without biases where a notation counts none and its figures agree."""
    if found.biased:
        return _voted(found, file)
    rows = tuple(row if row.bias is not None else replace(row, bias=False) for row in found.rows)
    plain = _Assembly(replace(found, rows=rows), file, {False: False, True: False})
    plain.add_all()
    if not plain.unexplained:
        return plain
    voted = _voted(found, file)
    return voted if voted.unexplained < plain.unexplained else plain


def _voted(found: PrintedNetwork, file: str) -> _Assembly:
    """The rows as nodes: once to see whether layers have biases, and again if they have not."""
    wanted = {False: found.biased, True: False}  # bias, by whether a norm follows
    first = _Assembly(found, file, wanted)
    first.add_all()
    again = {
        normed: first.votes[normed, True] >= first.votes[normed, False]
        if first.votes[normed, True] or first.votes[normed, False]
        else wanted[normed]
        for normed in wanted
    }
    if again == wanted:
        return first
    second = _Assembly(found, file, again)
    second.add_all()
    return second


class RowOutput(Struct, frozen=True):
    """An output of a row: its tensor and shape, and its stage as sheets count them."""

    tensor: str
    shape: Shape | None
    stage: SheetStage = SheetStage()


class _Assembly:
    """A graph on the way, row by row."""

    def __init__(self, found: PrintedNetwork, file: str, bias: dict[bool, bool]) -> None:
        self.found = found
        self.file = file
        self.bias = bias
        self.inputs: list[Tensor] = []
        self.nodes: list[Node] = []
        self.outputs: list[RowOutput] = []
        self.by_key: dict[str, RowOutput] = {}
        # last output of each shape in each stage, the latest last
        self.shapes: dict[tuple[Shape, SheetStage], RowOutput] = {}
        self.read: set[str] = set()
        self.normalized: set[str] = set()  # tensors that a norm or an activation reads
        self.names: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.votes: Counter[tuple[bool, bool]] = Counter()
        self.claimed: dict[str, tuple[str, ...]] = {}
        self.summed: dict[str, tuple[str, ...]] = {}  # cells that depend on all rows
        self.numbered: dict[str, tuple[str, ...]] = {}  # cells that depend on all inputs
        self.misplaced: list[str] = []  # rows whose name says another stage
        self.unexplained = 0  # rows with figures
        self.opened = Opened()
        self.chooser = Chooser()

    def add_all(self) -> None:
        """Add every row."""
        rows = self.found.rows
        first = next((n for n, row in enumerate(rows) if row.kind == "input"), None)
        if first is None:
            row = first_input(rows)
            self.opened.input = row
            self._input(row)
        else:  # what a table has above its input takes it too
            rows = (rows[first], *rows[:first], *rows[first + 1 :])
        for number, row in enumerate(rows):
            if row.kind == "input":
                self._input(row)
                continue
            following = rows[number + 1] if number + 1 < len(rows) else None
            self._add(row, normed=following is not None and _op(following) in NORMS)

    def _input(self, row: LayerRow) -> None:
        shape = row.output or row.given
        name = self._fresh(row.name or "input")
        kind = "" if row.type in ("", "data") else row.type
        own = "" if name == row.name else row.name
        source = Source(self.file, row.line, kind, own, row.column)
        self.inputs.append(Tensor(name, shape, row.dtype, source))
        self._keep(row, RowOutput(name, shape))

    def _keep(self, row: LayerRow, result: RowOutput) -> None:
        self.outputs.append(result)
        self.by_key[row.key or row.name] = result
        if result.shape is not None:
            self.shapes.pop((result.shape, result.stage), None)
            self.shapes[result.shape, result.stage] = result

    def _fresh(self, name: str) -> str:
        found, count = name, self.counts[name]
        while found in self.names:
            count += 1
            found = f"{name}_{count + 1}"
        self.counts[name] = count
        self.names.add(found)
        return found

    # -- one row

    def _add(self, row: LayerRow, *, normed: bool) -> None:
        reads, choice = self._chosen(row, self.bias[normed])
        name = self._fresh(row.name or row.type or row.kind)
        own = "" if name == row.name else row.name
        source = Source(self.file, row.line, row.type, own, row.column)
        self.read.update(each.tensor for each in reads)
        if _op(row) in NORMS or _op(row) in ACTIVATIONS:
            self.normalized.update(each.tensor for each in reads)
        if choice is None:
            self.opened.unknown.append(name)
            self.unexplained += bool(row.amounts)
            if row.cells:
                self.claimed[name] = row.cells
            opaque = Opaque((row.output,), ("fp32",), (row.output is not None,), WHY)
            op = document_op(row.type or row.op or row.kind)
            result = RowOutput(name, row.output, _stage(reads, row.output))
            node = self._node(row, (name, op), reads, source)
            self.nodes.append(replace(node, attributes=opaque))
        else:
            self.unexplained += not choice.is_full
            self.opened.add(row, choice)
            self._vote(row, choice, reads, normed)
            result = RowOutput(name, choice.output, _stage(reads, choice.output, choice.op))
            node = self._node(row, (name, choice.op), reads, source)
            self.nodes.append(replace(node, attributes=choice.attributes))
        above = self.outputs[-1].tensor
        if row.takes is None and [each.tensor for each in reads] != [above]:
            self.opened.attached.append((name, tuple(each.tensor for each in reads)))
        if row.summed:
            self.summed[name] = row.summed
        if row.numbered:
            self.numbered[name] = row.numbered
        if row.undetermined:
            self.claimed.setdefault(name, row.undetermined)
        if row.traced and (self.opened.attached or self.opened.unknown):
            self.claimed.setdefault(name, row.traced)
        self._keep(row, result)

    def _node(
        self, row: LayerRow, named: tuple[str, str], reads: Sequence[RowOutput], source: Source
    ) -> Node:
        name, op = named
        scope = tuple(row.module.split(".")[:-1]) if row.module else ()
        inputs = tuple(each.tensor for each in reads)
        return Node(name, op, inputs, (name,), scope=scope, module=row.module, source=source)

    def _vote(
        self, row: LayerRow, choice: Choice, reads: Sequence[RowOutput], normed: bool
    ) -> None:
        """Count the rows whose figures show whether they have a bias."""
        has = getattr(choice.attributes, "bias", None)
        if row.bias is not None or not isinstance(has, bool) or not choice.is_full:
            return
        shapes = tuple(each.shape for each in reads if each.shape is not None)
        if not explains(row, choice, shapes, bias=not has):
            self.votes[normed, has] += 1
        else:
            self.opened.biases.append(has)

    # -- which rows it takes

    def _chosen(self, row: LayerRow, bias: bool) -> tuple[list[RowOutput], Choice | None]:
        """The rows that a row takes, and its op; None if nothing explains it."""
        if row.takes is not None:
            reads = [self.by_key[key] for key in row.takes if key in self.by_key]
            return reads, self._fixed(row, reads, bias) if len(reads) == len(row.takes) else None
        if _op(row) in JOINED:
            return self._joined(row, bias)
        first: tuple[list[RowOutput], Choice] | None = None  # that explains all but the stage
        best: tuple[list[RowOutput], Choice] | None = None
        for result in self._earlier(row):
            choice = self._op(row, [result], bias)
            if choice is None:
                continue
            if row.given is not None and not _fits(result.shape, row.given):
                choice = replace(choice, of=choice.of + 1)
            if choice.is_full and _has_stage(row, choice, result):
                return [result], choice
            if choice.is_full:
                first = first or ([result], choice)
            elif best is None or choice.explained > best[1].explained:
                best = [result], choice
        if first is not None:
            self.misplaced.append(row.name)
            return first
        if best is not None and (self._is_near(best[1]) or not self.found.branched):
            self.opened.contradicted.append(row)
            return best
        return self.outputs[-1:], None

    def _fixed(self, row: LayerRow, reads: Sequence[RowOutput], bias: bool) -> Choice | None:
        """The op of a row whose inputs are printed; a size that they contradict is a wrong cell."""
        choice = self._op(row, reads, bias)
        if choice is None or choice.is_full:
            return choice
        if choice.explained or (row.kernel and row.stride) or _keeps_shape(choice, reads):
            self.opened.contradicted.append(row)
            return choice
        return None

    def _is_near(self, choice: Choice) -> bool:
        """Whether the rows are a chain so far, and all figures of this one but one explained."""
        near = choice.explained > 1 and choice.explained + 1 >= choice.of
        return near and not self.opened.unknown and not self.opened.attached

    def _earlier(self, row: LayerRow) -> Iterator[RowOutput]:
        """The row above, then the last earlier outputs; only those of the printed input."""
        above = self.outputs[-1]
        if row.may_take:
            yield from (self.by_key[key] for key in row.may_take if key in self.by_key)
            return
        candidates = [above]
        looks = row.given is not None or self.found.branched
        met = {above.shape}
        for result in reversed(self.shapes.values()) if looks else ():
            if len(candidates) > NEAR:
                break
            if result is not above and (row.stage is not None or result.shape not in met):
                candidates.append(result)
                met.add(result.shape)
        fits = [m for m in candidates if row.given is None or _fits(m.shape, row.given)]
        yield from fits or candidates[:1]

    def _op(self, row: LayerRow, reads: Sequence[RowOutput], bias: bool) -> Choice | None:
        shapes = tuple(each.shape for each in reads if each.shape is not None)
        return self.chooser.choose(row, shapes, bias) if len(shapes) == len(reads) else None

    def _joined(self, row: LayerRow, bias: bool) -> tuple[list[RowOutput], Choice | None]:
        """Rows that a sum or a concatenation takes: those that nothing reads yet come first."""
        is_concat = _op(row) == "concat"
        above = self.outputs[-1]
        whole = row.given is None and row.output is not None
        if is_concat and whole and _fits(above.shape, row.output or ()):
            return [above], self._op(row, [above], bias)
        near = self.outputs[: -JOINABLE - 1 : -1]
        unread = [result for result in near if result.tensor not in self.read]
        # a shortcut begins before the block that its sum ends, and not at a norm's input
        scope = row.name.rpartition(".")[0] or row.name.rpartition("/")[0]
        outside = [m for m in near if m is above or (scope and not m.tensor.startswith(scope))]
        begins = [m for m in near if m is above or m.tensor not in self.normalized]
        for equal, group in product((True, False), (unread, outside, begins, near)):
            reads = _parts(group, row.output) if is_concat else _two_inputs(group, row, equal)
            choice = self._op(row, reads, bias) if len(reads) > 1 else None
            if choice is not None and choice.is_full:
                return reads, choice
        return self.outputs[-1:], None

    @property
    def is_explained(self) -> bool:
        """Whether the network has all that its document prints."""
        return not (self.opened.unknown or self.opened.contradicted or self.misplaced)

    def graph(self, name: str) -> Graph:
        """The finished graph; what no row reads is an output."""
        outputs = [node.name for node in self.nodes if node.name not in self.read]
        network = name or "network"
        return Graph(
            network,
            tuple(self.inputs),
            tuple(self.nodes),
            tuple(outputs or [result.tensor for result in self.outputs[-1:]]),
            modules=self.found.modules,
            claims=self._claims(),
            notes=(*self.found.notes, *self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        yield from notes_of(self.found, self.opened, self.nodes, self.claimed)
        if self._lines():
            yield (
                f"--as {self.found.notation} prints the document's own table again: its text does "
                "not determine the network; the figures of other forms are computed"
            )

    def _claims(self) -> Claims | None:
        """Cells of the rows that the text does not determine, as their notation prints them."""
        notation = self.found.notation
        if not notation:
            return None
        if self.opened.unknown:
            self._claim(self.summed)
        if self.opened.unknown or self.opened.attached:
            self._claim(self.numbered)
        totals = self.found.totals if self.opened.unknown else ()
        return Claims(notation, self.claimed, totals, self._lines())

    def _claim(self, cells: Mapping[str, tuple[str, ...]]) -> None:
        """Add cells of rows to those that are taken from the document."""
        for name, own in cells.items():
            others = self.claimed.get(name, ())
            self.claimed[name] = (*others, *(cell for cell in own if cell not in others))

    def _lines(self) -> tuple[str, ...]:
        """All that the document prints, where its text does not determine the network."""
        found = self.found
        is_open = self.opened.unknown or self.opened.attached or found.groups or found.ambiguous
        return self.found.lines if is_open else ()


def _op(row: LayerRow) -> str:
    return row.op or KINDS.get(row.kind, "")


def _stage(reads: Sequence[RowOutput], output: Shape | None, op: str = "") -> SheetStage:
    """The stage of a row that reads these."""
    stage = stage_of([(each.stage, each.shape) for each in reads], output)
    given = reads[0].shape if reads else None
    if op in ("conv", "conv_transpose") and given is not None:
        return convolved(stage, given, output)
    return stage


def _has_stage(row: LayerRow, choice: Choice, given: RowOutput) -> bool:
    """Whether a row that takes this output has the stage that its name says."""
    stage = _stage([given], choice.output, choice.op)
    pool = SPECS[choice.op].family == "pooling"
    return row.stage in (None, pool_stage(stage, given.shape) if pool else stage.number)


def _keeps_shape(choice: Choice, reads: Sequence[RowOutput]) -> bool:
    """Whether an op gives a shape that its attributes do not change."""
    has = SPECS[choice.op].attributes is not None
    return not has or any(each.shape == choice.output for each in reads)


def _fits(shape: Shape | None, printed: Shape) -> bool:
    return shape is not None and same_shape(shape, printed)


def _two_inputs(near: Sequence[RowOutput], row: LayerRow, equal: bool) -> list[RowOutput]:
    """The row above and the last output that goes with it, in the order that the row prints.

    Both are of one shape if `equal`, else one may be broadcast.
    """
    if not near:
        return []
    above, output = near[0], row.output
    if above.shape is None:
        return []
    if output is None:
        output = above.shape
    found = [m for m in near[1:] if m.shape is not None and _broadcasts(m.shape, above, output)]
    if equal:
        found = [m for m in found if m.shape is not None and same_shape(m.shape, above.shape)]
    if row.given is not None and not _fits(above.shape, row.given):
        found = [m for m in found if _fits(m.shape, row.given)]
    if not found:
        return []
    last = row.given is None or not _fits(above.shape, row.given)
    return [found[0], above] if last else [above, found[0]]


def _broadcasts(shape: Shape, above: RowOutput, output: Shape) -> bool:
    """Whether an output and the row above have a result of the printed shape."""
    given = (shape, above.shape or ())
    if any(_fits(each, output) for each in given):
        other = given[1] if _fits(shape, output) else shape
        rank = max(len(output), len(other))
        pairs = zip(
            (*other, *(1,) * (rank - len(other))), (*output, *(1,) * (rank - len(output))),
            strict=True,
        )  # fmt: skip
        return all(a in (1, b) for a, b in pairs)
    return False


def _parts(near: Sequence[RowOutput], output: Shape | None) -> list[RowOutput]:
    """The last outputs of the printed size whose channels add up to those of the output."""
    if output is None or len(output) < 2:
        return []
    found: list[RowOutput] = []
    left = output[1]
    for result in near:
        shape = result.shape
        if shape is None or len(shape) < 2 or not left:
            continue
        if same_shape((*shape[:1], *shape[2:]), (*output[:1], *output[2:])) and shape[1] <= left:
            found.append(result)
            left -= shape[1]
    return found[::-1] if not left else []
