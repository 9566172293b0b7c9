import { isIsolated, type Job } from "../model/job.ts";
import type { CommandNetwork } from "../network/command-network.ts";
import type { FailureTold, WorldLacks } from "../programs/world-lacks.ts";
import { hiddenReason, isClosed, isCoveredByOwnHome, reasonOf, type WriteRules } from "./refused-writes.ts";
import { MASKED, MAX_LINE, missingIn, writtenIn } from "../programs/said-paths.ts";
import type { Ran } from "../worlds/run.ts";
import { existsSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { deniedBy, isCovered, isWithin } from "../policy/files/path-denials.ts";
import { SCRATCH } from "../project/unmarked.ts";
import { fileLists } from "../policy/files/file-lists.ts";

type Known = {
  readonly lacks: WorldLacks;
  readonly writes: WriteRules;
  /** Whether another refusal already explains the failure. */
  readonly explained: boolean;
  /** Whether a refused namespace was reported, or the policy allows namespaces. */
  readonly namespacesTold: boolean;
  /** Names of the host's sockets that the world shares. */
  readonly sockets: readonly string[];
};

/** Explains failures and refused writes of a command or its programs, as far as no trace line explains them. */
export function whyFailed(
  job: Job,
  ran: Ran,
  { lacks, writes, explained, namespacesTold, sockets }: Known,
): readonly FailureTold[] {
  const { ending } = ran;
  const failed = ending.kind === "signalled" || (ending.kind === "exited" && ending.code !== 0);
  const command = job.request.cmd ?? job.argv.join(" ");
  const isolated = isIsolated(job);
  const words = { said: saidBy(job, ran), cwd: job.place.cwd, failed, isolated, explained, command };
  const paths = explainErrors(words, writes);
  // Also on the host root executes no file without an x; what Substrate refuses to start it tells itself.
  const isNotExecutable = ending.kind === "exited" && ending.code === 126;
  const lacking = lacks.told({
    argv: job.argv,
    failed,
    explained: explained || paths.length > 0 || isNotExecutable,
    namespacesTold,
    sockets,
    builtins: job.decision.builtins.map(({ fragment }) => fragment),
    said: () => words.said.toString("latin1"),
  });
  const unfound = notInOwnHome(job, ran, writes);
  return [...[...paths, ...unfound].map((message) => ({ program: null, message })), ...lacking];
}

/**
 * Returns the output in which errors are looked for: the beginning of standard error, or of the one pipe for both, and the end of
 * standard output, where the errors of `cmd 2>&1 | tail` are.
 */
export function saidBy({ request }: Job, { stdout, stderr }: Ran): Buffer {
  const out = stdout.bytes();
  const errors = request.outputs === "together" ? out : stderr.bytes();
  return Buffer.concat([errors.subarray(0, MAX_BYTES), Buffer.from("\n"), out.subarray(-MAX_BYTES_OUT)]);
}

/**
 * Whether the output names a port as one: `curl localhost:3000 | head` ends well. Programs that try a port and go on say nothing. A
 * number alone is none: "9 ms" is not about port 9.
 */
function isNamed(port: number, job: Job, ran: Ran): boolean {
  const isPort = new RegExp(
    `(?:(?<!\\.[a-z]{1,4})[:/=]|\\bports?\\W{1,4}|(?:\\blocalhost|127\\.0\\.0\\.1|::1)\\W{1,4})${port}\\b`,
    "i",
  );
  return isPort.test(saidBy(job, ran).toString("latin1"));
}

/**
 * Explains ports of localhost that refused a command that failed, or whose output names them. The words are the same whether or not
 * the host has a server there: else commands could learn the host's open ports.
 */
export function closedPortWords(job: Job, ran: Ran): readonly string[] {
  const { ending } = ran;
  const isolated = isIsolated(job);
  const failed = ending.kind === "signalled" || (ending.kind === "exited" && ending.code !== 0);
  const { closedPorts: refused = [] } = ending.kind === "exited" || ending.kind === "signalled" ? ending : {};
  const closedPorts = failed ? refused : refused.filter((port) => isNamed(port, job, ran));
  const [first] = closedPorts;
  if (first === undefined) return [];
  const ports = closedPorts.length === 1 ? `Port ${first}` : `Ports ${closedPorts.join(", ")}`;
  return [
    `${ports} of localhost refused the connection: nothing listens at that address in the world, whose localhost is its own. ${isolated ? "An isolated command has a world for itself, without the servers that other commands have kept" : 'What earlier commands left in the background ended with them unless they were kept ("background": "keep", --keep)'}. A server on this machine's own localhost is 'host.internal:${first}' to commands, where net.allowed has that entry ("substrate policy allow net host.internal:${first}" adds it)`,
  ];
}

/**
 * Explains allowed connections that failed, to a command that ended well: `curl https://name/ | head`. A program that tries a host of
 * its own and goes on is not told of it. A command that failed is told of all, in standard error.
 */
export function failedConnectionWords(
  job: Job,
  ran: Ran,
  network: CommandNetwork | undefined,
): readonly string[] {
  const { ending } = ran;
  if (network === undefined || network.failed().length === 0) return [];
  if (ending.kind !== "exited" || ending.code !== 0) return [];
  return network.failed(`${job.request.cmd ?? job.argv.join(" ")}\n${saidBy(job, ran).toString("latin1")}`);
}

/** Tells of processes that the command left in the background, which without a world would have gone on. */
export function leftWords({ ending }: Ran): readonly string[] {
  const count = ending.kind === "exited" ? (ending.killedAfter ?? 0) : 0;
  if (count === 0) return [];
  const were = count === 1 ? "1 process was" : `${count} processes were`;
  return [
    `${were} still running when the command ended, and ended with it: "background": "keep" (--keep) lets them go on`,
  ];
}

/** What `kill` of sh and bash and killall(1) say. By lines: a pattern over a long text takes the square of its length. */
function saysNoProcess(said: string): boolean {
  return said
    .split("\n")
    .some(
      (line) =>
        line.endsWith(": no process found") ||
        (/[:-] No such process$/.test(line.slice(-20)) && line.length <= MAX_LINE && /\bkill\b/.test(line)),
    );
}

/** Explains a full folder of the world's own, where the disk of the host has room. */
export function noRoomWords(job: Job, ran: Ran): readonly string[] {
  if (job.request.world === "disabled") return [];
  const said = saidBy(job, ran);
  // Nearly every command: on its path nothing is copied.
  if (!said.includes("No space left on device") && !said.includes("ENOSPC")) return [];
  const lines = said.toString("latin1").split("\n");
  const says = lines.filter(
    (line) => /No space left on device|\bENOSPC\b/.test(line) && !line.includes("watchers"),
  );
  if (says.length === 0) return [];
  const text = [job.request.cmd ?? job.argv.join(" "), ...says].join("\n");
  const full = SCRATCH.filter(
    (folder) =>
      !isWithin(job.place.project, folder) && new RegExp(`(?<![\\w.~}/-])${folder}(?![\\w.-])`).test(text),
  );
  if (full.length === 0) return [];
  const [is, its] = full.length === 1 ? ["is", "it"] : ["are", "them"];
  const emptied = isIsolated(job)
    ? ""
    : `, and ${is} not emptied between the commands of a session: "substrate world restart" empties ${its}`;
  return [
    `'${full.join("', '")}' of a world ${is} in memory and bounded, in bytes and in files (world.limits.disk), whatever room the disk has${emptied}. Put large files into the project`,
  ];
}

/** Explains a process that is not there to be ended: a server that a person or an earlier command has started. */
export function processWords(job: Job, ran: Ran): readonly string[] {
  const command = job.request.cmd ?? job.argv.join(" ");
  if (
    job.request.world === "disabled" ||
    // `kill %1`: a job of the shell's own, which dash does not know in a script.
    !/\bp?kill(?:all)?\b(?!\s+(?:-\w+\s+)?%)/.test(command) ||
    !saysNoProcess(saidBy(job, ran).toString("latin1"))
  )
    return [];
  const others = isIsolated(job)
    ? "and an isolated command none but its own"
    : 'and of earlier commands those that were kept ("background": "keep", --keep)';
  return [`A command sees the processes of its world alone: none of this machine's, ${others}`];
}

/** Explains a program that was not found, where PATH leads to the user's home. Says nothing about files there. */
function notInOwnHome({ argv: [program = ""] }: Job, { ending }: Ran, writes: WriteRules): readonly string[] {
  if (ending.kind !== "not_started" || ending.step !== "execve" || ending.errno !== "ENOENT") return [];
  const asked = program.includes("/") ? [program] : writes.searched.split(":");
  const covered = asked.filter((path) => isCoveredByOwnHome(path, writes));
  if (covered.length === 0) return [];
  const folders = `'${covered.join("', '")}'`;
  return [`'${program}' was not found. ${notShown(folders, covered.length > 1)}`];
}

/** `what`: paths in quotes. */
function notShown(what: string, areSeveral = false): string {
  const [is, it] = areSeveral ? ["are", "them"] : ["is", "it"];
  return `${what} ${is} in a home of the command's own: of yours it has only what fs.read and fs.write name there, and "substrate policy allow read PATH" shows it more of ${it}`;
}

/**
 * Explains paths in a command's error messages by the policies' lists. The kernel reports no failed `open` here: notifications
 * would cost time on each read, and would double the time of an isolated command that writes many files. So hidden names, and
 * writes refused to an isolated command, are found in what it printed: hidden names only if the command failed, since programs
 * probe many missing files; refused writes always. The text comes from the command, so the result is a notice for the reader and
 * never a trace line.
 */

/** Bounds: paths looked up in the lists (each lookup takes a fraction of a millisecond), and bytes read from the output. */
const MAX_PATHS = 32;
const MAX_BYTES = 64 * 1024;
const MAX_BYTES_OUT = 16 * 1024;

/** The kernel's answer to a rename onto a denied file, or of one: the file is a mount point. Other mount points need no words. */
const BUSY = /\b(?:Device or resource busy|EBUSY)\b/;
const NAMED = /['"`‘]([^'"`’\n]+)['"`’]|config file ([^:\n]+): Device/g;

type SaidWords = {
  /** By {@link saidBy}. */
  readonly said: Buffer;
  readonly cwd: string;
  readonly failed: boolean;
  /** Whether the command is isolated: its refused writes are reported in no other way. */
  readonly isolated: boolean;
  /** Whether another refusal already explains the failure. */
  readonly explained?: boolean;
  /** The caller's own words. */
  readonly command?: string;
};

/** Returns a sentence for each path, at most {@link MAX_PATHS}. */
export function explainErrors(words: SaidWords, rules: WriteRules): readonly string[] {
  const { said, cwd, failed, isolated, explained = false } = words;
  if (!failed && !isolated && !SAYS_MISSING.some((text) => said.includes(text))) return [];
  const told = new Map<string, string | undefined>();
  const reasons = new Set<string>();
  const lines = said.toString("utf8").split("\n");
  for (const [at, line] of lines.entries()) {
    if (told.size >= MAX_PATHS) break;
    if (line.length > MAX_LINE) continue;
    const written = isolated
      ? (writtenIn(lines, at, cwd) ?? busyIn(line, cwd, rules))
      : failed && !explained
        ? unreportedIn(lines, at, cwd, rules)
        : undefined;
    const path = written ?? missingIn(line, cwd);
    if (path === undefined || told.has(path)) continue;
    if (written === undefined) {
      const masked = MASKED.test(line) ? notMade(path, rules) : undefined;
      told.set(path, whyMissing(path, words, rules) ?? masked);
      continue;
    }
    // `chmod -R` names each file of a denied folder.
    const reason = isolated ? path : reasonOf(path, rules);
    told.set(path, reasons.has(reason) ? undefined : notWritten(path, rules));
    reasons.add(reason);
  }
  const paths = [...told.values()].filter((sentence) => sentence !== undefined);
  return failed ? [...paths, ...repositoryAbove(said, rules)] : paths;
}

/**
 * A plain command's writes of which no trace line tells: those that modes refuse this user on the host too, where the world's mount
 * has only given them another error; and of denied names the mode, owner and times, of which init is not told. What the policies open
 * may be read-only on the host itself.
 */
function unreportedIn(
  lines: readonly string[],
  at: number,
  cwd: string,
  rules: WriteRules,
): string | undefined {
  const path = writtenIn(lines, at, cwd);
  if (path === undefined) return undefined;
  return isDenied(path, rules) || (isOutside(path, rules) && isClosed(path, rules)) ? path : undefined;
}

function isDenied(path: string, rules: WriteRules): boolean {
  const lists = rules.policies.map(({ document }) => fileLists(document));
  return lists.some(
    ({ deny_write, sealed }) => deniedBy(path, [...deny_write, ...sealed], rules) !== undefined,
  );
}

function isOutside(path: string, rules: WriteRules): boolean {
  return rules.policies.some(({ document }) => !isCovered(path, fileLists(document).write, rules));
}

/** Of commands that end well too: `cat FILE | wc -l` and `cat FILE; ls` do. */
const SAYS_MISSING = ["No such file or directory", "Permission denied"] as const;

/** What a program of a command that ended well misses is news only where the caller's own words name it: programs look for many files. */
function whyMissing(path: string, words: SaidWords, rules: WriteRules): string | undefined {
  const isNews = words.failed || words.command?.includes(basename(path)) === true;
  return isNews ? (hiddenBy(path, rules) ?? onHostOnly(path, words, rules)) : undefined;
}

/** git at the edge of a mount. */
const AT_A_MOUNT = /^fatal: not a git repository \(or any parent up to mount point /m;

/**
 * Explains a repository above the project that git finds without a world: a subfolder with a `.substrate-profile` is a project,
 * and so a mount. Names only what the command could see for itself.
 */
function repositoryAbove(said: Buffer, rules: WriteRules): readonly string[] {
  if (!AT_A_MOUNT.test(said.toString("latin1"))) return [];
  if (SCRATCH.some((folder) => isWithin(rules.project, folder))) return [];
  const above = foldersAbove(rules.project).find((folder) => {
    const path = join(folder, ".git");
    return existsSync(path) && !isCoveredByOwnHome(path, rules) && hiddenReason(path, rules) === undefined;
  });
  if (above === undefined) return [];
  return [
    `git looked for no repository above '${rules.project}', which is a mount of its own in a world. With GIT_DISCOVERY_ACROSS_FILESYSTEM=1 it finds the one in '${above}', which commands of this project can read and not change`,
  ];
}

function foldersAbove(folder: string): readonly string[] {
  const above = dirname(folder);
  return above === folder ? [] : [above, ...foldersAbove(above)];
}

function notWritten(path: string, rules: WriteRules): string {
  return `'${path}' was not written: ${reasonOf(path, rules)}`;
}

/** The folder around it is there, so another reason than a missing name has refused the new one. */
function notMade(path: string, rules: WriteRules): string | undefined {
  return isOutside(path, rules) && existsSync(dirname(path)) && !existsSync(path)
    ? notWritten(path, rules)
    : undefined;
}

/** Returns the denied name among those of a line that tells of a busy file. */
function busyIn(line: string, cwd: string, rules: WriteRules): string | undefined {
  if (!BUSY.test(line)) return undefined;
  const paths = [...line.matchAll(NAMED)].map(([, quoted, ofGit]) => resolve(cwd, quoted ?? ofGit ?? ""));
  return paths.find((path) => isDenied(path, rules));
}

/** Explains a hidden name without revealing whether the file exists. */
function hiddenBy(path: string, rules: WriteRules): string | undefined {
  if (isCoveredByOwnHome(path, rules)) return notShown(`'${path}'`);
  const reason = hiddenReason(path, rules);
  return reason === undefined ? undefined : `'${path}' ${reason}`;
}

/** Whether the command has the path as a word, or as the beginning of one, absolute or from its folder. */
function namesIt(command: string, path: string, cwd: string): boolean {
  const fromHere = relative(cwd, path);
  return command.includes(path) || (fromHere !== "" && command.split(/[\s'"=:;&|<>()]+/).includes(fromHere));
}

/**
 * Explains a missing path of a folder that a world has for itself, where the caller's own words name it: an agent's file tools write
 * there on the host. Programs that look for files of their own there are no news.
 */
function onHostOnly(
  path: string,
  { command, cwd, isolated }: SaidWords,
  { project }: WriteRules,
): string | undefined {
  const own = SCRATCH.find((folder) => isWithin(path, folder) && !isWithin(path, project));
  if (own === undefined || command === undefined || !namesIt(command, path, cwd)) return undefined;
  const why = isolated
    ? `an isolated command has a '${own}' of its own, with nothing of the host's or of other commands`
    : `which has a '${own}' of its own: what lies there on the host does not reach commands, and what they write there does not reach the host. What an isolated command wrote there ended with it, as all of '${own}' ends with its world`;
  return `'${path}' is not in the world, ${why}. Put files that several need into the project`;
}
