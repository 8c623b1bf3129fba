"""The old place of `print_train`, until `commands.bench` names the new one."""

from lowgear.bench.table import print_train

__all__ = ["print_train"]
