/** What the tests of container backends need of podman and docker on this machine, and take away again. */
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Actor, type Ended, runAs } from "../users/users.ts";
import { installationFor } from "../broker/installation.ts";

export type Engine = "podman" | "docker";

const PATIENCE_MS = 30_000;

/** Variables under which an actor's podman keeps its running state where the test can remove it, and docker is found. */
export function engineEnvironment(actor: Actor): Readonly<Record<string, string>> {
  const host = process.env["DOCKER_HOST"];
  const found = host === undefined ? {} : { DOCKER_HOST: host };
  if (actor.uid === 0) return found;
  const state = join(actor.home, "run");
  return { ...found, XDG_RUNTIME_DIR: state };
}

/**
 * Why this actor cannot run any container here, found out without Substrate's own code: by running one that is nothing
 * but a static program. Undefined when it can, and then a backend that cannot is at fault.
 */
export async function whyNoContainers(actor: Actor, engine: Engine): Promise<string | undefined> {
  const question = engine === "docker" ? "version" : "info";
  const asked = await runEngine(actor, [engine, question]).catch(() => undefined);
  if (asked === undefined || isMissing(asked)) return "not installed";
  if (asked.code !== 0) return lastLine(asked);
  if (engine === "docker") return undefined;
  const reasons: string[] = [];
  for (const program of [["podman"], ["podman", "--runtime=runc"]]) {
    const ran = await runPlainContainer(actor, program);
    if (ran.stderr.includes("Cannot use these arguments")) return undefined;
    reasons.push(`${program.join(" ")}: ${lastLine(ran)}`);
  }
  return reasons.join("; ");
}

/** The names of an actor's containers that begin as Substrate's do. */
export async function containersOf(actor: Actor, engine: Engine): Promise<readonly string[]> {
  const listed = await runEngine(actor, [engine, "ps", "--all", "--format={{.Names}}"]);
  if (listed.code !== 0) throw new Error(`Cannot list containers: ${listed.stderr}`);
  return listed.stdout.split("\n").filter((name) => name.startsWith("substrate-"));
}

export function runEngine(actor: Actor, argv: readonly string[]): Promise<Ended> {
  const env = engineEnvironment(actor);
  const state = env["XDG_RUNTIME_DIR"];
  const made =
    state === undefined ? argv : ["/bin/sh", "-c", 'mkdir -p -m 700 "$0"; exec "$@"', state, ...argv];
  return runAs(actor, made, { cwd: "/", env, signal: AbortSignal.timeout(PATIENCE_MS) });
}

/** The image of mount points that the product makes for docker: taken away again unless it was there before. */
export async function dockerImage(actor: Actor): Promise<{ readonly removeNew: () => Promise<void> }> {
  const image = "substrate-empty-root:1";
  const before = await runEngine(actor, ["docker", "images", "--quiet", image]);
  return {
    removeNew: async () => {
      if (before.stdout.trim() === "") await runEngine(actor, ["docker", "rmi", image]);
    },
  };
}

/** The empty cgroups that runtimes leave on a host without systemd, unless they were there before. */
export function cgroupsOfRuntimes(): { readonly removeNew: () => void } {
  const before = new Set(runtimeCgroups());
  return {
    removeNew: () => {
      for (const path of runtimeCgroups()) if (!before.has(path)) removeEmpty(path);
    },
  };
}

async function runPlainContainer(actor: Actor, program: readonly string[]): Promise<Ended> {
  const { root } = await installationFor(actor);
  const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "plain-"));
  try {
    for (const name of ["proc", "sys", "dev", "etc", "run", "tmp", "init"]) mkdirSync(join(folder, name));
    chownTree(folder, actor);
    const limits =
      actor.uid === 0 ? ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"] : ["--userns=keep-id"];
    const bind = `--volume=${join(root, ".build")}:/init`;
    const words = ["run", "--rm", "--network=none", "--read-only", ...limits, bind, "--rootfs", folder];
    return await runEngine(actor, [...program, ...words, "/init/substrate-init", "/wrong"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function chownTree(folder: string, { uid, gid }: Actor): void {
  for (const path of [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    chownSync(path, uid, gid);
}

function isMissing({ code, stderr }: Ended): boolean {
  return code === 127 || /not found|No such file/.test(stderr.split("\n")[0] ?? "");
}

function lastLine({ stderr, code }: Ended): string {
  const said = stderr.trim().split("\n").at(-1) ?? "";
  return said === "" ? `it ended with ${code}` : said;
}

function runtimeCgroups(): readonly string[] {
  const tree = "/sys/fs/cgroup";
  const hierarchies = existsSync(tree) ? readdirSync(tree) : [];
  return hierarchies
    .flatMap((name) => [join(tree, name, "libpod_parent/conmon"), join(tree, name, "libpod_parent")])
    .filter((path) => existsSync(path));
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody's container is in it (EBUSY), ignoring: it is not the tests' to end.
  }
}
