// patience-js: a strategy for latido that waits longer after each attempt, and never repeats what cannot work.
import { write as log } from "latido:plugin/log@0.2.0";

const SCHEMA = {
  type: "object",
  additionalProperties: false,
  properties: {
    first_s: { type: "number", minimum: 1, default: 10, description: "how long the first pause is, in seconds" },
    most_s: { type: "number", minimum: 1, default: 3600, description: "how long a pause is at most, in seconds" },
    attempts_max: { type: "integer", minimum: 1, default: 8, description: "how many attempts may end before a person is asked" },
  },
};

const settings = { first_s: 10, most_s: 3600, attempts_max: 8 };

// What is thrown as `{ tag, val }` is an answer; anything else that is thrown ends the instance.
const invalid = (why) => ({ tag: "invalid-config", val: why });

export const lifecycle = {
  describe() {
    return {
      name: "patience-js",
      version: "0.1.0",
      summary: "Waits longer after each attempt, and never repeats what cannot work",
      settingsSchema: JSON.stringify(SCHEMA),
    };
  },

  configure(text) {
    for (const [key, value] of Object.entries(JSON.parse(text))) {
      if (!Object.hasOwn(settings, key)) throw invalid(`unknown setting \`${key}\`; there are ${Object.keys(settings).join(", ")}`);
      if (typeof value !== "number" || !(value >= 1)) throw invalid(`\`${key}\` is a number, at least 1`);
      settings[key] = value;
    }
  },
};

export const strategy = {
  // It is asked again after a pause, so it decides from the times in the situation and keeps nothing between calls.
  decide(situation) {
    const ended = situation.attempts.filter((attempt) => attempt.outcome != null);
    const last = ended[ended.length - 1];
    if (last == null) return { tag: "launch", val: situation.command };
    if (last.outcome.tag === "launch-failed") return { tag: "give-up", val: `it cannot be started: ${last.outcome.val}` };
    if (ended.length >= settings.attempts_max) return { tag: "hold", val: `${ended.length} attempts have ended` };
    const pause = Math.min(settings.first_s * 2 ** (ended.length - 1), settings.most_s) * 1000;
    // 64-bit numbers are numbers here and BigInt elsewhere: `Number` takes both.
    const waited = last.ended == null ? 0 : Number(situation.now) - Number(last.ended);
    if (waited < pause) {
      return { tag: "wait", val: { length: Math.round(pause - waited), why: `attempt ${last.number} has ended` } };
    }
    log("debug", `${situation.subject.name} goes on after ${waited} ms`);
    return { tag: "launch", val: situation.command };
  },

  // A line such as `3/12 indexed` says how far the work is.
  observe(output) {
    for (const line of output.lines.toReversed()) {
      const found = /^\s*(\d{1,15})\/(\d{1,15})\b\s*(.*)$/.exec(line);
      if (found == null) continue;
      const [done, total] = [Number(found[1]), Number(found[2])];
      if (total === 0 || done > total) continue;
      const step = found[3] === "" ? null : found[3];
      return {
        progress: { fraction: done / total, done, total, step, checkpoint: null },
        usage: null,
        notes: [],
        quiet: "none",
        quietUntil: null,
        finished: null,
        attributes: [],
      };
    }
    return null;
  },
};
