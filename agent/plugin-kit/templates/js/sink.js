// @NAME@: a sink for latido.
import { append } from "latido:plugin/files@@WIT_VERSION@";

import { entries } from "./entries.js";

const FILE = "main"; // the granted file, by this plugin's name for it
const FULL_RETRY_MS = 10_000; // somebody has to make room first

export const lifecycle = {
  describe() {
    return {
      name: "@NAME@",
      version: "0.1.0",
      summary: "Appends each entry to a file, as one line",
      settingsSchema: JSON.stringify({ type: "object", additionalProperties: false, properties: {} }),
    };
  },

  // What is thrown as `{ tag, val }` is an answer; anything else that is thrown ends the instance.
  configure(text) {
    for (const key of Object.keys(JSON.parse(text))) {
      throw { tag: "invalid-config", val: `unknown setting \`${key}\`; this sink has none` };
    }
  },
};

// What the agent is told when nothing was appended.
const answer = (error) => {
  const { tag, val } = error?.payload ?? error;
  if (tag === "denied") return { tag: "denied", val };
  if (tag === "full") return { tag: "retry-after", val: FULL_RETRY_MS };
  if (tag === "failed") return { tag: "retry", val };
  return error;
};

export const sink = {
  write(batch) {
    let lines = "";
    let durable = 0;
    for (const entry of entries(batch)) {
      const says = Object.entries(entry.fields).map(([name, value]) => ` ${name}=${value}`);
      lines += `${entry.sequence} ${entry.at} ${entry.kind}${says.join("")}`.replace(/[\r\n]/g, " ") + "\n";
      durable = entry.sequence;
    }
    if (lines !== "") {
      try {
        append(FILE, lines);
      } catch (error) {
        throw answer(error);
      }
    }
    // Delivery is at least once: what is not acknowledged comes again.
    return { durable, refused: [] };
  },

  flush() {}, // nothing is buffered
};
