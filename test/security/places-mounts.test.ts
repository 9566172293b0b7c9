/** One folder with two paths: a second mount of the home, of a folder in it, or of a file in that. Made by root, for both actors. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { skippedTest } from "../support/run/skips.ts";

const POLICY = `
id: default
name: Second mounts
mode: enforce
fs: { deny_read: ["$HOME/.ssh", "$HOME/.netrc", "$PROJECT/hidden/*.key"] }
commands: { allowed: [] }
`;

const isRoot = process.getuid?.() === 0;
if (!isRoot) skippedTest("second mounts of a home", "only root can make mounts for another process");

describe.each(isRoot ? actors() : [])("second mounts, as $kind", (actor) => {
  let folder: string;
  let broker: TestBroker;
  const ann = (path: string): string => join(folder, "ann", path);
  const mnt = (path: string): string => join(folder, "mnt", path);

  beforeAll(async () => {
    folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-mounts-"));
    const files = [
      ".ssh/id",
      ".netrc",
      "work/app/.git/HEAD",
      "work/app/hidden/x.key",
      "work/app/open",
      ".config/tool/run",
    ];
    for (const path of files) {
      mkdirSync(dirname(ann(path)), { recursive: true });
      writeFileSync(ann(path), "private key\n");
    }
    const points = [
      "mnt/all",
      "mnt/ssh",
      "mnt/app",
      "mnt/state",
      "mnt/holder/config",
      "mnt/plain",
      "plain/sub",
      "ann/work/keys/in",
    ];
    for (const path of points) mkdirSync(join(folder, path), { recursive: true });
    mkdirSync(ann("work/keys/.git"));
    mkdirSync(join(folder, "home"));
    writeFileSync(mnt("netrc"), "");
    const binds = [
      ["/", mnt("all")],
      [ann(".ssh"), mnt("ssh")],
      [ann("work/app"), mnt("app")],
      [join(folder, "home"), mnt("state")],
      [ann(".config/tool"), mnt("holder/config")],
      [ann(".ssh"), ann("work/keys/in")],
      [ann(".netrc"), mnt("netrc")],
      [join(folder, "plain"), mnt("plain")],
    ].map(([from, to]) => `mount --bind '${from}' '${to}'`);
    spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, folder]);
    broker = await TestBroker.start(actor, {
      folder,
      policies: { default: POLICY },
      environment: { HOME: ann("") },
      config: `projects: ["/", "${folder}"]\npolicies: { projects: { "~/work/app": default } }\n`,
      within: [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "sh",
        "-ec",
        `${binds.join("\n")}\nexec "$@"`,
        "sh",
      ],
    });
  });
  afterAll(async () => broker?.stop());

  async function refusedIn(cwd: string): Promise<string> {
    const refused = await broker.refused({ cwd, cmd: "cat id; echo more >> id" });
    expect(refused, cwd).toMatchObject({ status: 403, code: "project_not_allowed" });
    return refused.message;
  }

  test("of the home, of what is in it and of SUBSTRATE_HOME are no projects", async () => {
    const all = mnt(`all${ann("")}`).replace(/\/$/, "");
    for (const cwd of [
      mnt("all"),
      all,
      `${all}/.ssh`,
      `${all}/.config/tool`,
      mnt("ssh"),
      mnt("state"),
      mnt("state/policies"),
    ])
      await refusedIn(cwd);
    expect(await refusedIn(`${all}/work/app`)).toContain(ann("work/app"));
    expect(await refusedIn(mnt("app"))).toContain(ann("work/app"));
    expect(readFileSync(ann(".ssh/id"), "utf8")).toBe("private key\n");
  });

  test("below a folder make that none", async () => {
    await refusedIn(mnt("holder"));
    await refusedIn(ann("work/keys"));
  });

  test("show no denied name to a project elsewhere, and neither SUBSTRATE_HOME nor its sockets", async () => {
    const secrets = [mnt(`all${ann(".ssh/id")}`), mnt("ssh/id"), mnt("netrc")];
    const state = [
      mnt("state/config.yaml"),
      mnt("state/sock/control.sock"),
      mnt(`all${broker.home}/sock/control.sock`),
    ];
    const looks = [...secrets, ...state].map((path) => `cat '${path}'; test -e '${path}' && echo seen`);
    for (const cwd of [ann("work/app"), broker.project]) {
      const ran = await broker.run({ cwd, cmd: looks.join("\n") });
      expect(ran.stdout, cwd).not.toMatch(/private key|projects:/);
      // A name under a mask is there, and says nothing.
      expect(
        ran.stderr.match(/No such file|Permission denied|Is a directory/g) ?? [],
        ran.stderr,
      ).toHaveLength(looks.length);
    }
  });

  test("of the project show no name that its policy denies there", async () => {
    const paths = [mnt("app/hidden/x.key"), mnt(`all${ann("work/app/hidden/x.key")}`)];
    const ran = await broker.run({
      cwd: ann("work/app"),
      cmd: paths.map((path) => `cat '${path}'`).join("\n"),
    });
    expect(ran.stdout).toBe("");
  });

  test("of other places are what they are, and a project has one name", async () => {
    const twin = `cat '${mnt("app/open")}' '${mnt(`all${ann("work/app/open")}`)}'`;
    expect((await broker.run({ cwd: ann("work/app"), cmd: twin })).stdout).toBe("private key\nprivate key\n");
    for (const cwd of [mnt("plain"), mnt("plain/sub"), ann("work/app")])
      expect(await broker.run({ cwd, cmd: "touch made && rm made" }), cwd).toMatchObject({ exit: 0 });
    expect(await refusedIn(join(folder, "plain"))).toContain(mnt("plain"));
  });

  test("are granted to nobody", async () => {
    const ask = { agent_id: "test", cwd: broker.project, reason: "to work", wait_ms: 0 };
    const places = [mnt("ssh"), mnt("state"), mnt(`all${ann(".config")}`)];
    for (const path of places) {
      const scopes = [`fs.write:${path}/**`];
      const answer = await broker.call("POST", "/v1/request_scopes", { ...ask, scopes });
      expect(answer, path).toMatchObject({ status: 403, document: { error: { code: "scope_denied" } } });
    }
    const answer = await broker.call("POST", "/v1/request_scopes", {
      ...ask,
      scopes: [`fs.write:${mnt("plain")}/**`],
    });
    expect(answer).toMatchObject({ document: { error: { code: "approval_required" } } });
  });
});
