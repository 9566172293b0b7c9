/**
 * node test/bench/trace.mjs [--spans N] [--keep FOLDER] [--json FILE]: a trace of N commands (a million unless it is
 * said otherwise, two lines each), over as many files as the default settings make of it. How long its index takes to be
 * made again; then list and show inside the broker's process (processor time), and the whole verify.
 * Needs about 4 GB of disk for a million. `--keep` leaves the trace there, and finds it there the next time.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { bundled } from "../corpus/bundle.mjs";
import { printLimits, quantile, round3 } from "./numbers.mjs";

const { values } = parseArgs({
  options: {
    spans: { type: "string", default: "1000000" },
    keep: { type: "string" },
    json: { type: "string" },
  },
});
const count = Number(values.spans);
const FILE_BYTES = 128 * 1024 * 1024;
const AGENTS = 5;
const SESSIONS = 200;
const LOOKS = 200;
const LIST_MS = 100;

const module = await bundled(join(import.meta.dirname, "trace-entry.ts"), import.meta.dirname);
/** @type {typeof import("./trace-entry.ts")} */
const { NO_CHANGES, Trace, TraceLog, traceLimits, verifyTrace } = await import(pathToFileURL(module).href);
const folder = values.keep ?? mkdtempSync(join(tmpdir(), "substrate-trace-bench-"));
const path = join(folder, "trace.jsonl");
const database = join(folder, "db");
try {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) await timed("written", fill);
  rmSync(database, { recursive: true, force: true });
  const result = await measure();
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
} finally {
  rmSync(module);
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}

async function measure() {
  const bytes = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  say(
    `${count} spans, ${Math.round(bytes / 1e6)} MB, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`,
  );
  const [started, first] = await timed("start without an index", open);
  await first.end();
  const [again, trace] = await timed("start with the index", open);
  const times = looks(trace);
  await trace.end();
  const [verified, result] = await timed("verify", () => verifyTrace(path, []));
  if (!result.ok) throw new Error(`The trace does not hold: ${result.wrong}`);
  const rows = Object.entries(times).map(([what, all]) => {
    say(`${what.padEnd(34)} median ${round3(quantile(all, 0.5))} ms, p99 ${round3(quantile(all, 0.99))} ms`);
    return { what: `${what}, p99`, value: quantile(all, 0.99), limit: LIST_MS, unit: " ms" };
  });
  process.exitCode = printLimits(rows) ? 0 : 1;
  return { count, bytes, started, again, verified, times };
}

function open() {
  return Trace.open(path, database, false, (what, error) => say(`${what}: ${String(error)}`), [], {
    limits: () => ({ ...traceLimits({}), maxBytes: Number.POSITIVE_INFINITY }),
  });
}

/** @param {import("./trace-entry.ts").Trace} trace */
function looks(trace) {
  const all = { agent: undefined, session: undefined, before: undefined, limit: 50 };
  let number = 0;
  const next = () => (number = (number + 7919) % count);
  /** @type {Record<string, () => void>} */
  const ways = {
    list: () => trace.list(all),
    "list, an old page": () => trace.list({ ...all, before: next() * 2 + 100 }),
    "list of an agent": () => trace.list({ ...all, agent: `agent-${next() % AGENTS}` }),
    "list of a session": () => trace.list({ ...all, session: `ses_${next() % SESSIONS}` }),
    "list of what was denied": () => trace.list({ ...all, verdict: "deny" }),
    "list of an agent's failures": () => trace.list({ ...all, agent: "agent-1", outcome: "failed" }),
    "list since a minute ago": () => trace.list({ ...all, since: Date.now() - 60_000 }),
    show: () => {
      const id = spanId(next());
      if (trace.find(id) === undefined) throw new Error(`${id} is not found`);
      trace.childrenOf(id);
    },
  };
  return Object.fromEntries(
    Object.entries(ways).map(([name, run]) => {
      run();
      // Of this process's processor time: a machine with other work to do says nothing about a list.
      const times = Array.from({ length: LOOKS }, () => {
        const begin = process.cpuUsage();
        run();
        const { user, system } = process.cpuUsage(begin);
        return (user + system) / 1000;
      });
      return [name, times];
    }),
  );
}

/** A command every second, as long ago as there are commands. */
function fill() {
  const log = new TraceLog(path);
  const begin = Date.now() - count * 1000;
  for (let number = 0; number < count; number += 1) {
    const line = spanOf(number, begin + number * 1000);
    log.append(line);
    log.append({
      ...line,
      event_type: "command_complete",
      outcome: number % 100 === 0 ? "failed" : "ended",
      exit: 0,
      duration_ms: 12.5,
      stdout_sha256: "0".repeat(64),
      stderr_sha256: "0".repeat(64),
    });
    if (log.size > FILE_BYTES) log.rotate();
  }
  log.close();
  return Promise.resolve();
}

/** @param {number} number */
function spanId(number) {
  return `spn_019a0000-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** As long as a real one. @param {number} number @param {number} at */
function spanOf(number, at) {
  const verdict = number % 50 === 0 ? "deny" : "allow";
  return {
    ts: new Date(at).toISOString(),
    event_type: "command_start",
    session_id: `ses_${number % SESSIONS}`,
    span_id: spanId(number),
    parent_span: number % 10 === 0 ? null : spanId(number - (number % 10)),
    component: "world",
    world_id: `wld_${number % SESSIONS}`,
    policy_id: "default",
    policy_hash: `sha256:${"0".repeat(64)}`,
    policy_commit: null,
    agent_id: `agent-${number % AGENTS}`,
    cwd: "/home/somebody/projects/something",
    cmd: `npm run build --workspace package-${number} && git status --short`,
    exit: null,
    signal: null,
    timed_out: false,
    outcome: null,
    duration_ms: null,
    scopes_used: [],
    fs_diff: NO_CHANGES,
    usage: null,
    isolation: {
      backend: "linux",
      user: "on",
      mount: "on",
      pid: "on",
      net: "on",
      ipc: "on",
      uts: "on",
      cgroup: "on",
      seccomp: "on",
      no_new_privs: "on",
      capabilities: "none",
      exec_gate: "off",
      overlay: "off",
    },
    decision: { verdict, mode: "enforce", rule: null },
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [],
    replayable: true,
    replay_context: {
      path: "/usr/local/bin:/usr/bin:/bin",
      env_hash: `sha256:${"1".repeat(64)}`,
      umask: "0022",
      locale: "C.UTF-8",
      cwd: "/home/somebody/projects/something",
      policy_id: "default",
      policy_commit: null,
      world_image: {
        init_hash: `sha256:${"2".repeat(64)}`,
        filter_hash: `sha256:${"3".repeat(64)}`,
        os_release: "Debian GNU/Linux 12 (bookworm)",
        kernel: "6.1.0",
      },
      project_commit: "4".repeat(40),
      dirty_hash: null,
    },
  };
}

/** @template T @param {string} what @param {() => Promise<T>} run @returns {Promise<[number, T]>} */
async function timed(what, run) {
  const begin = performance.now();
  const before = process.cpuUsage();
  const value = await run();
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(before);
  say(
    `${what}: ${(ms / 1000).toFixed(1)} s, of which ${((user + system) / 1e6).toFixed(1)} s of processor time`,
  );
  return [ms, value];
}

/** @param {string} line */
function say(line) {
  process.stdout.write(`${line}\n`);
}
