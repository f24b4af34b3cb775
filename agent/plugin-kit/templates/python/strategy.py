"""@NAME@: a strategy for latido."""

# The component holds only modules that were imported while it was built: import here, never inside a function.
import json
import re
from typing import Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Description
from wit_world.exports.strategy import (
    Decision,
    Decision_Hold,
    Decision_Launch,
    Observation,
    Output,
    QuietKind,
    Situation,
)
from wit_world.imports.types import PluginError_InvalidConfig, Progress

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "attempts_max": {
            "type": "integer",
            "minimum": 1,
            "default": 5,
            "description": "how many attempts may end before a person is asked",
        }
    },
}

settings = {"attempts_max": 5}


class Lifecycle(exports.Lifecycle):
    def describe(self) -> Description:
        summary = "Launches a job again until it has died too often"
        return Description("@NAME@", "0.1.0", summary, json.dumps(SCHEMA))

    def configure(self, text: str) -> None:
        # An exception that is not `Err` ends the instance; its traceback is in the log.
        for key, value in json.loads(text).items():
            if key not in settings:
                raise Err(PluginError_InvalidConfig(f"unknown setting `{key}`; this strategy has `attempts_max`"))
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Err(PluginError_InvalidConfig("`attempts_max` is a whole number, at least 1"))
            settings[key] = value


class Strategy(exports.Strategy):
    def decide(self, situation: Situation) -> Decision:
        ended = sum(attempt.outcome is not None for attempt in situation.attempts)
        if ended >= settings["attempts_max"]:
            return Decision_Hold(f"{ended} attempts have ended")
        return Decision_Launch(situation.command)

    def observe(self, output: Output) -> Optional[Observation]:
        """A line such as `50%` says how far the work is."""
        found = [match for line in output.lines if (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)%\s*", line))]
        if not found or float(found[-1][1]) > 100:
            return None
        progress = Progress(fraction=float(found[-1][1]) / 100, done=None, total=None, step=None, checkpoint=None)
        return Observation(
            progress=progress,
            usage=None,
            notes=[],
            quiet=QuietKind.NONE,
            quiet_until=None,
            finished=None,
            attributes=[],
        )
