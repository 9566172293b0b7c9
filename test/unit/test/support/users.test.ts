import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { skip } from "../../../support/run/skips.ts";
import { createUser, removeUser } from "../../../support/run/user-accounts.ts";
import { ordinaryUser, runAs, spawnAs } from "../../../support/users/users.ts";

test("a program run as the ordinary user has no privilege, a home of its own and a clean environment", async () => {
  const user = ordinaryUser();
  if (user === null) return skip("programs as an ordinary user", "no user could be made");
  const script =
    'id -u; id -G; pwd; env | grep -c VITEST; touch "$HOME/mine" && rm "$HOME/mine" && echo written; cat';
  const ended = await runAs(user, ["/bin/sh", "-c", script], { stdin: "input" });
  const groups = user.uid === process.getuid?.() ? expect.any(String) : String(user.gid);
  expect(ended.stdout.split("\n")).toEqual([String(user.uid), groups, user.home, "0", "written", "input"]);
  expect(ended.code).toBe(0);
});

test("a user that was removed takes its home and its processes along", async () => {
  if (process.getuid?.() !== 0) return skip("making and removing users", "only root may");
  const user = await createUser();
  if ("refused" in user) return skip("making and removing users", user.refused);
  const asleep = spawnAs(user, ["/bin/sh", "-c", "echo asleep; exec sleep 60"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(asleep, "exit");
  if (asleep.stdout !== null) await once(asleep.stdout, "data");
  await removeUser(user);
  expect(existsSync(user.home)).toBe(false);
  expect(await ended).toEqual([null, "SIGKILL"]);
});
