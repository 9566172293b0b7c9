/**
 * What a replay adds to its command: POST /v1/replay/:span_id beside POST /v1/execute of the same command, on one kept-alive
 * connection to a broker of its own, in an order that changes every round.
 *
 *   plain    a command that writes directly, in the warm world of its session
 *   isolated the same where the policy isolates it: most of what a replay costs is its world
 *   replay   its replay: a fresh world, an overlay, the comparison, the search for changed files
 *
 * Measured for `true`, for a command that writes ten files, and for `true` in a project of 20,000 files. The limit is that of the
 * design: 30 ms at the median. Usage: node test/bench/replay.mjs [--rounds N]
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startBroker } from "./bench-broker.mjs";
import { inTurn, median, printLimits, round3, summarise } from "./numbers.mjs";

const LIMIT_MS = 30;
const WARM_UP = 10;
const LARGE = 20_000;
const POLICY = `id: default
name: Bench
mode: enforce
fs: { write: ["$PROJECT/**"] }
commands: { isolated: ["env HELD=1 sh *"] }
`;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "100" } } });
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 10)
  throw new Error(`--rounds takes a whole number from 10, received '${values.rounds}'`);

const rows = [
  await measured("true", "true", () => {}),
  await measured("ten files", "for n in 0 1 2 3 4 5 6 7 8 9; do echo $n > made-$n; done", () => {}),
  await measured(`true beside ${LARGE} files`, "true", manyFiles),
];
if (!printLimits(rows)) process.exitCode = 1;

/**
 * @param {string} what
 * @param {string} cmd
 * @param {(project: string) => void} fill
 */
async function measured(what, cmd, fill) {
  const broker = await startBroker({ policies: { default: POLICY }, project: fill });
  try {
    const { span_id: span } = /** @type {{ span_id: string }} */ (
      /** @type {unknown} */ (await broker.ask({ agent_id: "bench", cmd }))
    );
    const ways = {
      plain: async () => void (await broker.ask({ agent_id: "bench", cmd })),
      isolated: async () =>
        void (await broker.ask({ agent_id: "bench", argv: ["env", "HELD=1", "sh", "-c", cmd] })),
      replay: () => replay(broker.home, span),
    };
    await inTurn(ways, WARM_UP);
    const times = await inTurn(ways, rounds);
    for (const [name, each] of Object.entries(times)) {
      const { median_ms, p99_ms } = summarise(each);
      process.stdout.write(`${what}: ${name} ${median_ms} ms (p99 ${p99_ms})\n`);
    }
    const value = round3(median(times["replay"]) - median(times["plain"]));
    return { what: `a replay adds, median: ${what}`, value, limit: LIMIT_MS, unit: " ms" };
  } finally {
    await broker.stop();
  }
}

/** @param {string} project */
function manyFiles(project) {
  for (let folder = 0; folder < LARGE / 100; folder += 1) {
    mkdirSync(join(project, `d${folder}`));
    for (let file = 0; file < 100; file += 1) writeFileSync(join(project, `d${folder}`, `f${file}`), "x");
  }
}

/** @param {string} home @param {string} span @returns {Promise<void>} rejects for any status but 200 */
function replay(home, span) {
  const body = "{}";
  const headers = { "content-type": "application/json", "content-length": body.length };
  const options = {
    socketPath: join(home, "sock/agent.sock"),
    path: `/v1/replay/${span}`,
    method: "POST",
    headers,
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(options, (response) => {
      /** @type {Buffer[]} */
      const parts = [];
      response.on("data", (chunk) => parts.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        if (response.statusCode === 200) resolve();
        else reject(new Error(`The broker answered ${response.statusCode}: ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
