"""What can go wrong for a user: each error is one sentence that says what, where and what would be right."""


class TapnetError(Exception):
    """Base of every error that is the user's to mend; the command line prints it as one line."""

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
