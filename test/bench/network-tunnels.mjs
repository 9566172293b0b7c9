/** What others bring a namespace's traffic out with, each attached to a namespace of its own in the tests' internet. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ADDRESS, direct, PORT } from "./network-place.mjs";

const READY_MS = 5000;
/** pasta takes an address and a route from the interface with the default route; packets never go there. */
const INTERFACE = [
  ["ip", "tuntap", "add", "dev", "up0", "mode", "tap"],
  ["ip", "link", "set", "up0", "up"],
  ["ip", "addr", "add", "20.30.40.51/24", "dev", "up0"],
  ["ip", "route", "add", "default", "via", "20.30.40.1", "dev", "up0"],
];

/** Words of each that attach it to a process's namespaces. @type {Record<string, (pid: number) => string[]>} */
const TUNNELS = {
  pasta: (pid) => [
    ..."pasta --foreground --quiet --config-net --ipv4-only -t none -u none -T none -U none".split(" "),
    // Otherwise it becomes nobody, who may not join a namespace of root's.
    ...(process.getuid?.() === 0 ? ["--runas", "0:0"] : []),
    String(pid),
  ],
  slirp4netns: (pid) => ["slirp4netns", "--configure", "--mtu=65520", String(pid), "tap0"],
};

/**
 * Those that work here, by name: words that run a client behind it. Others are said.
 * @param {import("./network-place.mjs").Place} place
 */
export async function openTunnels(place) {
  /** @type {Record<string, readonly string[]>} */
  const tunnels = {};
  /** @type {(() => void)[]} */
  const undo = [];
  for (const words of INTERFACE) await place.internet.run(words);
  for (const [name, words] of Object.entries(TUNNELS)) {
    const holder = start([
      ...place.internet.enter,
      ..."unshare --user --map-root-user --net -- sleep infinity".split(" "),
    ]);
    undo.push(holder.kill);
    await until(() => readFileSync(`/proc/${holder.pid}/comm`, "utf8") === "sleep\n");
    const tunnel = start([...place.internet.enter, ...words(holder.pid)]);
    undo.push(tunnel.kill);
    const enter = `nsenter --target ${holder.pid} --user --net --preserve-credentials --`.split(" ");
    const trouble = await troubleOf(place, enter);
    if (trouble === undefined) tunnels[name] = enter;
    else
      process.stdout.write(
        `SKIP ${name} — ${tunnel.complaint() || trouble} (Debian: apt-get install passt slirp4netns)\n`,
      );
  }
  return { tunnels, close: () => undo.forEach((kill) => kill()) };
}

/** Why no client gets out; undefined: it does. @param {import("./network-place.mjs").Place} place @param {string[]} enter */
async function troubleOf(place, enter) {
  for (const end = Date.now() + READY_MS; ; await sleep(50)) {
    try {
      await direct(place, `download ${ADDRESS} ${PORT} 1`, enter);
      return undefined;
    } catch (error) {
      if (Date.now() > end) return error instanceof Error ? error.message : String(error);
    }
  }
}

/** @param {readonly string[]} argv */
function start([program = "", ...words]) {
  const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  child.stderr.on("data", (bytes) => {
    text = `${text}${bytes}`.slice(0, 500);
  });
  child.once("error", (error) => {
    text = error.message;
  });
  return {
    pid: child.pid ?? 0,
    complaint: () => text.trim().replaceAll("\n", "; "),
    kill: () => void child.kill("SIGKILL"),
  };
}

/** @param {() => boolean} holds */
async function until(holds) {
  for (const end = Date.now() + READY_MS; !holds(); await sleep(10))
    if (Date.now() > end) throw new Error("A namespace for a tunnel was not made in time");
}
