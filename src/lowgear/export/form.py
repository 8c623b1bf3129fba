"""The old name of `ExportRequest`, until `commands.export` says the new one."""

from lowgear.export.request import ExportRequest as Request

__all__ = ["Request"]
