/** Words of programs are as public as the trace: no credential of theirs gets there. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ProgramRecorder } from "../../broker/programs/program-recorder.ts";
import type { Trace } from "../../broker/spans/trace.ts";
import { FAKE_SECRETS } from "../corpus/secrets.ts";
import { type Span, type TestTrace, ended, record, started, testTrace } from "../support/trace/traces.ts";

const COMMAND = record("spn_command");
const KNOWN = new Map([
  ["MY_TOKEN", "blue-parrot-42"],
  ["MY_PASSPHRASE", "correct horse battery staple"],
]);

let at: TestTrace;
let trace: Trace;

beforeEach(async () => {
  at = testTrace();
  trace = await at.open();
  await trace.start(COMMAND);
});

afterEach(async () => {
  await trace.end();
  at.remove();
});

async function recorded(argv: readonly string[], cut = false): Promise<Span> {
  const programs = new ProgramRecorder({ trace, command: COMMAND, known: KNOWN });
  programs.add([{ ...started(1, 0, argv, cut), path: `/work/${argv[0]}` }, ended(1, { code: 0 })], 0);
  await programs.finish({ closed: Promise.resolve() }, false);
  return JSON.parse(readFileSync(at.path, "utf8").trimEnd().split("\n").at(-1) ?? "") as Span;
}

describe("words of a program", () => {
  test.each([
    [["curl", "-H", "Authorization: Bearer s3cr3t-v4lue-0123456789"], "s3cr3t"],
    [["git", "clone", "https://ann:hunter2-hunter2@git.example/x.git"], "hunter2"],
    [["psql", "--password", "tr0ub4dor-and-3"], "tr0ub4dor"],
    [["curl", "-u", "x", "https://a.example/?k=blue-parrot-42"], "blue-parrot"],
    [["gpg", "--passphrase-fd=0", "correct horse battery staple"], "horse"],
    [["sh", "-c", "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY; true"], "wJalr"],
    [["tool-blue-parrot-42"], "blue-parrot"],
  ])("%j has none left, and says what was replaced", async (argv, secret) => {
    const span = await recorded(argv);
    expect(readFileSync(at.path, "latin1")).not.toContain(secret);
    expect(span.redacted.length).toBeGreaterThan(0);
    expect(span.cmd).toContain("[redacted:");
  });

  test("of a shell are looked at as those of a command are", async () => {
    for (const { command, secret } of FAKE_SECRETS) {
      const { cmd } = await recorded(["sh", "-c", command]);
      expect((JSON.parse(cmd ?? "") as string[]).at(-1), command).not.toContain(secret);
    }
  });

  test("that end in the middle of a secret keep nothing of it", async () => {
    const ends: readonly (readonly [string, string])[] = [
      ["x=blue-par", "blue-par"],
      ["say correct horse batt", "correct"],
      ["ghp_0123456789abc", "ghp_0123"],
      ["-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBK", "BADANB"],
    ];
    for (const [word, secret] of ends) {
      const span = await recorded(["sh", "-c", word], true);
      expect(span.cmd).not.toContain(secret);
      expect(span.program?.cut).toBe(true);
    }
    expect((await recorded(["sh", "-c", "echo one two"], true)).cmd).toBe('["sh","-c","echo one …"]');
  });
});
