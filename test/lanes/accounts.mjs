import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";

/** @typedef {{ name: string, uid: number, gid: number, home: string }} Account */

const ENV = { PATH: "/usr/sbin:/sbin:/usr/bin:/bin" };

/**
 * Makes a user with a home folder. Root only. Name and comment are those of the suite (test/support/run/user-accounts.ts), so that its
 * next run removes what a killed lane left.
 * @returns {Account}
 */
export function addUser() {
  const name = `sbtest-${randomBytes(4).toString("hex")}`;
  const comment = `substrate tests ${process.pid} ${startOf(process.pid)}`;
  const words = ["--create-home", "--no-log-init", "--shell", "/bin/sh", "--comment", comment, name];
  execFileSync("useradd", words, { env: ENV });
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
  return { name, uid: Number(fields[2]), gid: Number(fields[3]), home: fields[5] ?? "" };
}

/**
 * Ends the user's processes, then removes it with its home.
 * @param {Account} account
 */
export function removeUser({ name, uid }) {
  for (const pid of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      if (statSync(`/proc/${pid}`).uid === uid) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile, ignoring: ENOENT or ESRCH.
    }
  }
  try {
    execFileSync("userdel", ["--force", "--remove", name], { env: ENV, stdio: "pipe" });
  } catch (error) {
    // It complains about a mail spool that never was (12), and removes the user all the same.
    if (readFileSync("/etc/passwd", "utf8").includes(`\n${name}:`)) throw error;
  }
}

/**
 * Words before a program that run it as the user, with nothing of root's surroundings.
 * @param {Account} account
 * @param {Readonly<Record<string, string>>} env
 * @returns {[string, ...string[]]}
 */
export function asUser({ uid, gid, name, home }, env) {
  const variables = { HOME: home, USER: name, LOGNAME: name, LANG: "C.UTF-8", ...env };
  const words = Object.entries(variables).map(([key, value]) => `${key}=${value}`);
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--", "env", "-i", ...words];
}

/**
 * When a process started, in clock ticks since boot (proc_pid_stat(5), field 22).
 * @param {number} pid
 */
function startOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
