// @NAME@: a strategy for latido.
const SCHEMA = {
  type: "object",
  additionalProperties: false,
  properties: {
    attempts_max: {
      type: "integer",
      minimum: 1,
      default: 5,
      description: "how many attempts may end before a person is asked",
    },
  },
};

const settings = { attempts_max: 5 };

// What is thrown as `{ tag, val }` is an answer; anything else that is thrown ends the instance.
const invalid = (why) => ({ tag: "invalid-config", val: why });

export const lifecycle = {
  describe() {
    return {
      name: "@NAME@",
      version: "0.1.0",
      summary: "Launches a job again until it has died too often",
      settingsSchema: JSON.stringify(SCHEMA),
    };
  },

  configure(text) {
    for (const [key, value] of Object.entries(JSON.parse(text))) {
      if (!Object.hasOwn(settings, key)) throw invalid(`unknown setting \`${key}\`; this strategy has \`attempts_max\``);
      if (!Number.isInteger(value) || value < 1) throw invalid("`attempts_max` is a whole number, at least 1");
      settings[key] = value;
    }
  },
};

export const strategy = {
  // An option that is not there is `null` or `undefined`: `!= null` is false of both.
  decide(situation) {
    const ended = situation.attempts.filter((attempt) => attempt.outcome != null).length;
    if (ended >= settings.attempts_max) return { tag: "hold", val: `${ended} attempts have ended` };
    return { tag: "launch", val: situation.command };
  },

  // A line such as `50%` says how far the work is.
  observe(output) {
    const found = output.lines.map((line) => /^\s*(\d+(?:\.\d+)?)%\s*$/.exec(line)).filter((match) => match != null);
    const percent = found.length === 0 ? NaN : Number(found[found.length - 1][1]);
    if (!(percent <= 100)) return null;
    return {
      progress: { fraction: percent / 100, done: null, total: null, step: null, checkpoint: null },
      usage: null,
      notes: [],
      quiet: "none",
      quietUntil: null,
      finished: null,
      attributes: [],
    };
  },
};
