"""Values of a configuration, with the defaults of its model_type and checks of their types."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import FormatError
from layerscope.limits import MODEL_LAYERS
from layerscope.llm.defaults import defaults

MOST = 2**40  # of a size: products of three stay far below what a file can address


class ConfigValues:
    """The values of one configuration."""

    def __init__(self, values: Mapping[str, object], where: str, model_type: str) -> None:
        self.model_type = model_type
        self.where = where
        self._given = dict(values)
        self._defaults = defaults().get(model_type, {})

    def value(self, name: str) -> object:
        """The value as it is in the file, else its default, else None."""
        return self._given[name] if name in self._given else self._defaults.get(name)

    def part(self, name: str, model_type: str) -> ConfigValues:
        """A nested configuration."""
        found = self.value(name)
        if not isinstance(found, dict):
            raise FormatError(f"{self.where}: no {name}, expected a configuration")
        kind = found.get("model_type")
        return ConfigValues(found, self.where, kind if isinstance(kind, str) else model_type)

    def with_value(self, name: str, value: object) -> ConfigValues:
        """The same configuration with another value."""
        return ConfigValues({**self._given, name: value}, self.where, self.model_type)

    def of_type(self, model_type: str) -> ConfigValues:
        """The same values, with the defaults of another model_type."""
        return ConfigValues(self._given, self.where, model_type)

    def size(self, *names: str, otherwise: int | None = None) -> int:
        """The first of these values that is given, a whole number from 1; else `otherwise`."""
        found = self.count(*names, otherwise=otherwise)
        if found < 1:
            raise FormatError(f"{self.where}: {names[0]} {found}, expected at least 1")
        return found

    def count(self, *names: str, otherwise: int | None = None) -> int:
        """The first of these values that is given, a whole number from 0; else `otherwise`."""
        # What the file gives precedes the default of another spelling.
        for name in sorted(names, key=lambda each: self._given.get(each) is None):
            found = self.value(name)
            if found is None:
                continue
            if type(found) is not int or not 0 <= found <= MOST:
                wanted = f"expected a whole number up to {MOST:,}"
                raise FormatError(f"{self.where}: {name} {str(found)[:40]}, {wanted}")
            return found
        if otherwise is None:
            raise FormatError(f"{self.where}: no {names[0]}, which {self.model_type} needs")
        return otherwise

    def flag(self, name: str) -> bool:
        """Whether a value is true; false if it is not given."""
        found = self.value(name)
        if found is not None and not isinstance(found, bool):
            raise FormatError(f"{self.where}: {name} {str(found)[:40]}, expected true or false")
        return bool(found)

    def items(self, name: str) -> list[object]:
        """A list; empty if it is not given."""
        found = self.value(name)
        if found is None:
            return []
        if not isinstance(found, (list, tuple)):
            raise FormatError(f"{self.where}: {name} {str(found)[:40]}, expected a list")
        return list(found)

    def layers(self, *names: str) -> int:
        """The number of layers."""
        number = self.count(*(names or ("num_hidden_layers",)))
        MODEL_LAYERS.check(number, f"{self.where}: {(names or ('num_hidden_layers',))[0]}")
        return number

    def layer_types(
        self, number: int, interval: int = 0, rare: str = "full_attention"
    ) -> list[str]:
        """Kinds of layers; where they are not listed, every `interval`th is `rare`."""
        listed = self.items("layer_types")
        if listed:
            if len(listed) < number or not all(isinstance(each, str) for each in listed):
                raise FormatError(
                    f"{self.where}: layer_types has {len(listed)} items, expected {number} names"
                )
            return [str(each) for each in listed[:number]]
        if not interval:
            return [rare] * number
        return [rare if (i + 1) % interval == 0 else "" for i in range(number)]
