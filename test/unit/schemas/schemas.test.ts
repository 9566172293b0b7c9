import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, parse as partsOf } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { FRAME, FRAME_HEADER_SIZE, FRAME_MAX_PAYLOAD, TAG } from "../../../schemas/generated/frames.ts";
import * as validators from "../../../schemas/generated/validators.js";
import type { Validator } from "../../../schemas/generated/validators.js";
import { describeErrors } from "../../../schemas/validation-errors.ts";
import { leastCpuMs } from "../../support/processes/cost.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const EXAMPLES = join(ROOT, "schemas/examples");

const VALIDATORS: Readonly<Record<string, Validator<unknown>>> = {
  "agent-message": validators.validateAgentMessage,
  "approval-decision-reply": validators.validateApprovalDecisionReply,
  "approval-decision-request": validators.validateApprovalDecisionRequest,
  "approval-preview-reply": validators.validateApprovalPreviewReply,
  approvals: validators.validateApprovalsDocument,
  "approvals-reply": validators.validateApprovalsReply,
  "broker-file": validators.validateBrokerFile,
  "budget-reply": validators.validateBudgetReply,
  "budgets-reply": validators.validateBudgetsReply,
  "changes-reply": validators.validateChangesReply,
  "changes-request": validators.validateChangesRequest,
  "check-files-request": validators.validateCheckFilesRequest,
  "check-reply": validators.validateCheckReply,
  config: validators.validateConfigDocument,
  "diff-reply": validators.validateDiffReply,
  "doctor-report": validators.validateDoctorReport,
  "empty-request": validators.validateEmptyRequest,
  "error-reply": validators.validateErrorReply,
  "files-reply": validators.validateFilesReply,
  "files-request": validators.validateFilesRequest,
  "event-reply": validators.validateEventReply,
  "event-request": validators.validateEventRequest,
  "execute-reply": validators.validateExecuteReply,
  "execute-text-reply": validators.validateExecuteTextReply,
  "execute-request": validators.validateExecuteRequest,
  "held-reply": validators.validateHeldReply,
  "health-reply": validators.validateHealthReply,
  policy: validators.validatePolicyDocument,
  "policy-case": validators.validatePolicyCaseDocument,
  "policy-reload-reply": validators.validatePolicyReloadReply,
  "policy-reply": validators.validatePolicyReply,
  "replay-reply": validators.validateReplayReply,
  "replay-request": validators.validateReplayRequest,
  span: validators.validateSpan,
  "stream-control": validators.validateStreamControl,
  "stream-options": validators.validateStreamOptions,
  "sessions-reply": validators.validateSessionsReply,
  "spans-reply": validators.validateSpansReply,
  "trace-reply": validators.validateTraceReply,
  "trace-tree-reply": validators.validateTraceTreeReply,
  "world-publish-reply": validators.validateWorldPublishReply,
  "world-publish-request": validators.validateWorldPublishRequest,
  "world-restart-reply": validators.validateWorldRestartReply,
  "world-restart-request": validators.validateWorldRestartRequest,
  "report-reply": validators.validateReportReply,
  "report-request": validators.validateReportRequest,
  "request-scopes-reply": validators.validateRequestScopesReply,
  "request-scopes-request": validators.validateRequestScopesRequest,
  "world-warm-reply": validators.validateWorldWarmReply,
  "world-warm-request": validators.validateWorldWarmRequest,
};

/** Documents by title. A bad one also states the place of its fault and a part of the sentence about it. */
type Examples = {
  readonly good: Readonly<Record<string, unknown>>;
  readonly bad: Readonly<Record<string, { path: string; says: string; document: unknown }>>;
};

test("every schema of a document has a file of examples, and every file of examples has a schema", () => {
  const schemas = readdirSync(join(ROOT, "schemas"))
    .filter((file) => file.endsWith(".schema.json"))
    .map((file) => file.replace(".schema.json", ""))
    .filter((name) => name !== "shared" && name !== "world-frames");
  const examples = readdirSync(EXAMPLES).map((file) => partsOf(file).name);
  expect(examples.sort()).toEqual(schemas.sort());
  expect(Object.keys(VALIDATORS).sort()).toEqual(schemas);
});

describe.each(Object.keys(VALIDATORS))("%s", (name) => {
  const { good, bad } = examplesOf(name);

  test("has good and bad examples", () => {
    expect(Object.keys(good)).not.toEqual([]);
    expect(Object.keys(bad)).not.toEqual([]);
  });

  test.each(Object.entries(good))("accepts %s", (_title, document) => {
    expect(problemsOf(name, document)).toEqual([]);
  });

  test.each(Object.entries(bad))("refuses %s and names the place", (_title, { path, says, document }) => {
    const [first] = problemsOf(name, document);
    expect(first).toMatchObject({ path });
    expect(says).not.toBe("");
    expect(first?.message).toContain(says);
  });
});

describe("the sentences about errors", () => {
  test("one wrong item of a list that takes two shapes gives one sentence", () => {
    const problems = problemsOf("policy", { id: "p", name: "P", commands: { denied: ["a", 7] } });
    expect(problems.map(({ message }) => message)).toEqual([
      "'commands.denied[1]' must be a string or an object; received 7",
    ]);
  });

  test("all mistakes of a policy come at once, misspelt fields before the missing ones they caused", () => {
    const problems = problemsOf("policy", { Id: "p", name: 3, mode: "observ" });
    expect(problems.map(({ path }) => path)).toEqual(["Id", "id", "name", "mode"]);
  });

  test("the pointer leads to the wrong value, and for a missing field to the object that lacks it", () => {
    expect(problemsOf("policy", { id: "p", name: "P", fs: { read: ["x"] } })[0]?.pointer).toEqual([
      "fs",
      "read",
      0,
    ]);
    expect(problemsOf("policy", { id: "p", name: "P", commands: { ask: [{}] } })[0]).toEqual({
      path: "commands.ask[0].pattern",
      message: "Field 'commands.ask[0].pattern' is required and missing",
      pointer: ["commands", "ask", 0],
    });
  });

  test("a name with slash and tilde keeps them", () => {
    expect(problemsOf("execute-request", { agent_id: "a", cmd: "x", env: { "a/b~c": 1 } })[0]).toMatchObject({
      path: 'env["a/b~c"]',
      pointer: ["env", "a/b~c"],
    });
  });

  test("a received value is shortened to 80 characters and cannot rule a terminal", () => {
    const [long] = problemsOf("policy", { id: "p", name: "P", mode: `\u001b[2J\u202e${"x".repeat(5000)}` });
    expect(long?.message).toContain('received "\\u001b[2J\\u202exxx');
    expect(long?.message.length).toBeLessThan(220);
    const unprintable = fc.string({ unit: "binary", maxLength: 200 });
    fc.assert(
      fc.property(unprintable, (name) => {
        const sentences = problemsOf("execute-request", { agent_id: "a", cmd: "x", [`!${name}`]: 1 });
        expect(sentences[0]?.message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e]/u);
      }),
    );
  });
});

describe("a validator in the hands of an attacker", () => {
  test("stops at the first of two million wrong items", () => {
    const argv = Array.from({ length: 2_000_000 }, () => 1);
    expect(validators.validateExecuteRequest({ agent_id: "a", argv })).toBe(false);
    expect(validators.validateExecuteRequest.errors?.length).toBeLessThan(5);
  });

  test("reads 10 MiB of base64 in well under a second and refuses a single wrong character in it", () => {
    const stdin_b64 = "A".repeat(10 * 1024 * 1024);
    const valid = (text: string): boolean =>
      validators.validateExecuteRequest({ agent_id: "a", cmd: "cat", stdin_b64: text });
    expect([valid(stdin_b64), valid(`${stdin_b64.slice(1)}!`)]).toEqual([true, false]);
    expect(leastCpuMs(() => valid(stdin_b64))).toBeLessThan(2000);
  });

  test("any JSON is accepted or refused with a sentence, never with an exception", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(VALIDATORS)), (document, name) => {
        if (VALIDATORS[name]?.(document) === false)
          expect(problemsOf(name, document).length).toBeGreaterThan(0);
      }),
    );
  });

  test("a path pattern takes time in proportion to the path", () => {
    const read = Array.from({ length: 500 }, () => `${"/a".repeat(2000)}*`);
    expect(leastCpuMs(() => problemsOf("policy", { id: "p", name: "P", fs: { read } }))).toBeLessThan(1000);
  });
});

test("the generated files are what the schemas say", { timeout: 60_000 }, async () => {
  const run = promisify(execFile);
  await expect(
    run(process.execPath, ["schemas/generate.mjs", "--check"], { cwd: ROOT }),
  ).resolves.toMatchObject({ stderr: "" });
});

test("TypeScript and C have the same frame numbers", () => {
  const header = readFileSync(join(ROOT, "world/native/lib/frames.h"), "utf8");
  const defined = new Map(
    [...header.matchAll(/^#define (\w+) (\d+)$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
  for (const [name, value] of Object.entries(FRAME)) expect(defined.get(`FRAME_${name}`)).toBe(value);
  for (const [name, value] of Object.entries(TAG)) expect(defined.get(`TAG_${name}`)).toBe(value);
  expect(defined.get("FRAME_MAX_PAYLOAD")).toBe(FRAME_MAX_PAYLOAD);
  expect(defined.get("FRAME_HEADER_SIZE")).toBe(FRAME_HEADER_SIZE);
});

function problemsOf(name: string, document: unknown): ReturnType<typeof describeErrors> {
  const validate = VALIDATORS[name];
  if (validate === undefined) throw new Error(`No validator for '${name}'`);
  return validate(document) ? [] : describeErrors(document, validate.errors ?? []);
}

/** Documents that people write as YAML have YAML examples, comments included. */
function examplesOf(name: string): Examples {
  const file = readdirSync(EXAMPLES).find((entry) => partsOf(entry).name === name);
  if (file === undefined) throw new Error(`No examples for '${name}'`);
  const text = readFileSync(join(EXAMPLES, file), "utf8");
  // Examples of spans share their parts by aliases, many times more than a document of a stranger may.
  return (
    file.endsWith(".json") ? JSON.parse(text) : parse(text, { merge: true, maxAliasCount: -1 })
  ) as Examples;
}
