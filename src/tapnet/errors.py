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
    """The end of a sentence about an unknown word: the known one that it begins or is most like, if there is one."""
    names, wanted = {name.lower(): name for name in known}, word[:100].lower()
    begun = [name for name in names if len(wanted) > 1 and name.startswith(wanted)]
    near = [min(begun, key=len)] if begun else get_close_matches(wanted, names, 1)
    return f"; did you mean {names[near[0]].removesuffix('?')}?" if near else ""
