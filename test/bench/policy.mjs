/**
 * What reading and deciding costs in the process that all requests share.
 *
 *   shipped       a command of 200 characters, as read before, against the shipped policy for agents
 *   one, many     a command of 200 characters, 1,000 rules about one program or about 1,000: as read before (warm), and a
 *                 text never seen, read as well
 *   hostile       1 MB, and 10,000 levels of nesting
 *   cold          the first read of a process
 *   reload        1,000 rules, one of them changed, and all never seen: text at hand, files not counted
 *   stream        POST /v1/check, 250 a second, without and with edits of a policy of 1,000 rules: the waits
 *
 * Usage: node test/bench/policy.mjs [--rounds N] [--seconds N]. Exit 1 when a limit is broken.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { inTurn, printLimits, quantile } from "./numbers.mjs";
import { stream } from "./policy-stream.mjs";
import { edits, policyText, RULES, tell } from "./policy-texts.mjs";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5000" }, seconds: { type: "string", default: "10" } },
});
const rounds = Number(values.rounds);
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const COMMAND =
  'git -C src push --force-with-lease origin main && npm run build -- --target "release build" | tee out.log; grep -rn "a needle in it" ./lib ../other/*.ts > found.txt; program7 sub --flag7 value'.padEnd(
    200,
    "x",
  );

const folder = mkdtempSync(join(tmpdir(), "substrate-bench-policy-"));
try {
  const file = join(folder, "policy.mjs");
  await bundle(file);
  /** @type {typeof import("../../broker/policy/index.ts")} */
  const policy = await import(pathToFileURL(file).href);
  say(`Node ${process.version}, ${Math.round(process.memoryUsage().rss / 1e6)} MB resident, ${RULES} rules`);
  const rows = [
    ...(await decisions(policy)),
    ...(await hostile(policy)),
    ...cold(file),
    ...(await reloads(policy)),
  ];
  if (values.seconds !== "0") rows.push(...(await stream(Number(values.seconds))));
  process.exitCode = printLimits(rows) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} outfile */
async function bundle(outfile) {
  const banner =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  await build({
    entryPoints: [join(CHECKOUT, "broker/policy/index.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    outfile,
    banner: { js: banner },
    logLevel: "error",
  });
}

/** @param {typeof import("../../broker/policy/index.ts")} policy */
async function decisions(policy) {
  const { decide, readShell } = policy;
  const one = loaded(
    policy,
    policyText((index) => `git push origin-${index} --force`),
  );
  const many = loaded(
    policy,
    policyText((index) => `program${index} sub --flag${index} *`),
  );
  const globs = loaded(
    policy,
    policyText((index) => `git push *-${index} --force`),
  );
  const shipped = shippedPolicy(policy);
  const read = readShell(COMMAND);
  let fresh = 0;
  const unseen = () => readShell(`${COMMAND.slice(0, -6)}${(fresh += 1).toString().padStart(6, "0")}`);
  const times = await inTurn(
    {
      shipped: way(() => decide(shipped, read, WHERE)),
      one: way(() => decide(one, read, WHERE)),
      many: way(() => decide(many, read, WHERE)),
      globs: way(() => decide(globs, read, WHERE)),
      "one, unseen": way(() => decide(one, unseen(), WHERE)),
      "many, unseen": way(() => decide(many, unseen(), WHERE)),
    },
    rounds,
  );
  return Object.entries(times).flatMap(([name, all]) => {
    tell(name, all);
    return [
      ...(name === "shipped"
        ? [{ what: `decision, ${name}: median`, value: quantile(all, 0.5), limit: 0.1, unit: " ms" }]
        : []),
      { what: `decision, ${name}: p99`, value: quantile(all, 0.99), limit: 5, unit: " ms" },
    ];
  });
}

/** @param {typeof import("../../broker/policy/index.ts")} policy */
async function hostile(policy) {
  const { decide, readShell } = policy;
  const rules = loaded(
    policy,
    policyText((index) => `git push origin-${index} --force`),
  );
  const answer = (/** @type {string} */ text) => way(() => decide(rules, readShell(text), WHERE));
  const times = await inTurn(
    {
      "1 MB of separators": answer("a;".repeat(500_000)),
      "1 MB in one word": answer(`echo ${"x".repeat(1_000_000)}`),
      "10,000 nested": answer(`${"$(".repeat(10_000)}a${")".repeat(10_000)}`),
      "64 KiB, all separators": answer("a b;".repeat(16_000)),
      "64 KiB, 190 nested": answer(`${"$(".repeat(190)}${"git push x ".repeat(5900)}${")".repeat(190)}`),
    },
    20,
  );
  return Object.entries(times).map(([name, all]) => {
    tell(name, all);
    return { what: `${name}: longest`, value: Math.max(...all), limit: 100, unit: " ms" };
  });
}

/** @param {string} file */
function cold(file) {
  const script = `import(${JSON.stringify(file)}).then((policy) => { const begin = performance.now(); policy.readShell("ls -la | cat"); process.stdout.write(String(performance.now() - begin)); })`;
  const times = Array.from({ length: 9 }, () =>
    Number(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })),
  );
  tell("first read of a process", times);
  return [{ what: "first read of a process: median", value: quantile(times, 0.5), limit: 50, unit: " ms" }];
}

/** @param {typeof import("../../broker/policy/index.ts")} policy */
async function reloads(policy) {
  const { parsePolicy, PassedRules } = policy;
  const pattern = (/** @type {number} */ index) => `program${index} sub --flag${index} *`;
  const [plain, rich] = [edits(policyText(pattern)), edits(policyText(pattern, true))];
  const passed = new PassedRules();
  const load = (/** @type {string} */ text, known = new PassedRules()) => {
    if (!("ok" in parsePolicy(text, "x.yaml", known))) throw new Error("The policy must load");
  };
  load(plain(), passed);
  load(rich(), passed);
  const times = await inTurn(
    {
      "reload, one of 1,000 changed": way(() => load(plain(), passed)),
      "reload, one of 1,000 with examples changed": way(() => load(rich(), passed)),
    },
    200,
  );
  // Apart: what they leave to the collector would burden the others.
  const whole = await inTurn(
    {
      "load, 1,000 never seen": way(() => load(plain())),
      "load, 1,000 with examples never seen": way(() => load(rich())),
    },
    20,
  );
  for (const [name, all] of Object.entries({ ...times, ...whole })) tell(name, all);
  return Object.entries(times).map(([name, all]) => ({
    what: `${name}: median`,
    value: quantile(all, 0.5),
    limit: 100,
    unit: " ms",
  }));
}

/** @param {typeof import("../../broker/policy/index.ts")} policy */
function shippedPolicy(policy) {
  const folder = join(CHECKOUT, "policies");
  const result = policy.loadPolicy(join(folder, "agent.yaml"), folder);
  if ("ok" in result) return result.ok;
  throw new Error(result.problems.map((problem) => problem.text).join("\n"));
}

/** What `inTurn` runs, for work that waits for nothing. @param {() => unknown} work @returns {() => Promise<void>} */
function way(work) {
  return () => {
    work();
    return Promise.resolve();
  };
}

/** @param {typeof import("../../broker/policy/index.ts")} policy @param {string} text */
function loaded(policy, text) {
  const result = policy.parsePolicy(text, "bench.yaml");
  if ("ok" in result) return result.ok;
  throw new Error(result.problems.map((problem) => problem.text).join("\n"));
}
