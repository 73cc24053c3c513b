"""An interpreter of pickle opcodes that imports and calls nothing.

A pickle is a program that imports names and calls them. Here an import gives what
`PickleHooks.find_class` returns for the name, and a call what `PickleHooks.call` returns; both
refuse everything else. Reading takes time linear in the bytes: an opcode costs the bytes that it
reads and the values that it pops, and values that can contain themselves are neither hashed nor
printed.
"""

from __future__ import annotations

from struct import unpack
from typing import Protocol

from layerscope.codecs.seeking import FileBytes
from layerscope.errors import FormatError
from layerscope.limits import MOST_SIZE, NUMBER_DIGITS, plain

# None, bool, int, float, str, bytes, list, dict, tuple, or what a hook returned.
PickleValue = object
SCALARS = (str, int, float, bytes, type(None))
LONGEST_LINE = 65536  # bytes of a module name, a number or a persistent id in protocol 0
LONGEST_INT = 255  # bytes of an int


class OpaqueKey:
    """A dict key that is neither a string nor a number."""

    def __str__(self) -> str:
        return "?"


class TruncatedPickle(FormatError):
    """The bytes end before the STOP opcode."""


class PickleHooks(Protocol):
    """What imports, calls and persistent ids evaluate to."""

    def find_class(self, module: str, name: str) -> PickleValue:
        """The value of an import (GLOBAL)."""

    def call(self, function: PickleValue, args: PickleValue) -> PickleValue:
        """The result of a call (REDUCE, NEWOBJ)."""

    def build(self, obj: PickleValue, state: PickleValue, /) -> None:
        """Set the state of an object (BUILD)."""

    def persistent_load(self, pid: PickleValue, /) -> PickleValue:
        """The value of a persistent id (BINPERSID): data outside of the pickle."""


def load(data: FileBytes, at: int, hooks: PickleHooks) -> tuple[PickleValue, int]:
    """The value of the pickle at an offset, and the offset behind it."""
    reader = _Reader(data, at, hooks)
    try:
        return reader.value(), reader.at
    except IndexError:
        if reader.at >= len(data):
            raise TruncatedPickle(f"byte {len(data)}: the pickle ends too early") from None
        raise FormatError(f"byte {reader.at}: a pickle that pops from an empty stack") from None


class _Reader:
    def __init__(self, data: FileBytes, at: int, hooks: PickleHooks) -> None:
        self.data, self.at, self.hooks = data, at, hooks
        self.stack: list[PickleValue] = []
        self.marks: list[int] = []
        self.memo: dict[int, PickleValue] = {}

    def value(self) -> PickleValue:
        """Run up to the STOP opcode; opcodes of tensors are the most frequent and tested first."""
        data, stack, marks, memo = self.data, self.stack, self.marks, self.memo
        at, hooks = self.at, self.hooks
        while True:
            self.at = at
            code = data[at]
            at += 1
            if code == 0x71:  # BINPUT
                memo[data[at]] = stack[-1]
                at += 1
            elif code == 0x72:  # LONG_BINPUT
                memo[self._uint(at, 4)] = stack[-1]
                at += 4
            elif code == 0x68:  # BINGET
                stack.append(self._from_memo(data[at]))
                at += 1
            elif code == 0x4B:  # BININT1
                stack.append(data[at])
                at += 1
            elif code == 0x4D:  # BININT2
                stack.append(self._uint(at, 2))
                at += 2
            elif code == 0x6A:  # LONG_BINGET
                stack.append(self._from_memo(self._uint(at, 4)))
                at += 4
            elif code == 0x58:  # BINUNICODE
                text, at = self._prefixed(at, 4)
                stack.append(text.decode("utf-8", "replace"))
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code == 0x74:  # TUPLE
                stack.append(tuple(self._pop_mark()))
            elif 0x85 <= code <= 0x87:  # TUPLE1 to TUPLE3
                count = code - 0x84
                if len(stack) < count:
                    raise IndexError
                stack[-count:] = [tuple(stack[-count:])]
            elif code == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif code == 0x29:  # EMPTY_TUPLE
                stack.append(())
            elif code == 0x51:  # BINPERSID
                stack[-1] = hooks.persistent_load(stack[-1])
            elif code == 0x52:  # REDUCE
                args = stack.pop()
                stack[-1] = hooks.call(stack[-1], args)
            elif code == 0x4A:  # BININT
                stack.append(unpack("<i", data[self._need_bytes(at, 4) : at + 4])[0])
                at += 4
            elif code == 0x89 or code == 0x88:  # NEWFALSE, NEWTRUE
                stack.append(code == 0x88)
            elif code == 0x8C:  # SHORT_BINUNICODE
                text, at = self._prefixed(at, 1)
                stack.append(text.decode("utf-8", "replace"))
            elif code == 0x2E:  # STOP
                self.at = at
                return stack.pop()
            else:
                at = self._container(code, at)

    def _container(self, code: int, at: int) -> int:
        """Run an opcode that builds a dict, list or set; returns the offset of the next opcode."""
        stack = self.stack
        if code == 0x75:  # SETITEMS
            items = self._pop_mark()
            if len(items) % 2:
                raise IndexError
            for n in range(0, len(items), 2):
                self._set_item(stack[-1], items[n], items[n + 1])
        elif code == 0x73:  # SETITEM
            item, key = stack.pop(), stack.pop()
            self._set_item(stack[-1], key, item)
        elif code == 0x65 or code == 0x90:  # APPENDS, ADDITEMS
            items = self._pop_mark()
            self._list_on_top().extend(items)
        elif code == 0x61:  # APPEND
            item = stack.pop()
            self._list_on_top().append(item)
        elif code == 0x7D:  # EMPTY_DICT
            stack.append({})
        elif code == 0x5D or code == 0x8F:  # EMPTY_LIST, EMPTY_SET
            stack.append([])
        elif code == 0x64:  # DICT
            items = self._pop_mark()
            result: dict[PickleValue, PickleValue] = {}
            for n in range(0, len(items) - 1, 2):
                self._set_item(result, items[n], items[n + 1])
            stack.append(result)
        elif code == 0x6C or code == 0x91:  # LIST, FROZENSET
            stack.append(self._pop_mark())
        else:
            return self._object(code, at)
        return at

    def _object(self, code: int, at: int) -> int:
        """Run an opcode that imports, calls or restores an object."""
        stack, hooks = self.stack, self.hooks
        if code == 0x62:  # BUILD
            state = stack.pop()
            hooks.build(stack[-1], state)
        elif code == 0x63:  # GLOBAL
            module, at = self._line(at)
            name, at = self._line(at)
            stack.append(hooks.find_class(module, name))
        elif code == 0x93:  # STACK_GLOBAL
            own, package = stack.pop(), stack.pop()
            if not (isinstance(own, str) and isinstance(package, str)):
                raise FormatError(f"byte {self.at}: an import without a name")
            stack.append(hooks.find_class(package, own))
        elif code == 0x81:  # NEWOBJ
            args = stack.pop()
            stack[-1] = hooks.call(stack[-1], args)
        elif code == 0x92:  # NEWOBJ_EX
            stack.pop()
            args = stack.pop()
            stack[-1] = hooks.call(stack[-1], args)
        elif code == 0x69:  # INST
            module, at = self._line(at)
            name, at = self._line(at)
            args = tuple(self._pop_mark())
            stack.append(hooks.call(hooks.find_class(module, name), args))
        elif code == 0x6F:  # OBJ
            items = self._pop_mark()
            stack.append(hooks.call(items[0], tuple(items[1:])))
        elif code == 0x50:  # PERSID
            text, at = self._line(at)
            stack.append(hooks.persistent_load(text))
        else:
            return self._stack_or_memo(code, at)
        return at

    def _stack_or_memo(self, code: int, at: int) -> int:
        """Run an opcode of the stack, the memo or the protocol."""
        data, stack = self.data, self.stack
        if code == 0x4E:  # NONE
            stack.append(None)
        elif code == 0x30:  # POP
            if self.marks and self.marks[-1] == len(stack):
                self.marks.pop()
            else:
                stack.pop()
        elif code == 0x31:  # POP_MARK
            self._pop_mark()
        elif code == 0x32:  # DUP
            stack.append(stack[-1])
        elif code == 0x70 or code == 0x67:  # PUT, GET
            number, at = self._decimal(at)
            if code == 0x70:
                if not 0 <= number < 1 << 32:
                    raise FormatError(f"byte {at}: value {number} of the memo, expected a uint32")
                self.memo[number] = stack[-1]
            else:
                stack.append(self._from_memo(number))
        elif code == 0x80:  # PROTO
            if data[at] > 5:
                raise FormatError(f"byte {self.at}: pickle protocol {data[at]}, expected 0 to 5")
            at += 1
        elif code == 0x95:  # FRAME
            at = self._need_bytes(at, 8) + 8
        else:
            return self._scalar(code, at)
        return at

    def _scalar(self, code: int, at: int) -> int:
        """Run an opcode that pushes a number, string or bytes."""
        stack = self.stack
        if code == 0x8A or code == 0x8B:  # LONG1, LONG4
            digits, at = self._prefixed(at, 1 if code == 0x8A else 4)
            if len(digits) > LONGEST_INT:
                raise FormatError(f"byte {self.at}: {NUMBER_DIGITS.refusal()}")
            stack.append(int.from_bytes(digits, "little", signed=True))
        elif code == 0x47:  # BINFLOAT
            stack.append(unpack(">d", self.data[self._need_bytes(at, 8) : at + 8])[0])
            at += 8
        elif code == 0x49 or code == 0x4C:  # INT, LONG
            if code == 0x49 and self.data[at : at + 3] in (b"00\n", b"01\n"):
                stack.append(self.data[at + 1 : at + 2] == b"1")
                return at + 3
            number, at = self._decimal(at)
            stack.append(number)
        elif code == 0x46:  # FLOAT
            text, at = self._line(at)
            try:
                stack.append(float(text[: NUMBER_DIGITS.most]))
            except ValueError:
                raise FormatError(f"byte {self.at}: no number") from None
        elif code == 0x56:  # UNICODE
            end = self.data.find(b"\n", at)
            if end < 0:
                raise TruncatedPickle(f"byte {at}: a line without an end")
            stack.append(self.data[at:end].decode("raw-unicode-escape", "replace"))
            at = end + 1
        elif code == 0x53:  # STRING
            text, at = self._line(at)
            stack.append(text.strip("'\""))
        elif code in STRINGS or code in BYTES:
            data, at = self._prefixed(at, (STRINGS.get(code) or BYTES[code]))
            stack.append(data.decode("utf-8", "replace") if code in STRINGS else data)
        else:
            raise FormatError(f"byte {self.at}: opcode {code:#04x}, which no file of weights has")
        return at

    def _from_memo(self, key: int) -> PickleValue:
        try:
            return self.memo[key]
        except KeyError:
            raise FormatError(f"byte {self.at}: value {key} of the memo, which is empty") from None

    def _pop_mark(self) -> list[PickleValue]:
        """Pop all values above the last mark."""
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def _list_on_top(self) -> list[PickleValue]:
        found = self.stack[-1]
        if not isinstance(found, list):
            raise FormatError(f"byte {self.at}: values appended to what is no list")
        return found

    def _set_item(self, target: PickleValue, key: PickleValue, item: PickleValue) -> None:
        """Set an item of a dict; a duplicate key is refused."""
        if not isinstance(target, dict):
            raise FormatError(f"byte {self.at}: an item set in what is no dict")
        if (
            isinstance(key, int) and not -MOST_SIZE <= key <= MOST_SIZE
        ):  # large ints can be chosen to have equal hashes
            raise FormatError(f"byte {self.at}: a dict key of {plain(key)}, expected an int64")
        if not isinstance(key, SCALARS):
            key = OpaqueKey()
        if key in target:
            raise FormatError(f"byte {self.at}: duplicate key {str(key)[:80]!r} in a dict")
        target[key] = item

    def _need_bytes(self, at: int, count: int) -> int:
        """Raise where fewer than `count` bytes are left; returns `at`."""
        if count > len(self.data) - at:
            raise TruncatedPickle(f"byte {at}: {count:,} bytes expected, the pickle ends before")
        return at

    def _uint(self, at: int, width: int) -> int:
        self._need_bytes(at, width)
        return int.from_bytes(self.data[at : at + width], "little")

    def _prefixed(self, at: int, width: int) -> tuple[bytes, int]:
        """The bytes behind a length prefix, and the offset behind them."""
        count = self._uint(at, width)
        at = self._need_bytes(at + width, count)
        return self.data[at : at + count], at + count

    def _line(self, at: int) -> tuple[str, int]:
        end = self.data.find(b"\n", at, at + LONGEST_LINE)
        if end < 0:
            if at + LONGEST_LINE > len(self.data):
                raise TruncatedPickle(f"byte {at}: a line without an end")
            raise FormatError(f"byte {at}: a line of more than {LONGEST_LINE} bytes")
        return self.data[at:end].decode("utf-8", "replace"), end + 1

    def _decimal(self, at: int) -> tuple[int, int]:
        text, end = self._line(at)
        NUMBER_DIGITS.check(len(text), f"byte {at}")
        try:
            return int(text.rstrip("L")), end
        except ValueError:
            raise FormatError(f"byte {at}: {text[:20]!r}, expected a number") from None


# Opcode -> bytes of its length prefix.
STRINGS = {0x8D: 8, 0x55: 1, 0x54: 4}  # BINUNICODE8, SHORT_BINSTRING, BINSTRING
BYTES = {0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}  # SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8
