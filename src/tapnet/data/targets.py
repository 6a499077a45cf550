"""What a table's columns ask for: classes, several yes/no labels, or numbers, any of them with gaps."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from tapnet.errors import DataError, SettingError
from tapnet.files import counted, printable

Task = Literal["classification", "multilabel", "regression"]
MOST_CLASSES = 10  # of whole numbers; a column with more distinct ones is a number to predict
MINUS = "\u2212"  # as word processors write it before a number
SIGNED = re.compile(rf"[+{MINUS}-]?[.,]?\d[\d.,]*([eE][+{MINUS}-]?\d+)?", re.ASCII)
MISSING = {"", "nan", "na", "n/a", "#n/a", "null", "<na>"}  # in lower case
DASHES = {"-", "--", "–", "—", MINUS, "?"}  # gaps too, in a column of numbers
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
GROUPED = re.compile(r"[+-]?\d{1,3}((\.\d{3})+,\d+|(,\d{3})+\.\d+)", re.ASCII)  # 1.234,5 and 1,234.5
UNIT = r"(?![eE][+-]?\d)[^\W\d_].{0,15}|[%‰°].?"  # mg/L, °C; not the exponent of a number
WITH_UNIT = re.compile(rf"[+-]?\d+(?P<fraction>[.,]\d+)?([eE][+-]?\d+)?\s*(?P<unit>{UNIT})")
NUMBERS = 0.8  # a column with fractions and at least this share of numbers holds no classes
POINT_AMONG_COMMAS = "has a point, and most numbers of the column have a comma; numbers are written in one way"
LARGEST = float(np.finfo(np.float32).max)
YES_NO = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


class Targets(NamedTuple):
    """The targets of G graphs.

    Attributes:
        task: What is to be predicted.
        y: Of a classification ``[G]`` int64, the class of each graph or -1; else ``[G, T]`` float32 with NaN for gaps.
        classes: The value of each class; empty where the targets are numbers.
        note: What was found, in one line.
        names: ``[T]`` the columns.
        remarks: What is odd about the cells, one line each.
    """

    task: Task
    y: NDArray[Any]
    classes: tuple[Hashable, ...]
    note: str
    names: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def known(self) -> NDArray[np.bool_]:
        """``[G]`` whether a graph has a target at all."""
        return self.y >= 0 if self.task == "classification" else ~np.isnan(self.y).all(axis=1)


def detect_task(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]], task: Task | None = None, rows: Sequence[object] | None = None
) -> Targets:
    """Finds out what the columns of a table ask for.

    One column is a class if it holds text or at most 10 different whole numbers, and else a number to predict. Several
    columns are yes/no labels if they hold nothing but 0 and 1 (or true and false), and else numbers. Empty cells, None,
    and the words that spreadsheets write for them (``NaN``, ``NA``, ``null``) are gaps; in a column of numbers a dash
    and a question mark are, too.

    Args:
        columns: The cells of each target column, text or values.
        task: What the columns hold, where it is not what would be found.
        rows: What to call the rows in errors, such as ``"data.csv:7"``; by default ``row 0`` and so on.

    Returns:
        The task, the targets, the classes and a line that says so.

    Raises:
        DataError: A column holds nothing, something else than the task asks for, or text among numbers.
        SettingError: There is no such task.

    Example:
        >>> from tapnet.data.targets import detect_task
        >>> detect_task({"active": ["0", "1", "1", ""]}).task
        'classification'
        >>> detect_task({"solubility": [-0.77, -3.3, None]}).y.tolist()
        [[-0.7699999809265137], [-3.299999952316284], [nan]]
    """
    if task is not None and task not in get_args(Task):
        raise SettingError(f"task is one of {', '.join(get_args(Task))}, not {task!r}")
    if not columns:
        raise DataError("there is no target column")
    cells = {name: [_value(cell) for cell in column] for name, column in columns.items()}
    for name, column in cells.items():
        if all(cell is None for cell in column):
            raise DataError(f"the target column {printable(name)} is empty")
    remarks = [remark for name, column in cells.items() if (remark := _read_dashes(name, column))]
    table = _Table(cells, rows)
    if task == "classification" and len(cells) > 1:
        raise DataError(f"a class is one column, not {len(cells)}; several yes/no columns are the task multilabel")
    if task == "classification" or (task is None and len(cells) == 1 and table.holds_classes(next(iter(cells)))):
        found = table.classification()
        return found._replace(remarks=(*remarks, *remark_similar(found.classes), *table.remark_units()))
    numbers = np.column_stack([table.numbers(name, yes_no=len(cells) > 1 or task == "multilabel") for name in cells])
    is_yes_no = np.isin(numbers, (0.0, 1.0)) | np.isnan(numbers)
    if task == "multilabel" and not is_yes_no.all():
        row, column = np.argwhere(~is_yes_no)[0]
        raise DataError(f"{table.where(row, column)}: {numbers[row, column]:g} where 0, 1 or an empty cell belongs")
    chosen = task or ("multilabel" if is_yes_no.all() else "regression")
    note = _describe(chosen, tuple(cells), numbers)
    return Targets(chosen, numbers.astype(np.float32), (), note, tuple(cells), tuple(remarks))


def target_columns(y: Any) -> dict[str, Sequence[Any]]:
    """The target columns of a list, an array, a tensor, a mapping, or a Series or DataFrame of pandas."""
    if isinstance(y, Mapping) or hasattr(y, "columns"):
        return {str(key): list(y[key]) for key in (y if isinstance(y, Mapping) else y.columns)}
    values = y.tolist() if hasattr(y, "tolist") else list(y)
    if any(isinstance(row, list | tuple) for row in values):
        if len({len(row) if isinstance(row, list | tuple) else -1 for row in values}) > 1:
            raise DataError("y does not have the same number of targets for every graph")
        return {f"target {i + 1}": column for i, column in enumerate(zip(*values, strict=True))}
    return {str(getattr(y, "name", None) or "y"): values}


class _Table:
    """Target columns, and what their rows are called in errors."""

    def __init__(self, cells: Mapping[str, list[Any]], rows: Sequence[object] | None) -> None:
        self.cells, self.rows = cells, rows

    def where(self, row: int, column: int = 0) -> str:
        place = f"row {row}" if self.rows is None else self.rows[row]
        return f"{place}: {printable(list(self.cells)[column])}"

    def holds_classes(self, name: str) -> bool:
        """Whether a column has text or few whole numbers; a DataError for text among numbers."""
        cells = [cell for cell in self.cells[name] if cell is not None]
        numbers = [_number(cell) for cell in cells]
        distinct = {number for number in numbers if number is not None}
        has_fractions = not all(number.is_integer() for number in distinct)
        if None not in numbers:
            return len(distinct) <= MOST_CLASSES and not has_fractions
        commas = sum(_has_comma(cell) for cell in cells)
        written = len(numbers) - numbers.count(None) + commas
        most = (has_fractions or commas) and written >= NUMBERS * len(numbers)
        if most or (len(distinct) > MOST_CLASSES and 2 * numbers.count(None) < len(numbers)):
            self.numbers(name, yes_no=False)  # says where the text is
        return True

    def numbers(self, name: str, *, yes_no: bool) -> NDArray[np.float64]:
        """[G] a column as numbers, NaN for gaps."""
        column, found = self.cells[name], np.full(len(self.cells[name]), np.nan)
        for row, cell in enumerate(column):
            if cell is None:
                continue
            number = YES_NO.get(str(cell).lower()) if yes_no else None
            number = _number(cell) if number is None else number
            if number is None or abs(number) > LARGEST:
                row = row_at_fault({i: cell for i, cell in enumerate(column) if cell is not None}, row)
                cell, place = column[row], self.where(row, list(self.cells).index(name))
                if _number(cell) is not None and abs(float(cell)) <= LARGEST:
                    raise DataError(f"{place}: {printable(cell)[:40]!r} {POINT_AMONG_COMMAS}")
                why = f"; {rule}" if (rule := why_no_number(cell)) else ""
                raise DataError(f"{place}: {printable(cell)[:40]!r} where a number or an empty cell belongs{why}")
            found[row] = number
        return found

    def classification(self) -> Targets:
        ((name, column),) = self.cells.items()
        numbers = [_number(cell) for cell in column]
        if all(number is not None for number, cell in zip(numbers, column, strict=True) if cell is not None):
            for row, number in enumerate(numbers):
                if number is not None and not number.is_integer():
                    raise DataError(f"{self.where(row)}: {number:g} is no class: a class is text or a whole number")
            column = [None if number is None else int(number) for number in numbers]
        elif any(isinstance(cell, str) for cell in column):
            column = [cell if cell is None else str(cell) for cell in column]
        counts = Counter(cell for cell in column if cell is not None)
        classes = tuple(sorted(counts))
        position: dict[Any, int] = {value: i for i, value in enumerate(classes)} | {None: -1}
        y = np.asarray([position[cell] for cell in column], dtype=np.int64)
        shown = ", ".join(f"{printable(value)} ({counts[value]})" for value in classes[:MOST_CLASSES])
        more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
        count = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        note = f"classification by {printable(name)}, {count}: {shown}{more}"
        return Targets("classification", y, classes, note, (name,))

    def remark_units(self) -> list[str]:
        """A remark on classes that look like numbers with a unit: most of them, with fractions or in large number."""
        ((name, column),) = self.cells.items()
        known = [row for row, cell in enumerate(column) if cell is not None]
        found = {row: match for row in known if (match := WITH_UNIT.fullmatch(str(column[row])))}
        if not found or len(found) < NUMBERS * len(known):
            return []
        many = len({match[0] for match in found.values()}) > MOST_CLASSES
        if not (many or any(match["fraction"] for match in found.values())) or not have_few_units(column):
            return []
        first = min(found)
        place = f"row {first}" if self.rows is None else self.rows[first]
        shown = f"{printable(column[first])[:40]!r} in {place}"
        return [
            f"the classes of {printable(name)} look like numbers with a unit ({shown}); numbers to predict have none"
        ]


def why_no_number(cell: Any) -> str:
    """The rule that a cell breaks which looks like a number and is none; empty for numbers and for other text."""
    if isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell):
        return "numbers are written as 1234.5"
    if isinstance(cell, str) and GROUPED.fullmatch(cell):
        return "numbers are written as 1234.5, without marks between thousands"
    if isinstance(cell, str) and WITH_UNIT.fullmatch(cell):
        return "numbers are written without a unit"
    try:
        return "numbers are finite" if math.isinf(float(cell)) else ""
    except (TypeError, ValueError):
        return ""
    except OverflowError:  # a whole number of some hundred digits
        return "numbers are finite"


def have_few_units(cells: Iterable[Any]) -> bool:
    """Whether numbers with a unit share theirs, unlike names such as 1a, 1b and 2a; false where there are none."""
    found = {match[0]: match["unit"] for cell in cells if (match := WITH_UNIT.fullmatch(str(cell)))}
    return 0 < 3 * len(set(found.values())) <= len(found)


def row_at_fault(cells: Mapping[int, Any], first: int) -> int:
    """The row of the cell that keeps a column from being read as numbers.

    Args:
        cells: The cells that are not empty, by row.
        first: The first row without a number.

    Returns:
        Where most cells have decimal commas, the first that is neither such a number nor a whole one; else ``first``.
    """
    if 2 * sum(map(_has_comma, cells.values())) <= len(cells):
        return first
    others = {row: _number(cell) for row, cell in cells.items() if not _has_comma(cell)}
    odd = [row for row, number in others.items() if number is None]
    return next(iter(odd or [row for row, number in others.items() if not float(number or 0).is_integer()]), first)


def plain_minus(cell: str) -> str:
    """A cell with ASCII's minus where it is a number with that of Unicode."""
    return cell.replace(MINUS, "-") if MINUS in cell and SIGNED.fullmatch(cell.strip()) else cell


def is_plain_number(value: Any) -> bool:
    """Whether a value is a number by its type: neither text nor true or false."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_gap(cell: str) -> bool:
    """Whether a cell of a column of numbers says that there is none."""
    return cell.strip().lower() in MISSING or cell.strip() in DASHES


def _read_dashes(name: str, column: list[Any]) -> str:
    """Makes gaps of the dashes in a column that otherwise holds numbers, and says how many."""
    dashes = [row for row, cell in enumerate(column) if isinstance(cell, str) and cell in DASHES]
    others = [cell for cell in column if cell is not None and not (isinstance(cell, str) and cell in DASHES)]
    if not dashes or not others or any(_number(cell) is None for cell in others):
        return ""
    shown = ", ".join(sorted({column[row] for row in dashes}))
    for row in dashes:
        column[row] = None
    return f"{counted(len(dashes), 'cell')} of the column {printable(name)} read as empty: {shown}"


def remark_similar(classes: Sequence[Hashable], what: str = "classes") -> list[str]:
    """A remark on classes (or groups) that differ only in case or in spaces; none where all differ in more."""
    groups: dict[str, list[str]] = {}
    for value in classes:
        if isinstance(value, str):
            groups.setdefault(" ".join(value.lower().split()), []).append(value)
    alike = [", ".join(map(repr, group)) for group in groups.values() if len(group) > 1]
    if not alike:
        return []
    more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
    return [f"{what} that differ only in case or spaces: {printable('; '.join(alike[:3])):.200}{more}"]


def _describe(task: Task, names: tuple[str, ...], numbers: NDArray[np.float64]) -> str:
    shown = printable(", ".join(names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    gaps = f", {np.isnan(numbers).mean():.0%} of the cells empty" if np.isnan(numbers).any() else ""
    if task == "multilabel":
        return f"multilabel, {counted(len(names), 'yes/no column')} ({shown}){gaps}"
    ranges = f", {np.nanmin(numbers):.4g} to {np.nanmax(numbers):.4g}" if len(names) == 1 else ""
    return f"regression of {shown}{ranges}{gaps}"


def _value(cell: Any) -> Any:
    """A cell without the spaces around it, as a plain Python value; None for a gap."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, str):
        cell = plain_minus(cell.strip())
        return None if cell.lower() in MISSING else cell
    if cell is None or isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float):
        return None if math.isnan(cell) else cell
    return None if str(cell) in ("<NA>", "NaT") else str(cell)  # pandas' gaps


def _has_comma(cell: Any) -> bool:
    """Whether a cell is a number with a decimal comma, or with marks between its thousands."""
    return isinstance(cell, str) and bool(DECIMAL_COMMA.fullmatch(cell) or GROUPED.fullmatch(cell))


def _number(cell: Any) -> float | None:
    """A cell as a finite number; None where it is none."""
    if cell is None or isinstance(cell, bool):
        return None
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and "_" not in str(cell) else None
