"""What can go wrong for a user: each error is one sentence that says what, where and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches


class TapnetError(Exception):
    """Base of every error that the user can fix; the command line prints it as one line."""

    exit_code = 1


class SettingError(TapnetError, ValueError):
    """A value that a setting cannot take."""

    exit_code = 2


class DataError(TapnetError, ValueError):
    """A data set whose files are wrong."""


class DatasetNotFoundError(TapnetError, LookupError):
    """A data set that is in none of the places looked at."""


class DownloadError(TapnetError, OSError):
    """A download that did not arrive, or did not arrive whole."""


class DataNote(UserWarning):
    """What there is to know of data that are used: what is left out, copies. Nothing is wrong with them."""


class DamagedFileWarning(UserWarning):
    """A stored file is not what was written; what it held is computed again."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the known one that is most like it, if any is."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(word[:100].lower(), names, 1)
    return f"; did you mean {names[near[0]]}?" if near else ""
