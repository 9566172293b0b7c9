import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

/** A kernel setting that uid 0 may write without any capability, and that is written back as it was. */
const SETTING = "/proc/sys/vm/stat_interval";

const WIDE = [
  `["/**"]`,
  `["/proc/**", "/sys/**", "/dev/**", "/var/**", "$PROJECT/**", "$PROJECT/../beside/**"]`,
];

describe.each(actors())("a policy that lets commands write nearly everything, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(() => broker?.stop());

  test.each(WIDE)(
    "%s opens neither the kernel's folders nor the host's /var/tmp, and opens the rest",
    async (write) => {
      const folder = mkdtempSync(join(actor.home, "sb-wide-"));
      const policy = `id: default\nname: Wide\nmode: enforce\nfs:\n  write: ${write}\n`;
      broker = await TestBroker.start(actor, { policies: { default: policy }, folder });
      broker.write(join(folder, "beside/f"), "old");
      const told = readFileSync(SETTING, "utf8");
      const ran = await broker.run(
        [
          "echo new > f; echo new > ../beside/f",
          `echo pids $(ls /proc | grep -c '^[0-9]')`,
          `sh -c 'cat ${SETTING} > ${SETTING}' 2>/dev/null && echo wrote a setting`,
          "grep -E ' /(sys|proc|dev)(/cgroup|/fs/cgroup.*)? .* rw' /proc/mounts | grep -vE '^none |^devpts '",
          "[ -e /dev/mem ] && echo devices",
          `ls -A '${broker.home}' 2>/dev/null`,
          "true",
        ].join("; "),
      );
      expect(ran.stdout).toMatch(/^pids \d{1,2}\n$/);
      expect(readFileSync(SETTING, "utf8")).toBe(told);
      expect(readFileSync(join(folder, "beside/f"), "utf8")).toBe("new\n");
      expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("new\n");
      const left = await broker.run("touch /var/tmp/sb-wide-inside && echo made");
      expect(left.stdout).toBe("made\n");
      expect(existsSync("/var/tmp/sb-wide-inside")).toBe(false);
    },
  );

  test("names in the project are sealed once for each writable folder they lie in, however many rules begin with the same folders", async () => {
    const folder = mkdtempSync(join(actor.home, "sb-once-"));
    const policy = `id: default\nname: Wide\nmode: enforce\nfs:\n  write: ["/**"]\n`;
    broker = await TestBroker.start(actor, { policies: { default: policy }, folder });
    hostGit(actor, broker.project, "init", "-q");
    const { stdout } = await broker.run("cat /proc/self/mountinfo");
    const points = stdout.split("\n").map((line) => line.split(" ")[4]);
    // The project, and the root folder that holds it.
    for (const name of ["config", "hooks"])
      expect(points.filter((point) => point === join(broker?.project ?? "", ".git", name))).toHaveLength(2);
  });
});
