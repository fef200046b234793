"""Forms of stored JSON, which is checked by pydantic when it is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class StoredJson(Generic[T]):
    """Values of a type as JSON. Pydantic is loaded with the first value: it takes as long as a short command."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        from pydantic import TypeAdapter

        return TypeAdapter(self._kind)

    def read(self, value: object) -> T:
        """The value of parsed JSON. Raises `ValueError` for anything else than `written` returns."""
        return self._adapter.validate_python(value)

    def parsed(self, text: bytes) -> T:
        """The value of JSON, whose types must be exact. Raises pydantic's `ValidationError`, a `ValueError`."""
        return self._adapter.validate_json(text, strict=True)

    def written(self, value: T) -> Any:
        """A value as JSON."""
        return self._adapter.dump_python(value, mode="json")
