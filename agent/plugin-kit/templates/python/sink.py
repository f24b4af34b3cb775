"""@NAME@: a sink for latido."""

# The component holds only modules that were imported while it was built: import here, never inside a function.
import json

from componentize_py_types import Err
from entries import entries
from wit_world import exports
from wit_world.exports.lifecycle import Description
from wit_world.exports.sink import Acknowledgement
from wit_world.imports import files
from wit_world.imports.journal import Batch
from wit_world.imports.types import (
    PluginError_Denied,
    PluginError_InvalidConfig,
    PluginError_Retry,
    PluginError_RetryAfter,
)

FILE = "main"  # the granted file, by this plugin's name for it
FULL_RETRY_MS = 10_000  # somebody has to make room first


class Lifecycle(exports.Lifecycle):
    def describe(self) -> Description:
        schema = {"type": "object", "additionalProperties": False, "properties": {}}
        return Description("@NAME@", "0.1.0", "Appends each entry to a file, as one line", json.dumps(schema))

    def configure(self, text: str) -> None:
        # An exception that is not `Err` ends the instance; its traceback is in the log.
        for key in json.loads(text):
            raise Err(PluginError_InvalidConfig(f"unknown setting `{key}`; this sink has none"))


def shown(value) -> str:
    return f"{value:g}" if isinstance(value, float) and not value.is_integer() else str(int(value))


class Sink(exports.Sink):
    def write(self, batch: Batch) -> Acknowledgement:
        lines = []
        for entry in entries(batch):
            line = f"{entry.sequence} {entry.at} {entry.kind}"
            for name, value in entry.fields.items():
                line += f" {name}={value if isinstance(value, str) else shown(value)}"
            lines.append(line.replace("\n", " ").replace("\r", " ") + "\n")
        if lines:
            try:
                files.append(FILE, "".join(lines))
            except Err as error:
                raise Err(answer(error.value)) from None
        # Delivery is at least once: what is not acknowledged comes again.
        return Acknowledgement(batch.sequences[-1] if lines else 0, [])

    def flush(self) -> None:
        pass  # nothing is buffered


def answer(error):
    """What the agent is told when nothing was appended."""
    if isinstance(error, files.FileError_Denied):
        return PluginError_Denied(error.value)
    if isinstance(error, files.FileError_Full):
        return PluginError_RetryAfter(FULL_RETRY_MS)
    return PluginError_Retry(error.value)
