/** What an edit of a policy costs the requests around it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startBroker } from "./bench-broker.mjs";
import { quantile } from "./numbers.mjs";
import { edits, policyText, tell } from "./policy-texts.mjs";

const PER_SECOND = 250;

/**
 * Questions at a steady rate, each new to the broker, in turn without edits and with ten edits a second. The same writes
 * are made without edits, to a file that nobody reads: what writing costs whoever writes is no wait for the broker.
 * @param {number} seconds
 */
export async function stream(seconds) {
  const text = policyText((index) => `program${index} sub --flag${index} *`);
  const broker = await startBroker({ policies: { default: text } });
  try {
    const edit = edits(text);
    const path = join(broker.home, "policies/default.yaml");
    /** @type {Record<"calm" | "edited", number[]>} */
    const waits = { calm: [], edited: [] };
    const aside = join(broker.project, "aside.yaml");
    const write = (/** @type {string} */ file) => () => writeFileSync(file, edit());
    await ask(broker, write(path));
    for (let second = 0; second < seconds; second += 1) {
      waits.calm.push(...(await ask(broker, write(aside))));
      waits.edited.push(...(await ask(broker, write(path))));
    }
    tell("stream, no edits", waits.calm);
    tell("stream, ten edits a second", waits.edited);
    const [calm, edited] = [quantile(waits.calm, 0.99), quantile(waits.edited, 0.99)];
    return [
      {
        what: "an edit's price: p99 of a wait, beyond that without",
        value: edited - calm,
        limit: 100,
        unit: " ms",
      },
    ];
  } finally {
    await broker.stop();
  }
}

/**
 * One second of questions.
 * @param {Awaited<ReturnType<typeof startBroker>>} broker
 * @param {() => void} edit
 */
async function ask(broker, edit) {
  /** @type {Promise<number>[]} */
  const waits = [];
  const begin = performance.now();
  while (waits.length < PER_SECOND) {
    const due = begin + (waits.length * 1000) / PER_SECOND;
    const early = due - performance.now();
    if (early > 0) {
      // A loop without sleep would take one of two processors from the broker.
      await new Promise((resolve) => (early > 2 ? setTimeout(resolve, early - 1) : setImmediate(resolve)));
      continue;
    }
    if (waits.length % (PER_SECOND / 10) === 7) edit();
    const start = performance.now();
    const question = { agent_id: "bench", cmd: `echo ${start}` };
    waits.push(broker.check(question).then(() => performance.now() - start));
  }
  return await Promise.all(waits);
}
