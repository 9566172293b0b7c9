/** The system's settings of ssh, which it reads only where root or its user owns the files. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";
import { actors, currentUser } from "../support/users/users.ts";

const FOLDER = "/etc/ssh/ssh_config.d";

/** A distribution's settings, in a mount namespace of the broker's: a file that includes another one. */
const WITH_SETTINGS = `mount -t tmpfs -o mode=755 none ${FOLDER} && mkdir ${FOLDER}/more &&
  printf 'Include ${FOLDER}/more/*\\nHost first.example\\n  User one\\n' > ${FOLDER}/50-first.conf &&
  printf 'Host second.example\\n  User two\\n' > ${FOLDER}/more/second && ln -s more/second ${FOLDER}/60-link.conf &&
  exec "$@"`;
const WITHIN = [
  "unshare",
  "--mount",
  "--propagation",
  "private",
  "--",
  "/bin/sh",
  "-ec",
  WITH_SETTINGS,
  "sh",
];

describe.each(actors())("ssh in a world, as $kind", (actor) => {
  const can = currentUser().uid === 0;
  let broker: TestBroker;
  beforeAll(async () => {
    const hides = `id: hides\nname: Hides\nselectable: true\nfs: { deny_read: ["${FOLDER}"] }\n`;
    if (can) broker = await TestBroker.start(actor, { within: WITHIN, policies: { hides } });
  });
  afterAll(() => broker?.stop());

  test("starts, and reads what the system's settings include", async () => {
    if (!can)
      return skip(`ssh's settings, as ${actor.kind}`, "only root can mount settings over this machine's");
    const userOf = "ssh -G first.example | grep '^user '; ssh -G second.example | grep '^user '";
    expect(await broker.run(userOf)).toMatchObject({ exit: 0, stdout: "user one\nuser two\n" });
    const changed = await broker.run(`echo x > ${FOLDER}/50-first.conf || rm ${FOLDER}/50-first.conf`);
    expect(changed.exit).not.toBe(0);
    expect((await broker.run(`head -n1 ${FOLDER}/50-first.conf`)).stdout).toMatch(/^Include/);
  });

  test("sees none of them where the policy denies reading them", async () => {
    if (!can)
      return skip(
        `ssh's hidden settings, as ${actor.kind}`,
        "only root can mount settings over this machine's",
      );
    const { stdout } = await broker.run({
      cmd: `ls ${FOLDER}; ssh -G first.example | grep -c '^user one'`,
      profile: "hides",
    });
    expect(stdout).toBe("0\n");
  });
});
