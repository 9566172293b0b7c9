// Makes a Node say that it runs on macOS, and writes down each reach for what only Linux has, into a file beside this one.
"use strict";
const fs = require("node:fs");
const children = require("node:child_process");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const { syncBuiltinESMExports } = require("node:module");

const { appendFileSync } = fs;
const KERNEL = /^\/(proc|sys)(\/|$)/;
const PROGRAMS =
  /(^|\/)(unshare|nsenter|nft|ip|setpriv|getent|flock|systemctl|apt-get|sudo|podman|docker|cc|gcc|substrate-init)$/;

/** @param {string} what */
function tell(what) {
  const stack = (new Error().stack ?? "").split("\n").slice(3, 8).join("\n");
  appendFileSync(path.join(__dirname, "reaches"), `${what} by '${process.argv.slice(1).join(" ")}'\n${stack}\n`);
}

/**
 * @param {object} holder
 * @param {string} name
 * @param {(first: string) => boolean} isReach
 */
function watch(holder, name, isReach) {
  const functions = /** @type {Record<string, (...words: unknown[]) => unknown>} */ (holder);
  const own = functions[name];
  if (own === undefined) throw new Error(`Node has no '${name}' to watch`);
  functions[name] = new Proxy(own, {
    apply(target, self, words) {
      const first = firstOf(words[0]);
      if (isReach(first)) tell(`${name}('${first}')`);
      return Reflect.apply(target, self, words);
    },
  });
}

/** A path, a program, or the options of a socket. @param {unknown} word */
function firstOf(word) {
  const options = /** @type {{ path?: unknown }} */ (typeof word === "object" && word !== null ? word : {});
  return String(options.path ?? word);
}

/** @param {string} name */
const isKernels = (name) => KERNEL.test(name);
for (const holder of [fs, fs.promises])
  for (const [name, value] of Object.entries(holder))
    if (typeof value === "function" && /^[a-z]/.test(name)) watch(holder, name, isKernels);
for (const name of ["spawn", "spawnSync", "execFile", "execFileSync"])
  watch(children, name, (program) => PROGRAMS.test(program));
/** @param {string} name */
const isAbstract = (name) => name.startsWith("\0");
for (const name of ["connect", "createConnection"]) watch(net, name, isAbstract);
watch(net.Server.prototype, "listen", isAbstract);

Object.defineProperty(process, "platform", { value: "darwin" });
// Without /proc, Node does not know its own path.
process.execPath = path.join(__dirname, "bin/node");
os.platform = () => "darwin";
os.type = () => "Darwin";
os.release = () => "24.6.0";
syncBuiltinESMExports();
appendFileSync(path.join(__dirname, "started"), `${process.argv.slice(1).join(" ")}\n`);
