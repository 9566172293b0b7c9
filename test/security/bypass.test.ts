import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const ROOT = join(import.meta.dirname, "../..");

async function withBroker(
  actor: Actor,
  policy: string,
  use: (broker: TestBroker) => Promise<void>,
): Promise<void> {
  const other = "id: other\nname: Other\nmode: enforce\nselectable: true\ncommands:\n  denied: ['id *']\n";
  const broker = await TestBroker.start(actor, { policies: { default: policy, other } });
  try {
    await use(broker);
  } finally {
    await broker.stop();
  }
}

describe.each(actors())("ways around a policy, as $kind", (actor) => {
  test("a request's variables cannot load code past an allow list; harmless ones pass", async () => {
    await withBroker(
      actor,
      "id: default\nname: x\nmode: enforce\ncommands:\n  allowed: ['true']\n",
      async (broker) => {
        broker.write(join(broker.project, "evil.sh"), "touch evil-ran\n");
        const script = join(broker.project, "evil.sh");
        const call = { cmd: "true", shell: "bash", env: { BASH_ENV: script } };
        expect(await broker.refused(call)).toMatchObject({ code: "policy_denied" });
        expect(existsSync(join(broker.project, "evil-ran"))).toBe(false);
        expect(await broker.run({ cmd: "true", shell: "bash", env: { LANG: "C" } })).toMatchObject({
          exit: 0,
        });
      },
    );
  });

  test("a home folder that the caller moves does not move what a rule is about", async () => {
    const policy =
      "id: default\nname: x\nmode: enforce\ncommands:\n  denied: ['rm -rf /', 'cat $HOME/private']\n";
    await withBroker(actor, policy, async (broker) => {
      expect(await broker.refused({ cmd: "rm -rf ~", env: { HOME: "/" } })).toMatchObject({
        code: "policy_denied",
      });
      const path = join(actor.home, "private");
      expect(await broker.refused({ cmd: `cat ${path}`, env: { HOME: "/x" } })).toMatchObject({
        code: "policy_denied",
      });
      expect(await broker.run({ cmd: "ls ~/none; true", env: { HOME: "/x" } })).toMatchObject({ exit: 0 });
    });
  });

  test("an isolated command writes nowhere but into its overlay; a plain one may where the policy says", async () => {
    const beside = (name: string): string => `${actor.home}/substrate-${process.pid}-${name}`;
    const folder = beside("scope");
    mkdirSync(folder);
    if (actor.uid !== 0) spawnSync("chown", [`${actor.uid}:${actor.gid}`, folder]);
    const policy = `id: default\nname: x\nmode: enforce\nfs:\n  write: ['$PROJECT/**', '${folder}/**']\ncommands:\n  isolated: ['touch isolated']\n`;
    try {
      await withBroker(actor, policy, async (broker) => {
        expect(await broker.run(`touch isolated; echo x > ${folder}/leaked; true`)).toMatchObject({
          decision: { verdict: "isolate" },
        });
        expect(existsSync(join(folder, "leaked"))).toBe(false);
        await broker.run(`echo x > ${folder}/meant`);
        expect(existsSync(join(folder, "meant"))).toBe(true);
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("what is held is seen by no other command", async () => {
    await withBroker(
      actor,
      "id: default\nname: x\nmode: enforce\ncommands:\n  isolated: ['tee held*']\n",
      async (broker) => {
        await broker.run({ cmd: "tee held.txt", stdin_b64: Buffer.from("held words").toString("base64") });
        const { stdout } = await broker.run({
          cmd: "grep -rs 'held words' /var/lib/substrate . ; true",
          agent_id: "other",
        });
        expect(stdout).toBe("");
      },
    );
  });

  test("a folder above a masked file cannot be moved away, its neighbour can", async () => {
    await withBroker(
      actor,
      "id: default\nname: x\nmode: enforce\nfs:\n  deny_read: ['$PROJECT/conf/secret']\n",
      async (broker) => {
        broker.write(join(broker.project, "conf/secret"), "secret words");
        broker.write(join(broker.project, "plain/file"), "");
        const { stdout } = await broker.run(
          "mv conf moved; cat moved/secret conf/secret; mv plain plain2 && echo moved",
        );
        expect(stdout).toBe("moved\n");
        expect(readFileSync(join(broker.project, "conf/secret"), "utf8")).toBe("secret words");
      },
    );
  });

  test("denials hold in a project whose name looks like a pattern", async () => {
    await withBroker(
      actor,
      "id: default\nname: x\nmode: enforce\nfs:\n  deny_read: ['$PROJECT/secret']\n",
      async (broker) => {
        const project = join(broker.folder, "[x]{a}*");
        broker.write(join(project, "secret"), "secret words");
        const reply = await broker.run({ cmd: "cat secret; echo written > file", cwd: project });
        expect(reply.stdout).toBe("");
        expect(existsSync(join(project, "file"))).toBe(true);
      },
    );
  });

  test("a policy that reads a part of the host shows that part and nothing else", async () => {
    const reads = "['/usr/**', '/bin/**', '/lib/**', '/lib64/**']";
    const scopes = `  read: ${reads}\n  write: ['$PROJECT/**']\n`;
    await withBroker(actor, `id: default\nname: x\nmode: enforce\nfs:\n${scopes}`, async (broker) => {
      broker.write(join(broker.folder, "beside"), "beside");
      const reply = await broker.run(
        "cat /etc/passwd ../beside; ls -A /etc; ls -d /opt /var/lib; echo seen > file; cat file; ls /usr/bin/env",
      );
      // The world's own, by which names are looked up.
      expect(reply.stdout).toBe("hosts\nresolv.conf\nseen\n/usr/bin/env\n");
    });
    const closed = `  read: ${reads}\n  write: []\n`;
    await withBroker(actor, `id: default\nname: x\nmode: enforce\nfs:\n${closed}`, async (broker) => {
      expect(await broker.refused({ cmd: "true" })).toMatchObject({ status: 400, code: "invalid_request" });
    });
  });

  test("git's own folder is no project, and nothing that contains the installation is", async () => {
    await withBroker(actor, "id: default\nname: x\n", async (broker) => {
      broker.write(join(broker.project, ".git/.git/HEAD"), "");
      const inside = await broker.run({ cmd: "pwd", cwd: join(broker.project, ".git") });
      expect((await broker.span(inside.span_id)).cwd).toBe(join(broker.project, ".git"));
      expect(inside.session_id).toBe((await broker.run("true")).session_id);
      expect(await broker.refused({ cmd: "true", cwd: dirname(ROOT) })).toMatchObject({
        code: "project_not_allowed",
      });
    });
  });
});

describe.each(actors())("a .substrate-profile, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    const other = "id: other\nname: Other\nmode: enforce\nselectable: true\ncommands:\n  denied: ['id *']\n";
    broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n", other } });
  });
  afterAll(() => broker.stop());

  test("that is a link shows nothing of the file it leads to", async () => {
    broker.write(join(broker.folder, "secret.txt"), "secretword\n");
    symlinkSync(join(broker.folder, "secret.txt"), join(broker.project, ".substrate-profile"));
    const error = await broker.refused({ cmd: "true" });
    expect(error).toMatchObject({ status: 400, code: "unknown_profile" });
    expect(JSON.stringify(error)).not.toContain("secretword");
    unlinkSync(join(broker.project, ".substrate-profile"));
  });

  test("that is a pipe, or of any size, is refused at once and stops nobody", async () => {
    const path = join(broker.project, ".substrate-profile");
    spawnSync("mkfifo", [path]);
    expect(await broker.refused({ cmd: "true" })).toMatchObject({ code: "unknown_profile" });
    unlinkSync(path);
    broker.write(path, "");
    truncateSync(path, 3_000_000_000);
    expect(await broker.refused({ cmd: "true" })).toMatchObject({ code: "unknown_profile" });
    unlinkSync(path);
    expect(await broker.run("id -u")).toMatchObject({ exit: 0 });
  });

  test("that a command met cannot be rewritten from the folder above", async () => {
    const path = join(broker.project, "sub/.substrate-profile");
    broker.write(path, "other\n");
    expect(await broker.refused({ cmd: "id -u", cwd: join(broker.project, "sub") })).toMatchObject({
      code: "policy_denied",
    });
    await broker.run(
      "echo default > sub/.substrate-profile; rm -f sub/.substrate-profile; mv sub sub2; true",
    );
    expect(readFileSync(path, "utf8")).toBe("other\n");
    await broker.run("echo fine > sub/file");
    expect(existsSync(join(broker.project, "sub/file"))).toBe(true);
  });
});

describe.each(actors())("secrets in a span, as $kind", (actor) => {
  test("are replaced in argv, behind an option, and in the rule that warned", async () => {
    const policy = "id: default\nname: x\ncommands:\n  warn: ['echo *']\n";
    await withBroker(actor, policy, async (broker) => {
      await broker.run({ argv: ["echo", "--password", "hunter2hunter2"] });
      await broker.run("echo 'Authorization: Bearer abcdefghijklmnop'");
      const trace = readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8");
      expect(trace).not.toContain("hunter2hunter2");
      expect(trace).not.toContain("abcdefghijklmnop");
      expect(trace).toContain('"commands.warn"');
    });
  });
});
