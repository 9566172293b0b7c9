import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hostGit } from "../../git.ts";
import { currentUser } from "../../users.ts";

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
