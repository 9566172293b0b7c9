import { existsSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";
import { filesBelow, fingerprint } from "./fingerprint.mjs";
import { lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

const FILE = "schemas/generated/validators.js";
const MODULES = "schemas/generated/validators";
const CALLS = "schemas/generated/openapi.js";

/** Step: `schemas/generated/`: ajv's validators of requests, policies and settings, and the calls in OpenAPI. */
export const validators = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent(stamp) {
    return (
      [FILE, MODULES, CALLS].every((file) => existsSync(join(CHECKOUT, file))) &&
      stamp.validators === inputs()
    );
  },

  async make() {
    const made = inputs();
    const { ok, ending, tail } = await run([process.execPath, "schemas/generate.mjs", "--validators"]);
    if (!ok) throw new SetUpError(`Cannot make ${FILE} (${ending}):\n${lastLines(tail, 15)}`);
    updateStamp({ validators: made });
    say(`made ${FILE}`);
  },
};

function inputs() {
  const sources = filesBelow("schemas", [".schema.json", ".mjs"]);
  return fingerprint([...sources, join(CHECKOUT, "package-lock.json")]);
}
