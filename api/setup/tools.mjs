import { findProgram, lastLines, run } from "./programs.mjs";
import { say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

/** System programs used by worlds, with their Debian packages. */
const TOOLS = [
  { program: "nft", package: "nftables" },
  { program: "ip", package: "iproute2" },
  { program: "unshare", package: "util-linux" },
];

/** Pause after a failed attempt: the advice line is printed, and further starts must not wait for apt again. */
const RETRY_AFTER_MS = 60 * 60 * 1000;
/** `apt-get update` may be killed at any point. */
const UPDATE_LIMIT = /** @type {const} */ ({ timeoutMs: 3 * 60 * 1000, killSignal: "SIGKILL" });
/** SIGTERM for an install: SIGKILL would leave packages half configured, and every later install would fail. */
const INSTALL_LIMIT = /** @type {const} */ ({ timeoutMs: 10 * 60 * 1000, killSignal: "SIGTERM" });
const APT_OPTIONS = [
  "-o",
  "Acquire::http::Timeout=20",
  "-o",
  "Acquire::Retries=1",
  "-o",
  "DPkg::Lock::Timeout=60",
];

/** Step: tools installed by apt. Missing tools never stop a start: features report their own missing tools. */
export const tools = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent(stamp) {
    const missing = missingPackages();
    return (
      missing.length === 0 || findProgram("apt-get") === undefined || wasTried(stamp, missing) || !mayAsk()
    );
  },

  async make() {
    const prefix = await privilege();
    const missing = missingPackages();
    if (prefix !== undefined) await install(prefix, missing);
    updateStamp({ tools: { missing: missingPackages(), at: Date.now() } });
  },

  advice() {
    const missing = missingPackages();
    if (missing.length === 0) return undefined;
    const sudo = process.getuid?.() !== 0 && mayAsk() ? "sudo " : "";
    const who = mayAsk() ? "run" : "run as root";
    return `${missing.join(", ")} missing; ${who}: ${sudo}apt-get update && ${sudo}apt-get install -y ${missing.join(" ")}`;
  },
};

/**
 * @param {readonly string[]} prefix
 * @param {readonly string[]} missing
 */
async function install(prefix, missing) {
  say(`installing ${missing.join(", ")} with apt-get`);
  // Ignore a failed update: one broken source of many is enough, and the install reports real trouble.
  await aptGet(prefix, ["update"], UPDATE_LIMIT);
  const apt = await aptGet(prefix, ["install", "-y", "--no-install-recommends", ...missing], INSTALL_LIMIT);
  if (!apt.ok) say(`apt-get ended with ${apt.ending}: ${lastLines(apt.tail, 1).trim()}`);
}

/**
 * @param {readonly string[]} prefix
 * @param {readonly string[]} step
 * @param {typeof UPDATE_LIMIT | typeof INSTALL_LIMIT} limit
 */
function aptGet(prefix, step, limit) {
  // Set the variable with `env`, because sudo drops the caller's variables.
  const argv = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...APT_OPTIONS, ...step];
  return run(/** @type {[string, ...string[]]} */ (argv), limit);
}

/** @returns {Promise<string[] | undefined>} words before `apt-get`; undefined without the right to install */
async function privilege() {
  if (process.getuid?.() === 0) return [];
  const sudo = await run(["sudo", "-n", "true"], { timeoutMs: 5000 });
  return sudo.ok ? ["sudo", "-n"] : undefined;
}

function mayAsk() {
  return process.getuid?.() === 0 || findProgram("sudo") !== undefined;
}

function missingPackages() {
  return TOOLS.filter((tool) => findProgram(tool.program) === undefined).map((tool) => tool.package);
}

/**
 * @param {import("./stamp.mjs").Stamp} stamp
 * @param {readonly string[]} missing
 */
function wasTried({ tools: tried }, missing) {
  return (
    tried !== undefined && tried.missing.join() === missing.join() && Date.now() - tried.at < RETRY_AFTER_MS
  );
}
