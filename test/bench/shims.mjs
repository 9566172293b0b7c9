/**
 * What a shim costs: the same program through one and without, in turn, from a process that starts nothing else; and how much
 * memory the one that waits for the program's end holds.
 *
 * Usage: node test/bench/shims.mjs [--rounds N]. Exit 1 when a limit is broken.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startBroker } from "./bench-broker.mjs";
import { median, printLimits, summarise } from "./numbers.mjs";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "1000" } } });
const LAUNCHER = fileURLToPath(new URL("../../api/bin/substrate.mjs", import.meta.url));
const BARE = "/usr/bin/true";

/** Starts two programs in turn, N times, and prints what each took in microseconds: Node's own spawn is slower than both. */
const DRIVER = `
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
extern char **environ;
int main(int argc, char **argv) {
  for (int i = 0; i < 2 * atoi(argv[1]); i++) {
    char *words[] = {"true", NULL};
    struct timespec a, b;
    pid_t pid;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (posix_spawn(&pid, argv[2 + i % 2], NULL, NULL, words, environ) != 0) return 1;
    if (waitpid(pid, &status, 0) != pid || status != 0) return 2;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld\\n", (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000);
  }
}`;

const folder = mkdtempSync(join(tmpdir(), "substrate-bench-shims-"));
const broker = await startBroker();
try {
  process.exitCode = printLimits([...latency(), await memory()]) ? 0 : 1;
} finally {
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
}

function latency() {
  writeFileSync(join(folder, "driver.c"), DRIVER);
  execFileSync("cc", ["-O2", "-o", join(folder, "driver"), join(folder, "driver.c")]);
  const shim = install("true");
  const { stdout, status } = spawnSync(join(folder, "driver"), [values.rounds, BARE, shim], options());
  if (status !== 0) throw new Error(`The driver ended with ${status}`);
  const times = stdout
    .trim()
    .split("\n")
    .map((line) => Number(line) / 1000);
  const all = { bare: times.filter((_, at) => at % 2 === 0), shimmed: times.filter((_, at) => at % 2 === 1) };
  for (const [way, each] of Object.entries(all)) {
    const { median_ms, p99_ms } = summarise(each);
    process.stdout.write(
      `${way.padEnd(12)} median ${median_ms} ms, p99 ${p99_ms} ms, ${each.length} rounds\n`,
    );
  }
  return [
    {
      what: "a shimmed true − bare true, median",
      value: median(all.shimmed) - median(all.bare),
      limit: 1,
      unit: " ms",
    },
  ];
}

async function memory() {
  const child = spawn(install("sleep"), ["2"], { ...options(), stdio: "ignore" });
  await sleep(500);
  const watcher = readdirSync("/proc").find((pid) => /^\d+$/.test(pid) && isWatcher(pid));
  if (watcher === undefined) throw new Error("Nobody waits for the end of the program");
  const rss = Number(/^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${watcher}/smaps_rollup`, "utf8"))?.[1]);
  child.kill();
  return { what: "resident memory of the one that waits", value: rss / 1024, limit: 1, unit: " MB" };
}

/** @param {string} pid */
function isWatcher(pid) {
  try {
    return readlinkSync(`/proc/${pid}/exe`).endsWith("/substrate-shim");
  } catch {
    // Ended meanwhile.
    return false;
  }
}

/** @param {string} name */
function install(name) {
  const words = [LAUNCHER, "shim", "install", name];
  execFileSync(process.execPath, words, { env: { ...process.env, SUBSTRATE_HOME: broker.home } });
  return join(broker.home, "shims", name);
}

function options() {
  const env = { ...process.env, SUBSTRATE_HOME: broker.home };
  return { cwd: broker.project, env, encoding: /** @type {const} */ ("utf8") };
}
