"""csv-python: a sink that appends each entry to a file, as a line of CSV."""

# The component holds only modules that were imported while it was built: import here, never inside a function.
import csv
import io
import json
from datetime import datetime, timezone

from componentize_py_types import Err
from entries import Entry, entries
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
PIECE = 256 << 10  # characters that are written at once

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "separator": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1,
            "default": ",",
            "description": "what stands between two columns",
        }
    },
}

settings = {"separator": ","}


class Lifecycle(exports.Lifecycle):
    def describe(self) -> Description:
        return Description("csv-python", "0.1.0", "Appends each entry to a file, as a line of CSV", json.dumps(SCHEMA))

    def configure(self, text: str) -> None:
        for key, value in json.loads(text).items():
            if key not in settings:
                raise Err(PluginError_InvalidConfig(f"unknown setting `{key}`; this sink has `separator`"))
            if not isinstance(value, str) or len(value) != 1 or value in '"\r\n':
                raise Err(PluginError_InvalidConfig("`separator` is one character, no quote and no line feed"))
            settings[key] = value


class Sink(exports.Sink):
    def write(self, batch: Batch) -> Acknowledgement:
        """Columns: journal, sequence, time, kind, subject, and all else as JSON. Journal and sequence name an entry for
        ever: by them a reader finds what came twice."""
        lines, size, durable, last = [], 0, 0, 0
        for entry in entries(batch):
            lines.append(line(batch.journal, entry))
            size += len(lines[-1])
            last = entry.sequence
            # A batch may have 4 MiB, and the interpreter lives in 64: it is written piece by piece.
            if size >= PIECE:
                try:
                    append(lines)
                except Err:
                    if durable == 0:
                        raise
                    return Acknowledgement(durable, [])  # the rest comes again
                lines, size, durable = [], 0, last
        if lines:
            try:
                append(lines)
                durable = last
            except Err:
                if durable == 0:
                    raise
        return Acknowledgement(durable, [])

    def flush(self) -> None:
        pass  # nothing is buffered


def line(journal: str, entry: Entry) -> str:
    subject = entry.fields.pop("subject", "")
    # A quoted line feed is right in CSV; here each entry has one line, so that `tail` and `grep` work.
    row = [journal, entry.sequence, moment(entry.at), entry.kind, subject, json.dumps(entry.fields)]
    written = io.StringIO()
    writer = csv.writer(written, delimiter=settings["separator"], lineterminator="\n")
    writer.writerow([str(cell).replace("\n", " ").replace("\r", " ") for cell in row])
    return written.getvalue()


def moment(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(at)  # beyond the calendar


def append(lines: list) -> None:
    try:
        files.append(FILE, "".join(lines))
    except Err as error:
        raise Err(answer(error.value)) from None


def answer(error):
    """What the agent is told when nothing was appended."""
    if isinstance(error, files.FileError_Denied):
        return PluginError_Denied(error.value)
    if isinstance(error, files.FileError_Full):
        return PluginError_RetryAfter(FULL_RETRY_MS)
    return PluginError_Retry(error.value)
