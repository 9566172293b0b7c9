import { posix } from "node:path";
import { membersOfCycles } from "./cycles.mjs";
import { readSource } from "./source.mjs";
import { filesOf } from "./tree.mjs";

/**
 * Who may import what, by the first rule whose `of` holds the file. A name is a file or a folder with all it holds;
 * a rule's own folder is always allowed. The folders are the table in `CONTRIBUTING.md`.
 * @type {readonly { of: string, may: readonly string[], packages?: (name: string) => boolean }[]}
 */
const RULES = [
  { of: "schemas", may: [], packages: isNotHttp },
  // The protocol of the world agent is HTTP and WebSocket; the rest of world knows neither.
  { of: "world/wire", may: ["schemas", "world/model"], packages: maySpeakWebSocket },
  { of: "world/agent", may: ["schemas", "world/model", "world/wire"], packages: maySpeakWebSocket },
  { of: "world", may: ["schemas"], packages: isNotHttp },
  { of: "broker", may: ["schemas", "world/backend.ts"], packages: isNotHttp },
  { of: "lima", may: ["schemas", "world/backend.ts", "world/wire"], packages: maySpeakWebSocket },
  { of: "shim", may: ["api/client/client.ts", "api/client"], packages: isNotExpress },
  { of: "policies", may: [], packages: isBuiltIn },
  { of: "systemd", may: [], packages: isBuiltIn },
  { of: "api/main.ts", may: ["api", "broker", "schemas", "shim", "world", "lima"] },
  // These run before anything is installed. esbuild is imported only after npm ci.
  { of: "api/setup", may: [], packages: (name) => isBuiltIn(name) || name === "esbuild" },
  { of: "api/bin", may: ["api/setup"], packages: isBuiltIn },
  { of: "api", may: ["broker", "schemas"] },
  { of: "test", may: ["api", "broker", "lima", "policies", "schemas", "shim", "world"] },
];

/** The files that may read the environment: the entry points, and what runs before or beside the product. */
const ENTRY_POINTS = ["api/main.ts", "api/client/index.ts", "api/setup", "api/bin", "test"];

/** Packages and modules that speak HTTP or the command line. */
const HTTP = ["express", "ws", "node:http", "node:https", "node:http2"];
const EXPRESS = ["express", "ws", "commander"];

/**
 * Imports that the table of folders does not allow, folders that import each other in a circle, and reads of the environment below
 * an entry point.
 * @param {string} root
 * @returns {string[]} one line per finding, none when all is well
 */
export function checkLayering(root) {
  const sources = filesOf(root, [".ts", ".mjs", ".js"])
    .filter((path) => !path.startsWith("schemas/generated/"))
    .map((path) => ({ path, source: readSource(root, path) }));
  const findings = sources.flatMap(({ path, source }) => findingsIn(path, source));
  return [...findings, ...cyclesIn(sources.filter(({ path }) => !isWithin(path, "test")))];
}

/**
 * Imports among folders that import each other in a circle: none of them can be read, tested or moved without the others. Imports
 * of types count: a type that two folders share belongs below both.
 * @param {readonly { path: string, source: import("./source.mjs").Source }[]} sources
 * @returns {string[]}
 */
function cyclesIn(sources) {
  const imports = sources.flatMap(({ path, source }) =>
    source.imports.flatMap(({ from, line }) => {
      const target = from?.startsWith(".") === true ? posix.join(posix.dirname(path), from) : path;
      const edge = { folder: posix.dirname(path), to: posix.dirname(target), where: `${path}:${line}` };
      return edge.folder === edge.to ? [] : [edge];
    }),
  );
  /** @type {Map<string, Set<string>>} */
  const graph = new Map();
  for (const { folder, to } of imports) graph.set(folder, (graph.get(folder) ?? new Set()).add(to));
  const inCycle = new Set(membersOfCycles(graph));
  return imports
    .filter(({ folder, to }) => inCycle.has(folder) && inCycle.has(to))
    .map(({ folder, to, where }) => `${where}: ${folder} imports ${to}, and ${to} leads back to ${folder}`);
}

/**
 * @param {string} path
 * @param {import("./source.mjs").Source} source
 * @returns {string[]}
 */
function findingsIn(path, { imports, environment }) {
  const rule = RULES.find(({ of }) => isWithin(path, of));
  if (rule === undefined) return [`${path}: no rule says what this folder may import`];
  const wrongImports = imports
    .filter(({ from }) => from !== undefined && !isAllowed(path, from, rule))
    .map(({ from, line }) => `${path}:${line}: ${rule.of} may not import '${from}'`);
  const wrongReads = ENTRY_POINTS.some((entry) => isWithin(path, entry))
    ? []
    : environment.map((line) => `${path}:${line}: only an entry point reads process.env`);
  return [...wrongImports, ...wrongReads];
}

/**
 * @param {string} path
 * @param {string | undefined} from
 * @param {(typeof RULES)[number]} rule
 */
function isAllowed(path, from = "", { of, may, packages = () => true }) {
  if (!from.startsWith(".")) return packages(from);
  const target = posix.join(posix.dirname(path), from);
  return [of, ...may].some((name) => isWithin(target, name));
}

/**
 * @param {string} path
 * @param {string} name a file or a folder
 */
function isWithin(path, name) {
  return path === name || path.startsWith(`${name}/`);
}

/** @param {string} name */
function isBuiltIn(name) {
  return name.startsWith("node:");
}

/** @param {string} name */
function isNotHttp(name) {
  return !HTTP.includes(name) && isNotExpress(name);
}

/** @param {string} name */
function isNotExpress(name) {
  return !EXPRESS.includes(name);
}

/** @param {string} name */
function maySpeakWebSocket(name) {
  return name === "ws" || isNotExpress(name);
}
