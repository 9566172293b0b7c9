import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { startOf } from "./runs.ts";
import type { TestUser } from "../users/users.ts";

/** Accounts of this suite begin so, and their comment names the run they belong to. */
const PREFIX = "sbtest-";

const SBIN = { env: { PATH: "/usr/sbin:/sbin:/usr/bin:/bin" } };
const runFile = promisify(execFile);

type Account = TestUser & { readonly comment: string };

/** Makes a user with a home folder. Root only; `refused` says why it could not. */
export async function createUser(): Promise<TestUser | { readonly refused: string }> {
  const name = `${PREFIX}${randomBytes(4).toString("hex")}`;
  try {
    const comment = `substrate tests ${process.pid} ${startOf(process.pid) ?? "0"}`;
    await runFile(
      "useradd",
      ["--create-home", "--no-log-init", "--shell", "/bin/sh", "--comment", comment, name],
      SBIN,
    );
  } catch (error) {
    return {
      refused: `useradd could not make one: ${error instanceof Error ? error.message.trim() : String(error)}`,
    };
  }
  const account = accounts().find((candidate) => candidate.name === name);
  return account ?? { refused: `useradd made '${name}', which /etc/passwd does not name` };
}

/** Ends the user's processes, then removes it with its home. */
export async function removeUser(user: TestUser): Promise<void> {
  endProcessesOf(user.uid);
  await runFile("userdel", ["--force", "--remove", user.name], SBIN).catch((error: unknown) => {
    // It complains about a mail spool that never was (12), and removes the user all the same.
    if (accounts().some(({ name }) => name === user.name)) throw error;
  });
}

/** Removes the users of runs that were killed before they could. */
export async function removeLeftOverUsers(): Promise<void> {
  for (const account of accounts().filter(isLeftOver)) await removeUser(account);
}

function isLeftOver({ name, comment }: Account): boolean {
  const [, pid, start] = /^substrate tests (\d+) (\d+)$/.exec(comment) ?? [];
  return name.startsWith(PREFIX) && pid !== undefined && startOf(Number(pid)) !== start;
}

function accounts(): Account[] {
  return readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .flatMap(([name, , uid, gid, comment, home]) =>
      name === undefined || comment === undefined || home === undefined
        ? []
        : [{ name, uid: Number(uid), gid: Number(gid), comment, home }],
    );
}

function endProcessesOf(uid: number): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (ownerOf(pid) !== uid) continue;
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile, ignoring: ESRCH.
    }
  }
}

function ownerOf(pid: string): number | undefined {
  try {
    const owner = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return owner === undefined ? undefined : Number(owner);
  } catch {
    return undefined;
  }
}
