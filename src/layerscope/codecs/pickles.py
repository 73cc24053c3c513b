"""Pickles, read without running them: a reader of the opcodes that only knows inert values.

A pickle is a program that imports and calls. Here an import gives whatever `Meanings.find` says a
name stands for, a call whatever `Meanings.call` makes of it; both refuse what they do not know.
Every opcode takes a bounded time but for the bytes it reads and the values it takes off the stack,
and nothing is hashed or printed that shares parts with itself, so reading is linear in the bytes.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Protocol

from layerscope.errors import FormatError
from layerscope.limits import MOST_SIZE, NUMBER_DIGITS, plain

# An object of a pickle: None, bool, int, float, str, bytes, list, dict, tuple, or what `call` made.
Value = object
SCALARS = (str, int, float, bytes, type(None))
LONGEST_LINE = 65536  # bytes of a module's name, a number or a key of old protocols
LONGEST_INT = 255  # bytes


class Key:
    """A key of a dict that is neither text nor number."""

    def __str__(self) -> str:
        return "?"


class Cut(FormatError):
    """The bytes end before the pickle does."""


class Meanings(Protocol):
    """What the names in a pickle stand for."""

    def find(self, module: str, name: str) -> Value:
        """What stands for an import."""

    def call(self, function: Value, args: Value) -> Value:
        """What stands for the result of a call."""

    def build(self, made: Value, state: Value) -> None:
        """Give an object its state."""

    def stored(self, key: Value) -> Value:
        """What stands for data outside of the pickle."""


def load(data: bytes, at: int, meanings: Meanings) -> tuple[Value, int]:
    """The value of the pickle that begins at a byte, and where it ends."""
    reader = _Reader(data, at, meanings)
    try:
        return reader.value(), reader.at
    except IndexError:
        if reader.at >= len(data):
            raise Cut(f"byte {len(data)}: the pickle ends too early") from None
        raise FormatError(f"byte {reader.at}: a pickle that takes what is not there") from None


class _Reader:
    def __init__(self, data: bytes, at: int, meanings: Meanings) -> None:
        self.data, self.at, self.meanings = data, at, meanings
        self.stack: list[Value] = []
        self.marks: list[int] = []
        self.memo: dict[int, Value] = {}

    def value(self) -> Value:
        """Read up to the STOP opcode; the opcodes of each tensor come first, as they are most."""
        data, stack, marks, memo = self.data, self.stack, self.marks, self.memo
        at, meanings = self.at, self.meanings
        while True:
            self.at = at
            code = data[at]
            at += 1
            if code == 0x71:  # BINPUT
                memo[data[at]] = stack[-1]
                at += 1
            elif code == 0x72:  # LONG_BINPUT
                memo[self.number(at, 4)] = stack[-1]
                at += 4
            elif code == 0x68:  # BINGET
                stack.append(self.known(data[at]))
                at += 1
            elif code == 0x4B:  # BININT1
                stack.append(data[at])
                at += 1
            elif code == 0x4D:  # BININT2
                stack.append(self.number(at, 2))
                at += 2
            elif code == 0x6A:  # LONG_BINGET
                stack.append(self.known(self.number(at, 4)))
                at += 4
            elif code == 0x58:  # BINUNICODE
                text, at = self.bytes(at, 4)
                stack.append(text.decode("utf-8", "replace"))
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code == 0x74:  # TUPLE
                stack.append(tuple(self.marked()))
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
                stack[-1] = meanings.stored(stack[-1])
            elif code == 0x52:  # REDUCE
                args = stack.pop()
                stack[-1] = meanings.call(stack[-1], args)
            elif code == 0x4A:  # BININT
                stack.append(unpack_from("<i", data, self.room(at, 4))[0])
                at += 4
            elif code == 0x89 or code == 0x88:  # NEWFALSE, NEWTRUE
                stack.append(code == 0x88)
            elif code == 0x8C:  # SHORT_BINUNICODE
                text, at = self.bytes(at, 1)
                stack.append(text.decode("utf-8", "replace"))
            elif code == 0x2E:  # STOP
                self.at = at
                return stack.pop()
            else:
                at = self.other(code, at)

    def other(self, code: int, at: int) -> int:
        """One of the opcodes that are few in a file; returns where the next one is."""
        data, stack = self.data, self.stack
        if code == 0x75:  # SETITEMS
            items = self.marked()
            if len(items) % 2:
                raise IndexError
            for n in range(0, len(items), 2):
                self.set_item(stack[-1], items[n], items[n + 1])
        elif code == 0x73:  # SETITEM
            item, key = stack.pop(), stack.pop()
            self.set_item(stack[-1], key, item)
        elif code == 0x65 or code == 0x90:  # APPENDS, ADDITEMS
            items = self.marked()
            self.list_on_top().extend(items)
        elif code == 0x61:  # APPEND
            item = stack.pop()
            self.list_on_top().append(item)
        elif code == 0x62:  # BUILD
            state = stack.pop()
            self.meanings.build(stack[-1], state)
        elif code == 0x63:  # GLOBAL
            module, at = self.line(at)
            name, at = self.line(at)
            stack.append(self.meanings.find(module, name))
        elif code == 0x93:  # STACK_GLOBAL
            own, room = stack.pop(), stack.pop()
            if not (isinstance(own, str) and isinstance(room, str)):
                raise FormatError(f"byte {self.at}: an import without a name")
            stack.append(self.meanings.find(room, own))
        elif code == 0x81:  # NEWOBJ
            args = stack.pop()
            stack[-1] = self.meanings.call(stack[-1], args)
        elif code == 0x92:  # NEWOBJ_EX
            stack.pop()
            args = stack.pop()
            stack[-1] = self.meanings.call(stack[-1], args)
        elif code == 0x69:  # INST
            module, at = self.line(at)
            name, at = self.line(at)
            args = tuple(self.marked())
            stack.append(self.meanings.call(self.meanings.find(module, name), args))
        elif code == 0x6F:  # OBJ
            items = self.marked()
            stack.append(self.meanings.call(items[0], tuple(items[1:])))
        elif code == 0x4E:  # NONE
            stack.append(None)
        elif code == 0x7D:  # EMPTY_DICT
            stack.append({})
        elif code == 0x5D or code == 0x8F:  # EMPTY_LIST, EMPTY_SET
            stack.append([])
        elif code == 0x64:  # DICT
            items = self.marked()
            made: dict[Value, Value] = {}
            for n in range(0, len(items) - 1, 2):
                self.set_item(made, items[n], items[n + 1])
            stack.append(made)
        elif code == 0x6C or code == 0x91:  # LIST, FROZENSET
            stack.append(self.marked())
        elif code == 0x30:  # POP
            if self.marks and self.marks[-1] == len(stack):
                self.marks.pop()
            else:
                stack.pop()
        elif code == 0x31:  # POP_MARK
            self.marked()
        elif code == 0x32:  # DUP
            stack.append(stack[-1])
        elif code == 0x70 or code == 0x67:  # PUT, GET
            number, at = self.decimal(at)
            if code == 0x70:
                if not 0 <= number < 1 << 32:
                    raise FormatError(f"byte {at}: value {number} of the memo, expected a uint32")
                self.memo[number] = stack[-1]
            else:
                stack.append(self.known(number))
        elif code == 0x50:  # PERSID
            text, at = self.line(at)
            stack.append(self.meanings.stored(text))
        elif code == 0x80:  # PROTO
            if data[at] > 5:
                raise FormatError(f"byte {self.at}: pickle protocol {data[at]}, expected 0 to 5")
            at += 1
        elif code == 0x95:  # FRAME
            at = self.room(at, 8) + 8
        else:
            at = self.scalar(code, at)
        return at

    def scalar(self, code: int, at: int) -> int:
        """A number or text in one of the older or longer forms."""
        stack = self.stack
        if code == 0x8A or code == 0x8B:  # LONG1, LONG4
            digits, at = self.bytes(at, 1 if code == 0x8A else 4)
            if len(digits) > LONGEST_INT:
                raise FormatError(f"byte {self.at}: {NUMBER_DIGITS.refusal()}")
            stack.append(int.from_bytes(digits, "little", signed=True))
        elif code == 0x47:  # BINFLOAT
            stack.append(unpack_from(">d", self.data, self.room(at, 8))[0])
            at += 8
        elif code == 0x49 or code == 0x4C:  # INT, LONG
            end = self.data.find(b"\n", at, at + 3)
            if code == 0x49 and self.data[at:end] in (b"00", b"01"):
                stack.append(self.data[at:end] == b"01")
                return end + 1
            number, at = self.decimal(at)
            stack.append(number)
        elif code == 0x46:  # FLOAT
            text, at = self.line(at)
            try:
                stack.append(float(text[: NUMBER_DIGITS.most]))
            except ValueError:
                raise FormatError(f"byte {self.at}: no number") from None
        elif code == 0x56:  # UNICODE
            end = self.data.find(b"\n", at)
            if end < 0:
                raise Cut(f"byte {at}: a line without an end")
            stack.append(self.data[at:end].decode("raw-unicode-escape", "replace"))
            at = end + 1
        elif code == 0x53:  # STRING
            text, at = self.line(at)
            stack.append(text.strip("'\""))
        elif code in TEXTS or code in BYTES:
            data, at = self.bytes(at, (TEXTS.get(code) or BYTES[code]))
            stack.append(data.decode("utf-8", "replace") if code in TEXTS else data)
        else:
            raise FormatError(f"byte {self.at}: opcode {code:#04x}, which no file of weights has")
        return at

    def known(self, key: int) -> Value:
        try:
            return self.memo[key]
        except KeyError:
            raise FormatError(f"byte {self.at}: value {key} of the memo, which is empty") from None

    def marked(self) -> list[Value]:
        """Values since the last mark, taken off the stack."""
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def list_on_top(self) -> list[Value]:
        found = self.stack[-1]
        if not isinstance(found, list):
            raise FormatError(f"byte {self.at}: values appended to what is no list")
        return found

    def set_item(self, made: Value, key: Value, item: Value) -> None:
        """Set an item of a dict; a duplicate key is refused."""
        if not isinstance(made, dict):
            raise FormatError(f"byte {self.at}: an item set in what is no dict")
        if isinstance(key, int) and not -MOST_SIZE <= key <= MOST_SIZE:  # they may all hash alike
            raise FormatError(f"byte {self.at}: a dict key of {plain(key)}, expected an int64")
        if not isinstance(key, SCALARS):
            key = Key()
        if key in made:
            raise FormatError(f"byte {self.at}: duplicate key {str(key)[:80]!r} in a dict")
        made[key] = item

    def room(self, at: int, count: int) -> int:
        if count > len(self.data) - at:
            raise Cut(f"byte {at}: {count:,} bytes expected, the pickle ends before")
        return at

    def number(self, at: int, width: int) -> int:
        self.room(at, width)
        return int.from_bytes(self.data[at : at + width], "little")

    def bytes(self, at: int, width: int) -> tuple[bytes, int]:
        """Bytes after their length, and where they end."""
        count = self.number(at, width)
        at = self.room(at + width, count)
        return self.data[at : at + count], at + count

    def line(self, at: int) -> tuple[str, int]:
        end = self.data.find(b"\n", at, at + LONGEST_LINE)
        if end < 0:
            if at + LONGEST_LINE > len(self.data):
                raise Cut(f"byte {at}: a line without an end")
            raise FormatError(f"byte {at}: a line of more than {LONGEST_LINE} bytes")
        return self.data[at:end].decode("utf-8", "replace"), end + 1

    def decimal(self, at: int) -> tuple[int, int]:
        text, end = self.line(at)
        NUMBER_DIGITS.check(len(text), f"byte {at}")
        try:
            return int(text.rstrip("L")), end
        except ValueError:
            raise FormatError(f"byte {at}: {text[:20]!r}, expected a number") from None


TEXTS = {0x8D: 8, 0x55: 1, 0x54: 4}  # BINUNICODE8, SHORT_BINSTRING, BINSTRING: bytes of length
BYTES = {0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}  # SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8
