import { describe, expect, test } from "vitest";
import { redact } from "../../broker/spans/redact.ts";

/** Put together here, so that no scanner takes this file for a leak. */
const GITHUB = `ghp_${"a1B2".repeat(9)}`;
const AWS = `AKIA${"ABCD1234".repeat(2)}`;

const SECRETS: readonly (readonly [string, string, string])[] = [
  ["a token in a header", `curl -H 'Authorization: Bearer ${GITHUB}' x`, GITHUB],
  ["a password in a URL", "git clone https://me:hunter2hunter2@host/x", "hunter2hunter2"],
  ["a key as an argument", `aws configure set aws_access_key_id ${AWS}`, AWS],
  ["a variable", "API_KEY=abcdef123456 ./deploy", "abcdef123456"],
  ["an option with a space", "mysql --password s3cr3tword", "s3cr3tword"],
  ["an option with =", "tool --token=s3cr3tword", "s3cr3tword"],
];

describe("redact", () => {
  test.each(SECRETS)("takes out %s", (_name, text, secret) => {
    const { text: clean, redacted } = redact(text, "cmd");
    expect(clean).not.toContain(secret);
    expect(redacted.length).toBeGreaterThan(0);
  });

  test.each([
    "git log --oneline -1",
    "npm run check",
    "grep -rn password src",
    "echo token",
    "ls --sort=size",
  ])("leaves '%s' alone", (text) => {
    expect(redact(text, "cmd")).toEqual({ text, redacted: [] });
  });

  test("cuts what it does not read and says so", () => {
    const { text, redacted } = redact("x".repeat(70_000), "cmd");
    expect(text.length).toBeLessThan(66_000);
    expect(redacted).toEqual([{ kind: "cut", place: "cmd" }]);
  });
});
