/**
 * What a world's network costs: names, the gateway, the helper.
 *
 *   download   one connection, through a world and direct, the same client, server and namespace; and behind pasta and
 *              slirp4netns, which bring a namespace's traffic out as a machine's would be
 *   upload     the same the other way: each byte is asked for before it goes
 *   set-up     from socket() to the first byte of an answer, the name known, and the name asked for each time
 *   many       connections open at once from one world, each answered
 *   budget     uploads at once against a budget of bytes: what the server has received
 *   worlds     a new world: with names, with a network that reaches nothing, and with none that could be given rules
 *   cold       POST /v1/execute in a new world, with names and with `net.allowed: []`
 *
 * All of it happens in the tests' internet, where the servers have documentation addresses: a gateway refuses loopback.
 *
 * Usage: node test/bench/network.mjs [--rounds N] [--megabytes N] [--connections N] [--worlds N] [--json FILE]. Exit 1 when a
 * limit is broken.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { resident } from "./memory.mjs";
import { ADDRESS, BUDGET, direct, governed, NAME, openPlace, PORT, SINK } from "./network-place.mjs";
import { openTunnels } from "./network-tunnels.mjs";
import { worldWays } from "./network-worlds.mjs";
import { collectInTurn, inTurn, median, printLimits, round3, summarise } from "./numbers.mjs";

const MB = 1e6;
const MANY = 2000;
const UPLOADS = 50;
/** Connections of one client before another has its turn. */
const IN_A_ROW = 50;
const WARM_UP = 5;
/** Between worlds, where a person or an agent would think. */
const PAUSE_MS = 200;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    megabytes: { type: "string", default: "1024" },
    connections: { type: "string", default: "500" },
    worlds: { type: "string", default: "100" },
    json: { type: "string" },
  },
});
const rounds = atLeast("rounds", values.rounds, 1);
const bytes = atLeast("megabytes", values.megabytes, 1) * MB;
const connections = atLeast("connections", values.connections, IN_A_ROW);
const worlds = atLeast("worlds", values.worlds, 5);
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);

const place = await openPlace();
try {
  say(
    `Node ${process.version}, measuring process ${Math.round(resident(process.pid) / MB)} MB resident; ${rounds} rounds of ${bytes / MB} MB, ${connections} connections, ${worlds} worlds, in turn`,
  );
  const rows = [
    ...(await transfers()),
    ...(await setUps()),
    ...(await many()),
    ...(await budget()),
    ...(await newWorlds()),
    ...(await coldWorlds()),
  ];
  process.exitCode = printLimits(rows) ? 0 : 1;
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
} finally {
  await place.close();
}

async function transfers() {
  const { tunnels, close } = await openTunnels(place);
  const there = (/** @type {string} */ what) => `${what} ${ADDRESS} ${PORT} ${bytes}`;
  const inside = (/** @type {string} */ what) => `${what} ${NAME} ${PORT} ${bytes}`;
  const behind = Object.entries(tunnels).map(([name, enter]) => [
    name,
    () => direct(place, there("download"), enter),
  ]);
  try {
    const down = await collectInTurn(
      {
        world: () => governed(place, inside("download")),
        direct: () => direct(place, there("download")),
        ...Object.fromEntries(behind),
      },
      rounds,
    );
    const up = await collectInTurn(
      { world: () => governed(place, inside("upload")), direct: () => direct(place, there("upload")) },
      rounds,
    );
    for (const [way, seconds] of Object.entries(down)) tellSpeed(`download, ${way}`, seconds);
    for (const [way, seconds] of Object.entries(up)) tellSpeed(`upload, ${way}`, seconds);
    say(`an upload through a world ÷ direct: ${round3(ratio(up, "direct"))}`);
    return Object.keys(down)
      .filter((way) => way !== "world")
      .map((way) => ({
        what: `download through a world ÷ ${way === "direct" ? "direct" : `behind ${way}`}`,
        value: ratio(down, way),
        least: way === "direct" ? 0.35 : 1,
      }));
  } finally {
    close();
  }
}

/** Speeds, so the other's time is above. @param {Record<string, number[]>} seconds @param {string} way */
function ratio(seconds, way) {
  return median(seconds[way]) / median(seconds["world"]);
}

/** @param {string} name @param {readonly number[]} seconds */
function tellSpeed(name, seconds) {
  say(`${name.padEnd(22)} ${Math.round(bytes / MB / median([...seconds]))} MB/s`);
}

async function setUps() {
  const words = (/** @type {string} */ host, /** @type {string} */ how) =>
    `connect ${host} ${PORT} ${IN_A_ROW} ${how}`;
  const ways = {
    "direct, name known": () => direct(place, words(NAME, "known")),
    "world, name known": () => governed(place, words(NAME, "known")),
    "direct, name asked": () => direct(place, words(NAME, "asked")),
    "world, name asked": () => governed(place, words(NAME, "asked")),
  };
  await collectInTurn(ways, 1);
  const times = await collectInTurn(ways, Math.ceil(connections / IN_A_ROW));
  tellTimes(times);
  return ["known", "asked"].map((how) => ({
    what: `connection set-up through a world − direct, name ${how}: median`,
    value: median(times[`world, name ${how}`]) - median(times[`direct, name ${how}`]),
    limit: 1.5,
    unit: " ms",
  }));
}

async function many() {
  const before = resident(place.broker.pid);
  const begin = performance.now();
  const [answered = Number.NaN] = await governed(place, `hold ${NAME} ${PORT} ${MANY}`);
  say(
    `${MANY} connections: all answered after ${Math.round(performance.now() - begin)} ms; the broker held ${Math.round(before / MB)} MB before, ${Math.round(resident(place.broker.pid) / MB)} MB after`,
  );
  return [{ what: "connections open at once from one world, answered", value: answered, least: MANY }];
}

async function budget() {
  const { result, seen } = await place.internet.during(() =>
    governed(place, `flood ${NAME} ${SINK} ${UPLOADS} ${BUDGET / 10}`, "budget"),
  );
  const received = seen.connections.reduce((sum, connection) => sum + connection.received, 0);
  say(
    `${UPLOADS} uploads of ${BUDGET / 10} bytes: ${seen.connections.length} reached the server, ${result[0]} arrived whole`,
  );
  return [
    { what: `bytes received of ${UPLOADS} uploads against ${BUDGET}`, value: received, limit: BUDGET },
    { what: "bytes received of them", value: received, least: 0.9 * BUDGET },
  ];
}

async function newWorlds() {
  const { ways, close } = await worldWays(place.folder);
  try {
    const paused = Object.fromEntries(Object.entries(ways).map(([name, run]) => [name, afterPause(run)]));
    await collectInTurn(paused, WARM_UP);
    const [times, rushed] = [await collectInTurn(paused, worlds), await inTurn(ways, worlds)];
    tellTimes(times);
    say("the same, one right after the other:");
    tellTimes(rushed);
    return [
      {
        what: "a new world with a network and names − without a network: median",
        value: median(times["names"]) - median(times["no network"]),
        limit: 15,
        unit: " ms",
      },
      {
        what: "the same, one right after the other: median",
        value: median(rushed["names"]) - median(rushed["no network"]),
        limit: 15,
        unit: " ms",
      },
    ];
  } finally {
    await close();
  }
}

/** What is kept ready has been made again by then. @param {() => Promise<void>} run */
function afterPause(run) {
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const begin = performance.now();
    await run();
    return [performance.now() - begin];
  };
}

async function coldWorlds() {
  const cold = (/** @type {string} */ agent) => async () => {
    const { exit } = await place.broker.ask({ cmd: "true" }, agent);
    if (exit !== 0) throw new Error(`'true' ended with ${exit}`);
  };
  const ways = { "world with names": cold("names"), "world with none": cold("none") };
  await inTurn(ways, WARM_UP);
  const times = await inTurn(ways, worlds);
  tellTimes(times);
  return [
    {
      what: "a world with names − one with none, cold: median",
      value: median(times["world with names"]) - median(times["world with none"]),
      limit: 15,
      unit: " ms",
    },
  ];
}

/** @param {Record<string, number[]>} times */
function tellTimes(times) {
  for (const [way, all] of Object.entries(times)) {
    const { median_ms, p99_ms } = summarise(all);
    say(
      `${way.padEnd(22)} ${String(all.length).padStart(5)} times: median ${median_ms} ms, p99 ${p99_ms} ms`,
    );
  }
}

/** @param {string} name @param {string} text @param {number} least */
function atLeast(name, text, least) {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least) return number;
  throw new Error(`--${name} takes a whole number from ${least}, received '${text}'`);
}
