import { expect, test } from "vitest";
import { exitMessage } from "../../../../api/http/exit-message.ts";
import type { Outcome } from "../../../../broker/model/outcome.ts";

type Ran = Extract<Outcome, { kind: "ran" }>;

const MESSAGE = "Denied a program: 'id -u' matches 'id *' in commands.denied";

function linesAfter(stderr: string, complaint?: string): readonly string[] {
  const reply = {
    decision: { verdict: "allow", mode: "enforce", rule: null },
    policy_id: "default",
    stdout_b64: "",
    stderr_b64: Buffer.from(`${stderr}${complaint ?? ""}`).toString("base64"),
    notices: [{ kind: "denied", message: MESSAGE, rule: null, program: "id", count: 1, span_id: "spn_1" }],
    hint: null,
  };
  const said = complaint === undefined ? {} : { complaint: Buffer.from(complaint) };
  return exitMessage({ kind: "ran", reply, ...said } as unknown as Ran).lines;
}

test("a command cannot silence a notice by printing its text", () => {
  expect(linesAfter("")).toEqual([MESSAGE]);
  expect(linesAfter(`${MESSAGE}\r\u001b[2K`)).toEqual([MESSAGE]);
  expect(linesAfter(`substrate: ${MESSAGE}\n`, "")).toEqual([MESSAGE]);
});

test("a notice that the broker has said at the end of standard error is not said again", () => {
  expect(linesAfter("", `substrate: ${MESSAGE}\n`)).toEqual([]);
  expect(linesAfter("bash: id: failed\n", `substrate: ${MESSAGE}\r\n`)).toEqual([]);
});
