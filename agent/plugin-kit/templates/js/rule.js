// @NAME@: a rule for latido.
import { write as log } from "latido:plugin/log@@WIT_VERSION@";

const SCHEMA = {
  type: "object",
  additionalProperties: false,
  properties: {
    silence_s: {
      type: "number",
      minimum: 1,
      default: 120,
      description: "how long a subject may be silent, in seconds",
    },
  },
};

const settings = { silence_s: 120 };

// What is thrown as `{ tag, val }` is an answer; anything else that is thrown ends the instance.
const invalid = (why) => ({ tag: "invalid-config", val: why });

export const lifecycle = {
  describe() {
    return {
      name: "@NAME@",
      version: "0.1.0",
      summary: "Finds what is silent for too long",
      settingsSchema: JSON.stringify(SCHEMA),
    };
  },

  configure(text) {
    for (const [key, value] of Object.entries(JSON.parse(text))) {
      if (!Object.hasOwn(settings, key)) throw invalid(`unknown setting \`${key}\`; this rule has \`silence_s\``);
      if (typeof value !== "number" || value < 1) throw invalid("`silence_s` is a number of seconds, at least 1");
      settings[key] = value;
    }
    log("debug", `silent is what says nothing for ${settings.silence_s} s`);
  },
};

export const rule = {
  // 64-bit numbers arrive as numbers here and as BigInt elsewhere: `Number` takes both. An option that is not there is
  // `null` or `undefined`: `== null` is true of both.
  evaluate(now, subjects) {
    const findings = [];
    for (const subject of subjects) {
      if (subject.silence == null) continue;
      const silence = Number(subject.silence);
      if (silence < settings.silence_s * 1000) continue;
      findings.push({
        key: "silent",
        subject: subject.name,
        severity: "warning",
        summary: `${subject.name} has been silent for ${Math.floor(silence / 1000)} s`,
        attributes: [],
      });
    }
    return findings;
  },
};
