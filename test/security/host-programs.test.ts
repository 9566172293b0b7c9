/**
 * A broker is started from a shell in which a project's environment is active, and keeps its PATH. What commands write there never runs
 * outside of a world.
 */
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { homeLayout } from "../../broker/settings/home.ts";
import { ROOT_OVERLAY, TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Programs
mode: enforce
fs: { write: ["$PROJECT/**"] }
commands: { ask: ["sh deep"] }
`;
const NAMES = ["chmod", "rm", "git", "sleep", "tar", "npm", "nft"];
const DEEP = "n=$(printf %0200d 0); for i in $(seq 60); do mkdir $n && cd -P $n || exit 9; done";

describe.each(actors())("programs of a project's environment on the broker's PATH, as $kind", (actor) => {
  let broker: TestBroker;
  let marks: string;
  beforeAll(async () => {
    const folder = mkdtempSync(join(actor.home, "sb-programs-"));
    marks = join(folder, "marks");
    const path = `${join(folder, "project/.venv/bin")}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`;
    broker = await TestBroker.start(actor, {
      folder,
      policies: { default: POLICY },
      environment: { PATH: path },
    });
    mkdirSync(marks, { mode: 0o777 });
    mkdirSync(join(broker.project, ".git"), { recursive: true });
    broker.write(join(broker.project, ".venv/pyvenv.cfg"), "");
    broker.write(join(broker.project, "deep"), DEEP);
    broker.write(
      join(broker.project, "plant"),
      `mkdir -p .venv/bin; for n in ${NAMES.join(" ")}; do printf '#!/bin/sh\\ntouch ${marks}/%s\\nexec /usr/bin/%s "$@"\\n' $n $n > .venv/bin/$n; /bin/chmod +x .venv/bin/$n; done`,
    );
    await broker.run("/bin/sh plant");
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(broker.folder, { recursive: true, force: true });
  });
  const ran = (): readonly string[] => readdirSync(marks);

  test("do not remove an overlay deeper than a path can be long", async () => {
    const { overlay } = homeLayout(broker.home, actor.uid === 0 ? ROOT_OVERLAY : undefined);
    const asked = await broker.refused({ cmd: "sh deep" });
    const { document } = await broker.operator("POST", `/v1/approvals/${asked.approval_id}/preview`);
    expect(document).toMatchObject({ preview: { state: "done", truncated: true } });
    await expect.poll(() => readdirSync(overlay), { timeout: 5000 }).toEqual([]);
    expect(ran()).toEqual([]);
  });

  test("do not look up the commit of a policy", async () => {
    const policies = join(broker.home, "policies");
    hostGit(actor, policies, "init", "--quiet");
    for (const word of ["first", "second"]) {
      appendFileSync(join(policies, "default.yaml"), `# ${word}\n`);
      hostGit(actor, policies, "add", ".");
      hostGit(actor, policies, "commit", "--quiet", "--message", word);
      const commit = hostGit(actor, policies, "rev-parse", "HEAD");
      const known = async (): Promise<boolean> =>
        (await broker.span((await broker.run("true")).span_id)).policy_commit === commit;
      await expect.poll(known, { timeout: 10_000 }).toBe(true);
    }
    expect(ran()).toEqual([]);
  });

  test("are what a command in the project runs", async () => {
    expect((await broker.run("/bin/ls .venv/bin")).stdout).toContain("chmod\n");
    expect((await broker.run("git --version; command -v git")).stdout).toContain(".venv/bin/git");
  });
});
