import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { homedir, userInfo } from "node:os";
import { dirname } from "node:path";
import { inject } from "vitest";
import { recordSkip } from "../run/skips.ts";

export type TestUser = {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
};

/** How a program ended and all it printed. */
export type Ended = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

export type RunAsOptions = {
  readonly cwd?: string;
  /** Added to a clean environment of HOME, USER, LOGNAME, PATH and LANG. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Words that whoever runs the suite puts before everything, before the change of user: `TestInternet.enter`. */
  readonly within?: readonly string[];
  /** Kills the program (SIGKILL). */
  readonly signal?: AbortSignal;
};

/**
 * The unprivileged user of this run: one the suite made when root runs it, else whoever runs it.
 * Null when none could be made; the run then says so by a SKIP line of its own.
 */
export function ordinaryUser(): TestUser | null {
  return inject("ordinaryUser");
}

/** Whoever runs the suite. */
export function currentUser(): TestUser {
  const { username, uid, gid } = userInfo();
  return { name: username, uid, gid, home: homedir() };
}

/** Runs a program as a user and waits for its end. Rejects only when it cannot be started. */
export function runAs(user: TestUser, argv: readonly string[], options: RunAsOptions = {}): Promise<Ended> {
  const child = spawnAs(user, argv, { ...options, stdio: ["pipe", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on("data", (bytes: Buffer) => stdout.push(bytes));
    child.stderr?.on("data", (bytes: Buffer) => stderr.push(bytes));
    // A program that ends without reading its input is no failure of ours.
    child.stdin?.on("error", () => undefined).end(options.stdin ?? "");
    child.once("error", reject);
    child.once("close", (code, signal) => {
      resolve({ code, signal, stdout: textOf(stdout), stderr: textOf(stderr) });
    });
  });
}

/** Starts a program as a user, in a clean environment and without any group of the caller's. */
export function spawnAs(
  user: TestUser,
  argv: readonly string[],
  { cwd = user.home, env = {}, within = [], signal, stdio }: RunAsOptions & Pick<SpawnOptions, "stdio"> = {},
): ChildProcess {
  const [program, ...args] = [...within, ...changeTo(user), ...argv];
  if (program === undefined || argv.length === 0) throw new Error("Cannot run an empty argv");
  return spawn(program, args, {
    cwd,
    env: { ...cleanEnvironment(user), ...env },
    killSignal: "SIGKILL",
    ...(stdio === undefined ? {} : { stdio }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** The words before a program that make it a user's, in a clean set of groups; none for whoever runs the suite. */
export function changeTo({ uid, gid }: TestUser): string[] {
  if (uid === process.getuid?.()) return [];
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--"];
}

function cleanEnvironment(user: TestUser): Record<string, string> {
  const folders = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
  return {
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    PATH: folders.join(":"),
    LANG: "C.UTF-8",
  };
}

function textOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString();
}

/** Who a test is repeated as. `kind` stands in the test's title. */
export type Actor = TestUser & { readonly kind: "root" | "an ordinary user" };

/**
 * Root, when root runs the suite, and the ordinary user, when there is one. What is missing has its SKIP line. With
 * SUBSTRATE_TEST_ACTORS=self only whoever runs the suite.
 */
export function actors(): readonly Actor[] {
  return inject("onlySelf") ? everyActor().filter(({ uid }) => uid === currentUser().uid) : everyActor();
}

/** The same whatever SUBSTRATE_TEST_ACTORS says: for what an ordinary user meets only where root has prepared it. */
export function everyActor(): readonly Actor[] {
  const ordinary = ordinaryUser();
  const root = currentUser().uid === 0 ? [{ ...currentUser(), kind: "root" } as const] : [];
  const user = ordinary === null ? [] : [{ ...ordinary, kind: "an ordinary user" } as const];
  if (root.length + user.length === 0)
    recordSkip({ what: "every test with a broker", why: "there is nobody to run it as" });
  return [...root, ...user];
}
