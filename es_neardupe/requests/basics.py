"""What every object of a request is, and the small types that many have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from annotated_types import Ge, GroupedMetadata, Le, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

__all__ = ["Between", "Model", "Name", "Names", "Ratio", "Words"]


class Between(GroupedMetadata):
    """A range of numbers, whose error says it."""

    def __init__(self, low: int, high: int, kind: str) -> None:
        self.low, self.high, self.kind = low, high, kind

    def __iter__(self) -> Iterator[object]:
        yield from (Ge(self.low), Le(self.high), WrapValidator(self._told))

    def _told(self, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            range = f"{self.kind} from {self.low} to {self.high:,}"
            raise PydanticCustomError("range", "{allowed}", {"allowed": range}) from None


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise PydanticCustomError("twice", "{allowed}", {"allowed": "a list that names nothing twice"})
    return names


Name = Annotated[str, MinLen(1)]
Names = Annotated[list[Name], MinLen(1), AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})]
Ratio = Annotated[float, Between(0, 1, "a number")]
Words = Annotated[int, Between(1, 1000, "a whole number")]


class Model(BaseModel):
    """An object of the request: strict, and no property but its own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _properties(cls, value: Any) -> Any:
        """Say of the first property that is unknown or missing which there are."""
        if not isinstance(value, dict):
            return value
        known = {field.alias or name: field for name, field in cls.model_fields.items()}
        needed = [name for name, field in known.items() if field.is_required()]
        for kind, names in (
            ("unknown", [name for name in value if name not in known]),
            ("missing", [name for name in needed if name not in value]),
        ):
            for name in names:
                raise PydanticCustomError("property", "{problem}", {"name": name, "problem": kind, "known": [*known]})
        return value
