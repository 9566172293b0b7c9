/**
 * Argument vectors around network namespaces.
 *
 * Root makes a network namespace alone, in which a broker of any user can be started: what enters does so as root and
 * changes its user afterwards. An ordinary user needs a user namespace around it, keeps the capabilities in that to set
 * routes and listen below port 1024, and loses them when a program is started in it later.
 */
export function makeArgv(): [string, ...string[]] {
  return isRoot()
    ? ["unshare", "--net", "--"]
    : ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--"];
}

/** @param pid a process in the namespace, which must outlive the start of whatever enters */
export function enterArgv(pid: number): readonly string[] {
  return isRoot()
    ? ["nsenter", `--net=/proc/${pid}/ns/net`, "--"]
    : ["nsenter", `--target=${pid}`, "--user", "--net", "--preserve-credentials", "--"];
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
