"""Settings: types and ranges declared once, validated alike for Python, the command line, estimators and files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic.fields import FieldInfo

from tapnet.errors import SettingError, did_you_mean
from tapnet.nn.pool.select import check_ratio

S = TypeVar("S", bound="Settings")

LIMITS = {"ge": "at least", "gt": "above", "lt": "below", "le": "at most"}
DESCRIBED = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)  # a field in the Args of a docstring
LARGEST = 10_000  # layers, channels and the like; also bounds what a stranger's file can ask for


def _as_tuple(values: Any) -> Any:
    return tuple(values) if isinstance(values, list) else values  # JSON and the command line have lists


AsTuple = BeforeValidator(_as_tuple)
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Counts = Annotated[tuple[Count, ...], AsTuple]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]  # of a term of the loss
Ratio = Annotated[float | int, PlainValidator(check_ratio)]  # a share, or a number of nodes
Ratios = Annotated[tuple[Ratio, ...], AsTuple]
TwoCounts = Annotated[tuple[Count, Count], AsTuple]


class Settings(BaseModel):
    """Base of all settings: frozen, comparable, hashable, and made of values of the right types and ranges.

    A subclass declares fields with defaults. Whole numbers are accepted where a float belongs and become floats, so
    that 1 and 1.0 are the same setting.

    Raises:
        SettingError: if a name is unknown or a value does not fit; the message says which and what would be right.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    # Settings are part of a trial's key: those that came after results were stored must not change it.
    ADDED_LATER: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _as_setting_error(type(self), error) from None

    def to_dict(self) -> dict[str, Any]:
        """The values by name; tuples stay tuples. Fields of ``ADDED_LATER`` are left out at their default."""
        later = {name: self.__class__.model_fields[name].default for name in self.ADDED_LATER}
        return {name: value for name, value in self.model_dump().items() if name not in later or value != later[name]}

    def replace(self: S, **changes: Any) -> S:
        """The same settings but for these, validated again."""
        return type(self)(**{**self.to_dict(), **changes})

    @property
    def follows_epochs(self) -> bool:
        """Whether an epoch's steps depend on how many epochs there are; so that training cannot just go on."""
        return False

    def shortened(self: S, progress: float) -> S:
        """The same settings for a training that ends earlier, at this progress from 0, the first epoch, to 1, the last.

        What follows the epochs ends where it was then.
        """
        return self

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(cls.model_fields)

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each field is, as the class's docstring says; and the words that it can be, if it is one of a few."""
        text = (inspect.getdoc(cls) or "").partition("Args:\n")[2].partition("\n\n")[0]
        said = {name: " ".join(words.split()) for name, words in DESCRIBED.findall(text)}
        found = {}
        for name, field in cls.model_fields.items():
            means, words = said.get(name, "").replace("`", "").rstrip("."), _words(field.annotation)
            one_of = "" if all(word in means for word in words) else f"one of {', '.join(words)}"
            found[name] = "; ".join(filter(None, (means, one_of)))
        return found

    @classmethod
    def check_names(cls, chosen: Iterable[str], owner: str = "", also: Iterable[str] = ()) -> None:
        """Each is the name of a field, or one of these others.

        Raises:
            SettingError: for the first that is not, with the nearest name that is.
        """
        known = {*cls.names(), *also}
        for name in chosen:
            if name not in known:
                has = ", ".join(sorted(known))
                who = f"{owner} has" if owner else "there is"
                raise SettingError(f"{who} no setting {name!r:.100}; known are {has}{did_you_mean(name, known)}")


def _as_setting_error(settings: type[Settings], error: ValidationError) -> SettingError:
    """The first thing that is wrong, in one sentence."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SettingError):
        return cause
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        try:
            settings.check_names([name])
        except SettingError as unknown:
            return unknown
    given = first["input"]
    if first["type"] in ("too_short", "too_long") or (first["type"] == "missing" and len(first["loc"]) > 1):
        return SettingError(f"{name} is a list of another length, not {given!r:.100}")
    field, near = settings.model_fields[name], did_you_mean(str(given), _words(settings.model_fields[name].annotation))
    if limit := first.get("ctx", {}).keys() & LIMITS:  # a number out of range
        (bound,) = limit
        each = "each of " if len(first["loc"]) > 1 and isinstance(first["loc"][1], int) else ""
        wanted = _limits(field) or f"{LIMITS[bound]} {first['ctx'][bound]:,}"
        return SettingError(f"{each}{name} is {wanted}, not {given!r:.100}")
    return SettingError(f"{name} is {_in_words(field)}, not {given!r:.100}{near}")


def _words(hint: Any) -> list[str]:
    """Those that a setting of this type can be."""
    if isinstance(hint, str):
        return [hint]
    return [word for one in get_args(hint) for word in _words(one)]


def _in_words(field: FieldInfo) -> str:
    """What a field can be: its type and its bounds."""
    limits = _limits(field)
    return f"{_kind(field.annotation)}, {limits}" if limits else _kind(field.annotation)


def _limits(field: FieldInfo) -> str:
    bounds = [one for item in field.metadata for one in getattr(item, "metadata", None) or [item]]
    named = {type(one).__name__.lower(): one for one in bounds if isinstance(one, Ge | Gt | Lt | Le)}  # the last counts
    return " and ".join(f"{LIMITS[name]} {getattr(one, name):,}" for name, one in named.items())


def _kind(hint: Any) -> str:
    args = get_args(hint)
    if hint in (int, float, bool, str):
        return {int: "a whole number", float: "a finite number", bool: "true or false", str: "a word"}[hint]
    if args and all(isinstance(word, str) for word in args):
        return "one of " + ", ".join(args)
    if getattr(hint, "__origin__", None) is tuple and _leaves(args) <= {str, ...}:
        return "a list of words"
    if getattr(hint, "__origin__", None) is tuple:
        return "a list such as [0.8, 0.6]" if float in _leaves(args) else "a list such as [1, 2]"
    if hasattr(hint, "__metadata__"):  # Annotated
        return _kind(hint.__origin__)
    return " or ".join(dict.fromkeys("null" if one is type(None) else _kind(one) for one in args))


def _leaves(hints: Iterable[Any]) -> set[Any]:
    return {leaf for hint in hints for leaf in (_leaves(get_args(hint)) if get_args(hint) else {hint})}
