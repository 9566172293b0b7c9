/** Policies of 1,000 rules, edits of them, and how times are told. */
import { quantile, round3 } from "./numbers.mjs";

export const RULES = 1000;

/** @param {(index: number) => string} pattern @param {boolean} [examples] */
export function policyText(pattern, examples = false) {
  const rules = Array.from({ length: RULES }, (_, index) => {
    const example = pattern(index).replace(" *", "");
    const more = examples
      ? `, match: ["${example}"], not_match: ["echo ${index}"], reason: "Because ${index}"`
      : "";
    return examples ? `    - { pattern: "${pattern(index)}"${more} }\n` : `    - "${pattern(index)}"\n`;
  });
  return `id: default\nname: Bench\nmode: enforce\ncommands:\n  denied:\n${rules.join("")}  ask: ["a b"]\n`;
}

/** The text with one more rule changed at each call. @param {string} text */
export function edits(text) {
  let [turn, now] = [0, text];
  return () => {
    turn += 1;
    now = now.replaceAll(`program${(turn * 37) % RULES} sub`, `changed${turn} sub`);
    return now;
  };
}

/** @param {string} name @param {readonly number[]} times */
export function tell(name, times) {
  const [middle, high, most] = [quantile(times, 0.5), quantile(times, 0.99), Math.max(...times)].map(round3);
  process.stdout.write(
    `${name.padEnd(44)} ${String(times.length).padStart(6)} times: median ${middle} ms, p99 ${high} ms, longest ${most} ms\n`,
  );
}
