"""The one exception that is meant for the person at the keyboard."""


class LowgearError(Exception):
    """A bad value, with what was wrong and what to do, in one line.

    The command line prints it without a traceback and exits with code 2.
    """
