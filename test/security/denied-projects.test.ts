import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Actor, actors, everyActor } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";

async function withLists(
  actor: Actor,
  lists: string,
  use: (broker: TestBroker) => Promise<void>,
): Promise<void> {
  const policy = `id: default\nname: x\nmode: enforce\ncommands:\n  isolated: ["touch *"]\nfs:\n${lists}`;
  const broker = await TestBroker.start(actor, { policies: { default: policy } });
  try {
    broker.write(join(broker.project, "file"), "words");
    await use(broker);
  } finally {
    await broker.stop();
  }
}

const WRITE = "echo new > made; echo over > file; mv file moved; rm -f file; mkdir d; cat file";

/** Lists that cover the project itself, with `$ABOVE` for the folder that holds it. */
const COVERING = ["$PROJECT", "$PROJECT/**", "$ABOVE", "$ABOVE/*", "$ABOVE/**/project", "**"] as const;

describe.each(actors())("a list that covers the project itself, as $kind", (actor) => {
  const above = (path: string, broker: TestBroker): string => path.replace("$ABOVE", dirname(broker.project));

  test.each(COVERING)(
    "deny_write '%s': nothing is written there, by plain commands or held; /tmp can be",
    async (path) => {
      await withLists(actor, "  deny_write: []\n", async (broker) => {
        const policy = join(broker.home, "policies/default.yaml");
        writeFileSync(policy, readFileSync(policy, "utf8").replace("[]", `["${above(path, broker)}"]`));
        const plain = await broker.run(`${WRITE}; echo own > /tmp/own && cat /tmp/own`);
        expect(plain.stdout).toBe("wordsown\n");
        const held: Ran = await broker.run(`touch held; ${WRITE}; true`);
        expect(held).toMatchObject({
          stdout: "words",
          decision: { verdict: "isolate" },
          fs_diff: { held: false },
        });
        expect(readdirSync(broker.project)).toEqual(["file"]);
        expect(readFileSync(join(broker.project, "file"), "utf8")).toBe("words");
      });
    },
  );

  test.each(COVERING)(
    "deny_read '%s': no command can be in it, and none runs; without it they do",
    async (path) => {
      await withLists(actor, "  deny_read: []\n", async (broker) => {
        const policy = join(broker.home, "policies/default.yaml");
        writeFileSync(policy, readFileSync(policy, "utf8").replace("[]", `["${above(path, broker)}"]`));
        const error = await broker.refused({ cmd: "cat file; touch ran" });
        expect([400, 503]).toContain(error.status);
        expect(existsSync(join(broker.project, "ran"))).toBe(false);
        writeFileSync(policy, readFileSync(policy, "utf8").replace(/deny_read: .*/, "deny_read: []"));
        expect(await broker.run("cat file; touch ran")).toMatchObject({ exit: 0, stdout: "words" });
      });
    },
  );
});

describe.each(actors())("denied names below a policy that reads only parts, as $kind", (actor) => {
  test("are hidden in each part, and their neighbours are read", async () => {
    const reads = "['/usr/**', '/bin/**', '/lib/**', '/lib64/**', '/etc/alternatives/**', '$PROJECT/**']";
    const lists = `  read: ${reads}\n  deny_read: ["**/.env", "/usr/share/**/*.pem", "/usr/bin/yes"]\n`;
    await withLists(actor, lists, async (broker) => {
      broker.write(join(broker.project, "a/.env"), "TOKEN");
      broker.write(join(broker.project, "a/plain"), "plain");
      const ran = await broker.run(
        "cat a/.env a/plain; ls /usr/bin/yes /usr/bin/env; ls -d /opt /root /home/*; true",
      );
      const [first, ...rest] = ran.stdout.trimEnd().split("\n");
      expect(first).toBe("plain/usr/bin/env");
      // Of what is read nowhere only the way to the project is there.
      expect(rest.filter((path) => !broker.project.startsWith(`${path}/`))).toEqual([]);
    });
  });
});

describe.each(everyActor())(
  "a file system that the host has mounted inside the project, as $kind",
  (actor) => {
    test("is guarded like the rest of it: what is denied there is not read, and not left when it is made", async () => {
      if (process.getuid?.() !== 0) return skip("mounts of the host in a project", "only root can make one");
      await withLists(actor, `  deny_read: ["**/.env"]\n  deny_write: ["mnt/sealed"]\n`, async (broker) => {
        const place = join(broker.project, "mnt");
        mkdirSync(place);
        const own = `uid=${actor.uid},gid=${actor.gid},mode=755,size=1m`;
        expect(spawnSync("mount", ["-t", "tmpfs", "-o", own, "substrate-test", place]).status).toBe(0);
        try {
          for (const name of [".env", "sealed", "plain"]) broker.write(join(place, name), `${name} words`);
          const ran = await broker.run(
            "cat mnt/.env mnt/plain; echo over > mnt/sealed; mv mnt/.env mnt/moved; mkdir mnt/d; echo x > mnt/d/.env; echo y > mnt/d/kept; mv mnt gone; true",
          );
          expect(ran.stdout).toBe("plain words");
          expect(readFileSync(join(place, ".env"), "utf8")).toBe(".env words");
          expect(readFileSync(join(place, "sealed"), "utf8")).toBe("sealed words");
          expect(existsSync(join(place, "d/.env"))).toBe(false);
          expect(existsSync(join(place, "d/kept"))).toBe(true);
        } finally {
          spawnSync("umount", ["-l", place]);
        }
      });
    });
  },
);
