"""@NAME@: a rule for latido."""

# The component holds only modules that were imported while it was built: import here, never inside a function.
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Description
from wit_world.exports.rule import Finding
from wit_world.imports import log
from wit_world.imports.types import PluginError_InvalidConfig, Severity, Subject

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "silence_s": {
            "type": "number",
            "minimum": 1,
            "default": 120,
            "description": "how long a subject may be silent, in seconds",
        }
    },
}

settings = {"silence_s": 120}


class Lifecycle(exports.Lifecycle):
    def describe(self) -> Description:
        return Description("@NAME@", "0.1.0", "Finds what is silent for too long", json.dumps(SCHEMA))

    def configure(self, text: str) -> None:
        # An exception that is not `Err` ends the instance; its traceback is in the log.
        for key, value in json.loads(text).items():
            if key not in settings:
                raise Err(PluginError_InvalidConfig(f"unknown setting `{key}`; this rule has `silence_s`"))
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
                raise Err(PluginError_InvalidConfig("`silence_s` is a number of seconds, at least 1"))
            settings[key] = value
        log.write(log.Level.DEBUG, f"silent is what says nothing for {settings['silence_s']} s")


class Rule(exports.Rule):
    def evaluate(self, now: int, subjects: list[Subject]) -> list[Finding]:
        limit = settings["silence_s"] * 1000
        return [
            Finding(
                key="silent",
                subject=subject.name,
                severity=Severity.WARNING,
                summary=f"{subject.name} has been silent for {subject.silence // 1000} s",
                attributes=[],
            )
            for subject in subjects
            if subject.silence is not None and subject.silence >= limit
        ]
