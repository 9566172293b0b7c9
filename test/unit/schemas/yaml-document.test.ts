import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LineCounter, parseDocument } from "yaml";
import { AlwaysFile } from "../../../broker/approvals/always-file.ts";
import { parsePolicy } from "../../../broker/policy/index.ts";
import { parseConfig } from "../../../broker/settings/config.ts";
import { yamlDocument } from "../../../schemas/yaml-document.ts";

type Read = { readonly problems: readonly { readonly text: string }[] } | { readonly ok: unknown };

const textsOf = (read: Read): readonly string[] =>
  "problems" in read ? read.problems.map(({ text }) => text) : [];

const READERS = [
  ["policy", (text: string) => textsOf(parsePolicy(`id: a\nname: A\nfs: { read: ${text} }\n`, "f.yaml"))],
  ["settings", (text: string) => textsOf(parseConfig(`projects: ${text}\n`, "f.yaml"))],
  ["approvals", (text: string) => approvalsOf(`approvals: ${text}\n`)],
] as const;

function approvalsOf(text: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "sb-yaml-"));
  try {
    const path = join(folder, "f.yaml");
    writeFileSync(path, text);
    return new AlwaysFile(path, () => {}).problems();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each(READERS)(
  "nesting that people cannot review is one problem with its place, in %s",
  (_what, problemsOf) => {
    for (const depth of [110, 5000, 100_000])
      for (const text of [
        "[".repeat(depth) + "]".repeat(depth),
        "[".repeat(depth),
        "{a: ".repeat(depth),
        `\n${"- ".repeat(depth)}`,
      ])
        expect(problemsOf(text)).toEqual([
          expect.stringMatching(/f\.yaml:[1-4]:\d+: Lists or mappings are nested too deeply/),
        ]);
  },
);

test.each(READERS)("nesting that can be read is judged by its schema, in %s", (_what, problemsOf) => {
  expect(problemsOf("[]")).toEqual([]);
  expect(problemsOf(`${"[".repeat(90)}x${"]".repeat(90)}`)[0]).not.toContain("nested");
});

test("a second document in a file is a problem with its place", () => {
  expect(textsOf(parsePolicy("id: a\nname: A\n---\nid: b\nname: B\n", "f.yaml"))).toEqual([
    expect.stringMatching(/^f\.yaml:[34]:1: The file may have only one YAML document/),
  ]);
});

test.each([
  "",
  "# a comment\n",
  "id: a\nname: 'x\n",
  "id: a\n\tname: b\n",
  "a: 1\na: 2\n",
  "%YAML 1.3\n---\nid: b\n",
])("the text %j is read as the package reads it", (text) => {
  const options = { uniqueKeys: true, strict: true, prettyErrors: false };
  const wanted = parseDocument(text, { ...options, lineCounter: new LineCounter() });
  const { document } = yamlDocument(text);
  expect(document.errors.map(({ code, pos }) => ({ code, pos }))).toEqual(
    wanted.errors.map(({ code, pos }) => ({ code, pos })),
  );
  expect(document.warnings).toEqual(wanted.warnings);
  if (wanted.errors.length === 0) expect(document.toJS()).toEqual(wanted.toJS());
});
