/**
 * A process that writes a trace as fast as it can until it is killed: `node … FOLDER WAY FIRST`. `log` rotates after
 * every third span, `trace` with its index and everything that the settings make it do. What it prints is acknowledged.
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { Trace } from "../../broker/spans/trace.ts";
import { TraceLog } from "../../broker/spans/trace-log.ts";
import { endOf, record } from "../support/trace/traces.ts";

const [folder = "", way = "", first = "0"] = process.argv.slice(2);
const path = join(folder, "trace.jsonl");
const SMALL = 20_000;

if (way === "log") writeLog();
else await writeTrace();

function writeLog(): void {
  const log = new TraceLog(path);
  for (let number = Number(first); ; number += 1) {
    log.append(line(number, false));
    acknowledge(number, "started");
    log.append(line(number, true));
    acknowledge(number, "ended");
    if (number % 20 === 0) log.rotate();
  }
}

async function writeTrace(): Promise<void> {
  const limits = { fileBytes: SMALL, maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 5 * SMALL };
  const trace = await Trace.open(path, join(folder, "db"), false, () => {}, [], { limits: () => limits });
  for (let number = Number(first); ; number += 1) {
    await trace.start(line(number, false));
    acknowledge(number, "started");
    if (number % 7 !== 0) {
      trace.close(line(number, true));
      acknowledge(number, "ended");
    }
    await turn();
  }
}

function line(number: number, ends: boolean): ReturnType<typeof record> {
  const ts = new Date().toISOString();
  return ends ? endOf(`spn_${number}`, { ts }) : record(`spn_${number}`, { ts });
}

function acknowledge(number: number, what: "started" | "ended"): void {
  writeSync(1, `${number} ${what}\n`);
}
