import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COMMAND_RULES } from "../../../../broker/secrets/commands.ts";
import { redact, redactWords, secretsIn } from "../../../../broker/secrets/redact.ts";
import { FAKE_SECRETS } from "../../../corpus/secrets.ts";
import { TOOL_SECRETS } from "../../../corpus/tool-secrets.ts";

const INNOCENT = readFileSync(join(import.meta.dirname, "../../../corpus/innocent.txt"), "utf8")
  .trimEnd()
  .split("\n");

/** More of a secret than this in a row is a leak. */
const LONGEST_REST = 6;

function leaks(clean: string, secret: string): boolean {
  const text = clean.replaceAll(/\[redacted:[^\]]*\]/g, "");
  const part = Math.min(secret.length, LONGEST_REST);
  for (let at = 0; at + part <= secret.length; at += 1)
    if (text.includes(secret.slice(at, at + part))) return true;
  return false;
}

describe("redact", () => {
  test.each(FAKE_SECRETS)("takes out $kind", ({ command, secret }) => {
    const { text, redacted } = redact(command, "cmd");
    expect(leaks(text, secret), text).toBe(false);
    expect(redacted.length).toBeGreaterThan(0);
  });

  test.each(FAKE_SECRETS)("takes out $kind in the words of an argv", ({ command, secret }) => {
    const words = command.split(" ").map((word) => word.replaceAll(/^'|'$|^"|"$/g, ""));
    const { text } = redactWords(secret.includes(" ") ? [command] : words, "cmd");
    expect(leaks(text, secret), text).toBe(false);
  });

  test.each(INNOCENT)("leaves '%s' alone", (text) => {
    expect(redact(text, "cmd")).toEqual({ text, redacted: [] });
  });

  /** A rule that let these pass would let their like with a real secret pass too. */
  test.each(["git log --grep='secret: handle empty'", "gcloud secrets versions access latest --secret=db"])(
    "takes '%s' for one with a secret, which it is not",
    (text) => {
      expect(redact(text, "cmd").redacted).toHaveLength(1);
    },
  );

  test("keeps what stands around a secret, quotes too", () => {
    expect(redact(`export DB_PASSWORD="two words" && ls`, "cmd").text).toBe(
      `export DB_PASSWORD="[redacted:named-secret]" && ls`,
    );
  });

  test("knows an option also where a text begins with it", () => {
    expect(redact("--password kestrel99 x", "output").text).toBe("--password [redacted:named-secret] x");
  });

  test("cuts what it does not read and says so", () => {
    const { text, redacted } = redact("x".repeat(70_000), "cmd");
    expect(text.length).toBeLessThan(66_000);
    expect(redacted).toEqual([{ kind: "cut", place: "cmd" }]);
  });

  test("reads its longest text in a time that no repetition of it makes much longer", () => {
    const pieces = fc.constantFrom(
      ...[
        "=",
        "token=",
        "curl ",
        "-u a:",
        "x-",
        "://a:",
        "mysql -p",
        "-----BEGIN PRIVATE KEY-----",
        "AKIA",
        "eyJa.",
        "a",
        "_",
        "password ",
        "'",
        "\\",
        "machine a login b ",
        "docker login ",
      ],
    );
    fc.assert(
      fc.property(fc.array(pieces, { minLength: 1, maxLength: 4 }), (parts) => {
        const piece = parts.join("");
        const text = piece.repeat(Math.ceil(65_536 / piece.length)).slice(0, 65_536);
        const before = process.cpuUsage();
        redact(text, "cmd");
        const { user } = process.cpuUsage(before);
        // What grows with the square takes minutes; a machine with other work to do does not make seconds of it.
        expect(user / 1000, piece).toBeLessThan(3000);
      }),
      { numRuns: 60 },
    );
  }, 120_000);
});

describe("values of variables whose names say that they are secret", () => {
  const known = secretsIn({
    GITHUB_TOKEN: "blue-parrot-42",
    dbPassword: "kestrel99",
    PATH: "/usr/bin",
    TOKEN_FILE: "/run/token-file",
    SECRET: "abc",
  });

  test("are those with such a name and of some length", () => {
    expect([...known.keys()]).toEqual(["GITHUB_TOKEN", "dbPassword"]);
  });

  test("are taken out of a command wherever they stand, and nothing else is", () => {
    expect(redact("curl -H 'x: blue-parrot-42' http://h/kestrel99/usr/bin abc", "cmd", known)).toEqual({
      text: "curl -H 'x: [redacted:env.GITHUB_TOKEN]' http://h/[redacted:env.dbPassword]/usr/bin abc",
      redacted: [
        { kind: "env.GITHUB_TOKEN", place: "cmd" },
        { kind: "env.dbPassword", place: "cmd" },
      ],
    });
    expect(redactWords(["echo", "blue-parrot-42"], "cmd", known).text).toBe(
      '["echo","[redacted:env.GITHUB_TOKEN]"]',
    );
    expect(redact("echo blue-parrot-4", "cmd", known).redacted).toEqual([]);
    const nested = secretsIn({ A_TOKEN: "kestrel", B_TOKEN: "kestrel-of-the-north" });
    expect(redact("echo kestrel-of-the-north kestrel", "cmd", nested).text).toBe(
      "echo [redacted:env.B_TOKEN] [redacted:env.A_TOKEN]",
    );
  });

  test("are taken out each time they stand there", () => {
    const { text, redacted } = redact("a blue-parrot-42 b=blue-parrot-42 'blue-parrot-42'", "cmd", known);
    const gone = "[redacted:env.GITHUB_TOKEN]";
    expect(text).toBe(`a ${gone} b=${gone} '${gone}'`);
    expect(redacted).toEqual([{ kind: "env.GITHUB_TOKEN", place: "cmd" }]);
    const words = redactWords(["blue-parrot-42", "x", "blue-parrot-42blue-parrot-42"], "cmd", known).text;
    expect(JSON.parse(words)).toEqual([gone, "x", gone + gone]);
  });

  test("of which two overlap leave nothing of either, in any order of their names", () => {
    const [one, other] = ["kestrel-of-the-no", "the-north-wind"];
    for (const values of [
      { A_TOKEN: one, B_TOKEN: other },
      { B_TOKEN: other, A_TOKEN: one },
    ]) {
      const { text, redacted } = redact("echo kestrel-of-the-north-wind!", "cmd", secretsIn(values));
      expect(text).toBe("echo [redacted:env.A_TOKEN]!");
      expect(redacted.map(({ kind }) => kind)).toEqual(["env.A_TOKEN", "env.B_TOKEN"]);
    }
  });

  test("make a text no longer by what their names say: each replacement stands once", () => {
    const names = Array.from({ length: 12 }, (_, at) => String.fromCharCode(66 + at).repeat(6));
    const variables = names.map((name, at): [string, string] => [
      `${Array.from({ length: 9 }, () => name).join("_")}_PASSWORD`,
      names[at - 1] ?? "aaaaaa",
    ]);
    const { text, redacted } = redact("true aaaaaa", "cmd", secretsIn(Object.fromEntries(variables)));
    expect(text).toBe(`true [redacted:env.${variables[0]?.[0]}]`);
    expect(redacted).toHaveLength(1);
  });

  test("that stand nowhere but in a text made of them leave a text that is cut, and no long list", () => {
    const known = secretsIn({ PASSWORD: "aaaaaa", ...Object.fromEntries(many()) });
    const began = process.cpuUsage();
    const { text, redacted } = redact("a".repeat(10_000_000), "cmd", known);
    // Processor time, not the clock's: it took 18 s when each was replaced in what the last one left.
    expect(process.cpuUsage(began).user).toBeLessThan(3_000_000);
    expect(text).toMatch(/^… \[cut: 10000000 characters, sha256:[0-9a-f]{64}\]$/);
    expect(redacted).toEqual([{ kind: "cut", place: "cmd" }]);
    function many(): [string, string][] {
      return Array.from({ length: 4000 }, (_, at) => [`V${at}_PASSWORD`, `a${at}a`.padEnd(7, "a")]);
    }
  });

  test("are taken out before a long text is cut", () => {
    const { text } = redact(`${"x ".repeat(32_764)}blue-parrot-42`, "cmd", known);
    expect(text).not.toContain("blue-p");
  });
});

// Secrets that only the command around them tells, in commands of 80 real tools, and the same tools without any.

const INNOCENT_CALLS = readFileSync(join(import.meta.dirname, "../../../corpus/tool-innocent.txt"), "utf8")
  .trimEnd()
  .split("\n");

function leaksRest(clean: string, secret: string): boolean {
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
    expect(leaksRest(text, secret), text).toBe(false);
    expect(redacted.length).toBeGreaterThan(0);
  });

  test.each(TOOL_SECRETS.filter(({ command }) => !/["'].* .*["']|<<<|\|/.test(command)))(
    "is taken out of the words of $kind",
    ({ command, secret }) => {
      const words = command.split(" ").map((word) => word.replaceAll(/['"]/g, ""));
      expect(leaksRest(redactWords(words, "cmd").text, secret)).toBe(false);
    },
  );

  test.each(INNOCENT_CALLS)("is not seen in '%s'", (text) => {
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
