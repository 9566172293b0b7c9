/**
 * What an agent's command costs with the hook: `sh -c true`, and the hook with its event and then `sh -c` with the rewritten command,
 * in turns, both fronts being native. Limit: hooked ÷ bare 3 (aim 2).
 *
 *   bare    `sh -c true`
 *   hook    the hook alone
 *   run     the rewritten command alone, by `sh -c`
 *   hooked  both, one after the other
 *   read    the hook for a file tool
 *
 * Usage: node test/bench/hook.mjs [--rounds N]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { inTurn, round3, summarise } from "./numbers.mjs";

const LAUNCHER = fileURLToPath(new URL("../../api/bin/substrate.mjs", import.meta.url));
const FRONT = fileURLToPath(new URL("../../.build/substrate", import.meta.url));
const LIMIT = 3;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "300" } } });
const folder = mkdtempSync(join(tmpdir(), "substrate-bench-"));
const [home, project] = [join(folder, "home"), join(folder, "project")];
const env = { ...process.env, SUBSTRATE_HOME: home };
spawnSync("git", ["init", "-q", project]);
spawnSync("mkdir", ["-m", "700", home]);
writeFileSync(join(home, "config.yaml"), "agents:\n  claude-code: {}\n");
const broker = spawn(process.execPath, [LAUNCHER, "broker", "start", "--foreground"], {
  env,
  stdio: ["ignore", "ignore", "inherit"],
  cwd: project,
});
let broken = false;
try {
  broken = await measure();
} finally {
  broker.kill("SIGTERM");
  await new Promise((resolve) => broker.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = broken ? 1 : 0;

async function measure() {
  const command = await untilReady();
  const ways = {
    bare: () => run("sh", ["-c", "true"]),
    hook: () => run(FRONT, ["hook", "claude-code"], eventOf("Bash", { command: "true" })),
    run: () => run("sh", ["-c", command]),
    hooked: async () => {
      await ways.hook();
      await ways.run();
    },
    read: () => run(FRONT, ["hook", "claude-code"], eventOf("Read", { file_path: join(project, "a") })),
  };
  await inTurn(ways, 30);
  const times = await inTurn(ways, Number(values.rounds));
  const summary = Object.fromEntries(Object.entries(times).map(([name, all]) => [name, summarise(all)]));
  const ratio = round3(
    (summary["hooked"]?.median_ms ?? Number.NaN) / (summary["bare"]?.median_ms ?? Number.NaN),
  );
  console.table(summary);
  console.log(`hooked ÷ bare ${ratio} (limit ${LIMIT})`);
  return !(ratio <= LIMIT);
}

/** @param {string} tool @param {object} input */
function eventOf(tool, input) {
  return JSON.stringify({ cwd: project, hook_event_name: "PreToolUse", tool_name: tool, tool_input: input });
}

/** The rewritten command, as soon as the broker answers. */
async function untilReady() {
  for (let tries = 0; ; tries += 1) {
    const input = eventOf("Bash", { command: "true" });
    const { status, stdout } = spawnSync(FRONT, ["hook", "claude-code"], { env, input, cwd: project });
    if (status === 0) return String(JSON.parse(stdout.toString()).hookSpecificOutput.updatedInput.command);
    if (tries > 100) throw new Error("The broker did not answer within 20 seconds");
    await sleep(200);
  }
}

/** @param {string} file @param {string[]} words @param {string} input @returns {Promise<void>} */
function run(file, words, input = "") {
  return new Promise((resolve, reject) => {
    const child = spawn(file, words, {
      env,
      cwd: project,
      stdio: [input === "" ? "ignore" : "pipe", "pipe", "inherit"],
    });
    child.stdout?.resume();
    child.stdin?.end(input);
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`${file} ended with ${code}`))));
  });
}
