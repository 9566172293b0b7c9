/** Real repositories for tests: git on the host, as the actor, with an identity and without anybody's settings. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestUser, currentUser } from "../users/users.ts";

const IDENTITY = [
  "-c",
  "user.name=Tester",
  "-c",
  "user.email=tester@example.org",
  "-c",
  "protocol.file.allow=always",
] as const;

/** What to put before a git command that runs through the broker. */
export const GIT = `git ${IDENTITY.join(" ")}`;

/** Runs git on the host as the actor and returns what it wrote. Throws when it fails. */
export function hostGit(actor: TestUser, folder: string, ...words: readonly string[]): string {
  const result = triedGit(actor, folder, words);
  if (result.status !== 0)
    throw new Error(`git ${words.join(" ")} in '${folder}' ended with ${result.status}: ${result.stderr}`);
  return result.stdout.trim();
}

/** The same however it ends, with folders before its PATH. */
export function triedGit(
  actor: TestUser,
  folder: string,
  words: readonly string[],
  programs = "",
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync("git", ["-C", folder, ...IDENTITY, ...words], {
    ...(actor.uid === process.getuid?.() ? {} : { uid: actor.uid, gid: actor.gid }),
    env: {
      PATH: `${programs}/usr/local/bin:/usr/bin:/bin`,
      HOME: actor.home,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
    },
    encoding: "utf8",
  });
}

/** What the only file of a repository says, README. */
export const README = "cloned from the tests' internet\n";

/** Makes a bare repository with one commit on `main`, which takes pushes. */
export function makeRepository(path: string): void {
  const work = `${path}.work`;
  const git = (folder: string, ...words: readonly string[]): string =>
    hostGit(currentUser(), folder, ...words);
  git("/", "init", "--quiet", "--initial-branch=main", work);
  writeFileSync(join(work, "README"), README);
  git(work, "add", "README");
  git(work, "commit", "--quiet", "--message", "A first commit");
  git("/", "clone", "--quiet", "--bare", work, path);
  git(path, "config", "http.receivepack", "true");
}
