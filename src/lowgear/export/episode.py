"""The old name of `record_episodes`, until `commands.tune` says the new one."""

from lowgear.export.source import record_episodes as record

__all__ = ["record"]
