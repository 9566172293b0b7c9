import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { skip } from "../support/run/skips.ts";
import { actors, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Asks
mode: enforce
commands:
  ask: ["touch *"]
`;

const POLICIES = { default: POLICY };

describe.each(actors())("answers that are kept, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  test("session holds for every further run, also by the next broker, until the policy changes", async () => {
    const own = await TestBroker.start(actor, { policies: POLICIES });
    let next: TestBroker | undefined;
    try {
      const id = await new Person(own).approve({ cmd: "touch session" }, "session");
      for (let run = 0; run < 2; run += 1) expect((await own.run("touch session")).exit).toBe(0);
      await own.kill("SIGKILL");
      next = await own.again();
      const reply = await next.run("touch session");
      expect((await next.span(reply.span_id)).approval_id).toBe(id);
      const policy = join(next.home, "policies/default.yaml");
      next.write(policy, `${POLICY}  warn: ["true"]\n`);
      expect(await next.refused({ cmd: "touch session" })).toMatchObject({ code: "approval_required" });
      next.write(policy, POLICY);
      expect(await next.refused({ cmd: "touch session" })).toMatchObject({ code: "approval_required" });
    } finally {
      await (next ?? own).stop();
    }
  });

  test("always is written where people can read, edit and take it back, and outlives a changed policy", async () => {
    const file = join(broker.home, "approvals.yaml");
    const id = await person.approve({ cmd: "touch always && echo ran" }, "always");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, "utf8");
    expect(text).toContain("# Commands that a person approved permanently");
    expect(text).toMatch(new RegExp(`- id: ${id}\\n {4}policy: default\\n {4}agent: test\\n`));
    expect(text).toContain("cmd: touch always && echo ran");
    broker.write(file, text.replace(`- id: ${id}`, `# Mine\n  - id: ${id}`));
    const reply = await broker.run("touch always && echo ran");
    expect((await broker.span(reply.span_id)).approval_id).toBe(id);
    await person.approve({ cmd: "touch always-2" }, "always");
    expect(readFileSync(file, "utf8")).toContain("# Mine");
    expect((await broker.run("touch always && echo ran")).exit).toBe(0);
    broker.write(file, readFileSync(file, "utf8").replace("touch always && echo ran", "touch else"));
    expect(await person.told({ cmd: "touch always && echo ran" })).toMatchObject({
      code: "approval_required",
    });
    expect((await broker.run("touch else")).exit).toBe(0);
  });

  test("of a broken approvals.yaml nothing holds, it is said where, and nothing is written over it", async () => {
    const file = join(broker.home, "approvals.yaml");
    await person.approve({ cmd: "touch mended" }, "always");
    const good = readFileSync(file, "utf8");
    const bad = `${good}  - id: apr_x\n    polcy: default\n`;
    broker.write(file, bad);
    const told = await person.told({ cmd: "touch mended" });
    expect(told).toMatchObject({ code: "approval_required" });
    expect((await person.list()).problems.join("\n")).toMatch(/approvals\.yaml:\d+:\d+: .*polcy/);
    expect(await person.answer(told.approval_id, "always")).toMatchObject({
      status: 400,
      code: "invalid_request",
    });
    expect(readFileSync(file, "utf8")).toBe(bad);
    broker.write(file, good);
    expect((await broker.run("touch mended")).exit).toBe(0);
  });

  test.each([
    ["a pipe", (file: string) => spawnSync("mkfifo", [file])],
    ["a link to a device without an end", (file: string) => symlinkSync("/dev/zero", file)],
    ["a link to itself", (file: string) => symlinkSync("approvals.yaml", file)],
    ["a link that leads nowhere", (file: string) => symlinkSync("nowhere/approvals.yaml", file)],
    ["a folder", (file: string) => mkdirSync(file)],
  ])("%s as approvals.yaml holds nothing, and everything else goes on", async (_what, make) => {
    const file = join(broker.home, "approvals.yaml");
    rmSync(file, { recursive: true, force: true });
    make(file);
    try {
      const asked = await person.told({ cmd: "touch odd" });
      expect(asked).toMatchObject({ code: "approval_required" });
      expect((await person.list()).problems).toHaveLength(1);
      expect(await person.answer(asked.approval_id, "always")).toMatchObject({ code: "invalid_request" });
      expect(lstatSync(file).isFile()).toBe(false);
      expect(await person.answer(asked.approval_id, "once")).toEqual({ status: 200 });
      expect(await person.told({ cmd: "touch odd" })).toMatchObject({ status: 200 });
    } finally {
      rmSync(file, { recursive: true, force: true });
    }
  });

  test("a broker that stops tells whoever waits", async () => {
    const own = await TestBroker.start(actor, { policies: POLICIES });
    const other = new Person(own);
    try {
      const call = other.told({ cmd: "touch waiting", approval_wait_ms: 60_000 });
      await other.waitedFor();
      await own.kill("SIGTERM");
      expect(await call).toMatchObject({ status: 503, code: "busy" });
      expect(readdirSync(own.project)).toEqual([]);
    } finally {
      await own.stop();
    }
  });

  test("without an approval no file of approvals is made", async () => {
    const own = await TestBroker.start(actor, { policies: POLICIES });
    try {
      await own.run("true");
      expect(existsSync(join(own.home, "approvals.yaml"))).toBe(false);
    } finally {
      await own.stop();
    }
  });
});

const SHORT_WAIT = `id: default
name: Asks
mode: enforce
commands: { ask: ["touch *"], denied: ["touch never*"] }
approval: { timeout_secs: 8 }
`;

/** SUBSTRATE_HOME lies on a file system of 6 MiB that is then filled; approvals.yaml leads to one that has room. */
const SCRIPT = `
set -u
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
mkdir -p "$SUBSTRATE_HOME/policies"
printf '%s' "$5" > "$SUBSTRATE_HOME/policies/default.yaml"
ln -s "$2/approvals.yaml" "$SUBSTRATE_HOME/approvals.yaml"
echo '# of a person' > "$2/approvals.yaml"
cd "$2"
substrate() { "$NODE" "$LAUNCHER" "$@" 2>&1; echo "exit $?"; }
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" broker start > /dev/null
"$NODE" "$LAUNCHER" exec -- 'touch ran-always' > /dev/null 2>&1
ID=$("$NODE" "$LAUNCHER" approvals --json | grep -o 'apr_[0-9a-f-]*' | head -n 1)
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
echo '== answer'; substrate approve "$ID" --always
echo '== run'; substrate exec -- 'touch ran-always'
echo '== ask'; substrate exec -- 'touch ran-asked'
echo '== denied'; substrate exec -- 'touch never'
sleep 8
echo '== expired'; substrate approvals
rm "$1/fill"
sleep 1
echo '== room'; substrate exec -- 'touch ran-always'
"$NODE" "$LAUNCHER" broker stop
"$NODE" "$LAUNCHER" trace verify
`;

describe.each(actors())("approvals on a full disk, as $kind", (actor) => {
  test("an answer that cannot be recorded is in no file, and a question that ends then does not end the broker", async () => {
    if (actor.uid !== 0) {
      skip(
        `approvals on a full disk, as ${actor.kind}`,
        "an ordinary user cannot mount a small file system without becoming root inside",
      );
      return;
    }
    const folder = mkdtempSync(join(tmpdir(), "sb-disk-"));
    const project = join(folder, "project");
    for (const name of ["disk", "project/.git"]) mkdirSync(join(folder, name), { recursive: true });
    try {
      const { node, launcher } = await installationFor(actor);
      const args = [join(folder, "disk"), project, node, launcher, SHORT_WAIT];
      const { stdout } = await runAs(actor, ["unshare", "-m", "sh", "-c", SCRIPT, "sh", ...args], {
        cwd: folder,
      });
      const part = (name: string): string => stdout.split(`== ${name}\n`)[1]?.split("== ")[0] ?? "";
      expect(part("answer"), stdout).toMatch(/The answer was not accepted[^]*exit 125/);
      expect(readFileSync(join(project, "approvals.yaml"), "utf8")).toBe("# of a person\n");
      expect(existsSync(join(project, "approvals.yaml.new"))).toBe(false);
      for (const name of ["run", "ask", "denied"])
        expect(part(name), stdout).toMatch(/Nothing ran[^]*exit 125/);
      expect(part("expired"), stdout).toMatch(/^No command waits for approval\nexit 0/);
      expect(part("room"), stdout).toMatch(/A person must approve[^]*exit 126/);
      for (const name of ["ran-always", "ran-asked", "never"])
        expect(existsSync(join(project, name)), name).toBe(false);
      expect(stdout).toMatch(/^The trace is intact: /m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
