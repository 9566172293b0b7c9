/** Secrets that only the command around them tells, in commands of 80 real tools, and the same tools without any. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { redact, redactWords } from "../../broker/secrets/redact.ts";
import { COMMAND_RULES } from "../../broker/secrets/commands.ts";
import { TOOL_SECRETS } from "../corpus/tool-secrets.ts";

const INNOCENT = readFileSync(join(import.meta.dirname, "../corpus/tool-innocent.txt"), "utf8")
  .trimEnd()
  .split("\n");

/** More of a secret than this in a row is a leak. */
const LONGEST_REST = 6;

function leaks(clean: string, secret: string): boolean {
  const text = clean.replaceAll(/\[redacted:[^\]]*\]/g, "");
  for (let at = 0; at + LONGEST_REST <= secret.length; at += 1)
    if (text.includes(secret.slice(at, at + LONGEST_REST))) return true;
  return false;
}

describe("a secret in a command of a tool", () => {
  test("is tried in more than 144 commands", () => {
    expect(TOOL_SECRETS.length).toBeGreaterThan(144);
  });

  test.each(TOOL_SECRETS)("is taken out of $kind", ({ command, secret }) => {
    const { text, redacted } = redact(command, "cmd");
    expect(leaks(text, secret), text).toBe(false);
    expect(redacted.length).toBeGreaterThan(0);
  });

  test.each(TOOL_SECRETS.filter(({ command }) => !/["'].* .*["']|<<<|\|/.test(command)))(
    "is taken out of the words of $kind",
    ({ command, secret }) => {
      const words = command.split(" ").map((word) => word.replaceAll(/['"]/g, ""));
      expect(leaks(redactWords(words, "cmd").text, secret)).toBe(false);
    },
  );

  test.each(INNOCENT)("is not seen in '%s'", (text) => {
    expect(redact(text, "cmd")).toEqual({ text, redacted: [] });
  });

  test("leaves what stands around it", () => {
    expect(redact("vault login 'two words' && vault status", "cmd").text).toBe(
      "vault login '[redacted:program-password]' && vault status",
    );
    expect(
      redact("echo hunter2hunter2 | docker login -u me --password-stdin r.example.org", "cmd").text,
    ).toBe("echo [redacted:input] | docker login -u me --password-stdin r.example.org");
  });
});

test("the longest text of any program's words is read in a time that no repetition of it makes much longer", () => {
  const words = [...new Set(COMMAND_RULES.flatMap(({ words }) => words))];
  const pieces = fc.constantFrom(
    ...words.map((word) => `${word} `),
    ...[
      "config set ",
      "login ",
      "secret ",
      "-p ",
      "-u a ",
      "--from-literal a=",
      "a=",
      "| ",
      "<<< ",
      "--value ",
      "'",
      "-b a=",
      "put ",
    ],
  );
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 4 }), (parts) => {
      const piece = parts.join("");
      const text = piece.repeat(Math.ceil(65_536 / piece.length)).slice(0, 65_536);
      const before = process.cpuUsage();
      redact(text, "cmd");
      const { user } = process.cpuUsage(before);
      expect(user / 1000, piece).toBeLessThan(3000);
    }),
    { numRuns: 120 },
  );
}, 240_000);
