import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { validateSpan } from "../../schemas/generated/validators.js";
import { Person } from "../support/broker/approvals.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { ScopeAsker } from "../support/broker/scopes.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { actorsWith } from "../support/run/needs.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors } from "../support/users/users.ts";

const POLICIES = {
  default: `
id: default
name: Narrow
mode: enforce
fs:
  write: ["$PROJECT/own/**"]
commands:
  isolated: ["mkdir held*"]
  ask: ["ask-first *"]
`,
  narrow: `
id: narrow
name: Reads little
selectable: true
mode: enforce
fs:
  read: ["$PROJECT/**", /usr/**, /bin/**, /lib/**, /lib64/**]
`,
  silent: "id: silent\nname: Silent\nselectable: true\nmode: enforce\napproval:\n  interactive: false\n",
  nothing: "id: nothing\nname: Writes nothing\nselectable: true\nmode: observe\nfs:\n  write: []\n",
};

describe.each(actors())("scopes, as $kind", (actor) => {
  let folder: HomeFolder;
  let broker: TestBroker;
  let person: Person;
  let asker: ScopeAsker;
  beforeAll(async () => {
    folder = new HomeFolder(actor);
    broker = await TestBroker.start(actor, { policies: POLICIES, folder: folder.path });
    person = new Person(broker);
    asker = new ScopeAsker(broker);
    for (const name of ["shared/old", "neighbour/old", "letters/letter"]) folder.write(name, `${name}\n`);
    broker.write(join(broker.project, "own/file"), "own");
    broker.write(join(broker.project, "closed/file"), "closed");
  });
  afterAll(async () => {
    await broker.stop();
    folder.remove();
  });

  const outside = (name: string): string => join(folder.path, name);
  const text = (name: string): string => readFileSync(outside(name), "utf8");

  test("a scope is asked of a person, who sees which, who and why; asking again is the same question", async () => {
    const scopes = [`fs.write:${outside("shared")}`, `fs.read:${outside("letters")}/**`];
    const body = { agent_id: "asker", reason: "The build writes there" };
    const asked = await asker.ask(scopes, body);
    expect(asked).toMatchObject({ status: 403, code: "approval_required" });
    expect(asked.hint).toContain("--once' (or --session)");
    expect((await asker.ask(scopes, { ...body, reason: "Another" })).approval_id).toBe(asked.approval_id);
    expect(await person.question(asked.approval_id)).toMatchObject({
      kind: "scopes",
      agent_id: "asker",
      project: broker.project,
      reason: "The build writes there",
      // What the policy reads already is not asked for.
      subject: { scopes: [`fs.write:${outside("shared")}`] },
      offers: ["once", "session", "deny"],
      notes: [`Everything below '${outside("shared")}'`],
    });
    expect((await person.answer(asked.approval_id, "always")).status).toBe(400);
    expect((await person.answer(asked.approval_id, "deny")).status).toBe(200);
    expect(await asker.ask(scopes, body)).toMatchObject({ status: 403, code: "approval_denied" });
  });

  test("a granted folder is written by the command that has the token, and by no other", async () => {
    const scope = `fs.write:${outside("shared")}`;
    const scope_token = await asker.granted([scope]);
    const cmd = `echo new > ${outside("shared/new")}; echo more >> ${outside("shared/old")}`;
    expect((await broker.run(`(${cmd}) 2>/dev/null; true`)).scopes_used).toEqual([]);
    expect(existsSync(outside("shared/new"))).toBe(false);
    const reply = await broker.run({
      cmd: `${cmd}; echo x > ${outside("neighbour/old")}; true`,
      scope_token,
    });
    expect(reply.scopes_used).toEqual([scope]);
    expect([text("shared/new"), text("shared/old")]).toEqual(["new\n", "shared/old\nmore\n"]);
    expect(text("neighbour/old")).toBe("neighbour/old\n");
    await broker.run(`(echo after > ${outside("shared/new")}) 2>/dev/null; true`);
    expect(text("shared/new")).toBe("new\n");
  });

  test("a redirect into a granted folder is decided with the scope", async () => {
    const scope_token = await asker.granted([`fs.write:${outside("shared")}`]);
    const reply = await broker.run({ cmd: `echo decided > ${outside("shared/decided")}`, scope_token });
    expect(reply).toMatchObject({ exit: 0, decision: { verdict: "allow" } });
    expect(text("shared/decided")).toBe("decided\n");
  });

  test("a part of the project, and a single file, can be granted as well", async () => {
    const scopes = ["fs.write:$PROJECT/closed", `fs.write:${outside("letters/letter")}`];
    const scope_token = await asker.granted(scopes);
    const reply = await broker.run({
      cmd: `echo opened > closed/file; echo read > ${outside("letters/letter")}; touch root ${outside("letters/other")}`,
      scope_token,
    });
    expect(reply.exit).not.toBe(0);
    expect(readFileSync(join(broker.project, "closed/file"), "utf8")).toBe("opened\n");
    expect(text("letters/letter")).toBe("read\n");
    expect([existsSync(join(broker.project, "root")), existsSync(outside("letters/other"))]).toEqual([
      false,
      false,
    ]);
  });

  test("a granted folder is read where the policy reads little", async () => {
    const cmd = `cat ${outside("neighbour/old")} ${outside("letters/letter")}`;
    expect((await broker.run({ cmd, profile: "narrow" })).stdout).toBe("");
    const body = { profile: "narrow" };
    const scope_token = await asker.granted([`fs.read:${outside("neighbour")}`], "once", body);
    const reply = await broker.run({ cmd, profile: "narrow", scope_token });
    expect(reply.stdout).toBe("neighbour/old\n");
  });

  test("where two policies hold, a scope is added to what both give", async () => {
    const body = { profile: "nothing" };
    const cmd = "touch own/both closed/both; true";
    const [own, closed] = ["own/both", "closed/both"].map((name) => join(broker.project, name));
    const scope_token = await asker.granted(["fs.write:$PROJECT/own"], "once", body);
    await broker.run({ cmd, ...body });
    expect([own, closed].map((path) => existsSync(path ?? ""))).toEqual([false, false]);
    await broker.run({ cmd, ...body, scope_token });
    expect([own, closed].map((path) => existsSync(path ?? ""))).toEqual([true, false]);
  });

  test("a call that waits gets its token when the person says yes", async () => {
    const waiting = asker.ask([`fs.write:${outside("neighbour")}`], { wait_ms: 20_000 });
    const { approval_id } = await person.waitedFor();
    await person.answer(approval_id, "session");
    const { status, scope_token, expires_at = "" } = await waiting;
    expect(status).toBe(200);
    const left = Date.parse(expires_at) - Date.now();
    expect(left).toBeGreaterThan(200_000);
    expect(left).toBeLessThanOrEqual(300_000);
    // For the session: as often as it is needed, and another token without a question.
    for (const word of ["one", "two"]) {
      await broker.run({ cmd: `echo ${word} > ${outside("neighbour/times")}`, scope_token });
      expect(text("neighbour/times")).toBe(`${word}\n`);
    }
    expect(await asker.token([`fs.write:${outside("neighbour")}`])).not.toBe(scope_token);
  });

  test("what the policy gives is not asked for: the token comes at once and adds nothing", async () => {
    const scope_token = await asker.token(["fs.write:$PROJECT/own", "fs.read:$PROJECT"]);
    const reply = await broker.run({ cmd: "echo mine > own/file; touch closed/mine; true", scope_token });
    expect(readFileSync(join(broker.project, "own/file"), "utf8")).toBe("mine\n");
    expect(existsSync(join(broker.project, "closed/mine"))).toBe(false);
    expect(reply.scopes_used).toEqual([`fs.write:${broker.project}/own`, `fs.read:${broker.project}`]);
  });

  test("an isolated command cannot write outside of the project with a scope, and its token is not used up", async () => {
    const scope_token = await asker.granted([`fs.write:${outside("shared")}`]);
    const cmd = `mkdir held-folder; touch ${outside("shared/isolated")}`;
    const refused = await broker.refused({ cmd, scope_token });
    expect(refused).toMatchObject({ status: 403, code: "scope_denied" });
    expect(existsSync(outside("shared/isolated"))).toBe(false);
    expect((await broker.run({ cmd: `touch ${outside("shared/plain")}`, scope_token })).exit).toBe(0);
    expect(existsSync(outside("shared/plain"))).toBe(true);
    const within = await asker.granted(["fs.write:$PROJECT/closed"]);
    const held = await broker.run({ cmd: "mkdir held-folder; touch closed/held; true", scope_token: within });
    expect(held).toMatchObject({ decision: { verdict: "isolate" }, fs_diff: { held: true } });
    expect(existsSync(join(broker.project, "closed/held"))).toBe(false);
  });

  test("a person who approves a command sees the scopes that it runs with, and cannot approve it for always", async () => {
    const scope_token = await asker.granted([`fs.write:${outside("shared")}`]);
    const told = await person.told({ cmd: "ask-first x", scope_token });
    expect(told).toMatchObject({ status: 403, code: "approval_required" });
    const question = await person.question(told.approval_id);
    expect(question.offers).not.toContain("always");
    expect(question.notes.join("\n")).toContain(`fs.write:${outside("shared")}`);
    const plain = await person.told({ cmd: "ask-first x" });
    expect(plain.approval_id).not.toBe(told.approval_id);
  });

  test("what cannot be granted is refused with its reason: the host itself, nobody to ask, and what cannot be read", async () => {
    expect(await asker.ask(["net:127.0.0.1:443"])).toMatchObject({
      status: 403,
      code: "scope_denied",
      message: expect.stringContaining("is internal (loopback)"),
    });
    expect(await asker.ask([`fs.write:${outside("shared")}`], { profile: "silent" })).toMatchObject({
      status: 403,
      code: "scope_denied",
      message: expect.stringContaining("approval.interactive is false"),
    });
    for (const scope of ["fs.write:relative", "fs.read:/etc/*.conf", "net:host", "fs.write:/a\u0007b"]) {
      expect(await asker.ask([scope]), scope).toMatchObject({ status: 400, code: "invalid_request" });
    }
    expect(await broker.refused({ cmd: "true", scope_token: "scp_x", background: "keep" })).toMatchObject({
      code: "scope_denied",
    });
  });

  test("question, answer, token and command stand in the trace, one below the other", async () => {
    const scope = `fs.write:${outside("shared")}`;
    const asked = await asker.ask([scope]);
    await person.answer(asked.approval_id, "once");
    const scope_token = await asker.token([scope]);
    const events = person.events(asked.approval_id);
    expect(events.map((span) => span.approval?.event)).toEqual(["asked", "once", "issued"]);
    for (const span of events) {
      expect(validateSpan(span), JSON.stringify(validateSpan.errors)).toBe(true);
      expect(span.approval).toMatchObject({ kind: "scopes", subject: scope });
    }
    const refusal = broker.spans().find(({ span_id }) => span_id === asked.span_id);
    expect(refusal).toMatchObject({ event_type: "violation", code: "approval_required" });
    expect(events[0]?.parent_span).toBe(asked.span_id);
    const reply = await broker.run({ cmd: "true", scope_token });
    expect(await broker.span(reply.span_id)).toMatchObject({
      scopes_used: [scope],
      approval_id: asked.approval_id,
      replayable: false,
    });
  });
});

const GIVEN = "registry.example.test";
const NAME = "files.example.test";
const NETWORK_POLICIES = {
  default: networkPolicy([GIVEN], { more: 'commands: { isolated: ["python3 -B *"] }' }),
  narrow: `id: narrow\nname: Narrow\nmode: enforce\nselectable: true\nnet: { allowed: [] }\n`,
};

type Body = Readonly<Record<string, unknown>>;

describe.each(actorsWith("python3", "nft"))("scopes of the network, as $kind", (actor) => {
  let place: NetworkPlace;
  let asker: ScopeAsker;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, NETWORK_POLICIES);
    asker = new ScopeAsker(place.broker);
  });
  afterAll(() => place.close());

  /** What came of each, and where servers saw it: `ADDRESS:PORT`. */
  async function dialled(targets: string, body: Body = {}): Promise<readonly [string, readonly string[]]> {
    const cmd = `python3 dial.py ${targets}`;
    const { result, seen } = await place.internet.during(() => place.broker.run({ cmd, ...body }));
    const came = result.stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]);
    return [came.join(" "), seen.connections.map(({ to }) => `${to.address}:${to.port}`)];
  }

  test("a person sees name and port as they are compared, and what the policy gives is not asked for", async () => {
    const scopes = ["net:B\u00fccher.Example.test:8080", `net:${GIVEN}:443`];
    const asked = await asker.ask(scopes, { reason: "The data is there" });
    expect(asked).toMatchObject({ status: 403, code: "approval_required" });
    const person = new Person(place.broker);
    expect(await person.question(asked.approval_id)).toMatchObject({
      kind: "scopes",
      reason: "The data is there",
      subject: { scopes: ["net:xn--bcher-kva.example.test:8080"] },
      offers: ["once", "session", "deny"],
      notes: ["'net:B\u00fccher.Example.test:8080' is 'net:xn--bcher-kva.example.test:8080'"],
    });
    await person.answer(asked.approval_id, "deny");
    const { seen } = await place.internet.during(() => asker.ask(scopes));
    expect(seen.questions).toEqual([]);
  });

  test("a granted name is reached on its port by the command that has the token, and by no other", async () => {
    expect(await dialled(`${NAME} 8080`)).toEqual(["NXDOMAIN", []]);
    const scope_token = await asker.granted([`net:${NAME}:8080`]);
    const targets = `${NAME} 8080 ${NAME} 80 collector.evil.test 8080 ${GIVEN} 80`;
    expect(await dialled(targets, { scope_token })).toEqual([
      "connected ECONNRESET NXDOMAIN connected",
      ["203.0.113.20:8080", "203.0.113.10:80"],
    ]);
    expect(await dialled(`${NAME} 8080 ${GIVEN} 80`)).toEqual(["NXDOMAIN connected", ["203.0.113.10:80"]]);
  });

  test("the reply and every line of the trace name the scope, and the policy as it is", async () => {
    const scope_token = await asker.granted([`net:${NAME}:8080`]);
    const reply = await place.broker.run({ cmd: `python3 dial.py ${NAME} 8080`, scope_token });
    expect(reply.scopes_used).toEqual([`net:${NAME}:8080`]);
    expect(reply.usage.egress_bytes).toBeGreaterThan(0);
    const lines = place.broker.spans().filter(({ world_id }) => world_id === reply.world_id);
    const connection = lines.find(({ event_type }) => event_type === "connection");
    expect(connection).toMatchObject({
      parent_span: reply.span_id,
      scopes_used: [`net:${NAME}:8080`],
      decision: { verdict: "allow" },
    });
    expect(new Set(lines.map(({ policy_hash }) => policy_hash))).toEqual(new Set([reply.policy_hash]));
  });

  test("an address and a range are reached by address, on their port alone", async () => {
    const scope_token = await asker.granted(["net:203.0.113.20:8080", "net:203.0.113.64/30:80"]);
    expect(
      await dialled("203.0.113.20 8080 203.0.113.66 80 203.0.113.20 80 203.0.113.66 8080 203.0.113.68 80", {
        scope_token,
      }),
    ).toEqual([
      "connected connected ECONNREFUSED ECONNREFUSED ECONNREFUSED",
      ["203.0.113.20:8080", "203.0.113.66:80"],
    ]);
  });

  test("what the policy gives comes at once, and adds nothing", async () => {
    const scope_token = await asker.token([`net:${GIVEN}:443`]);
    expect(await dialled(`${GIVEN} 80 ${NAME} 443`, { scope_token })).toEqual([
      "connected NXDOMAIN",
      ["203.0.113.10:80"],
    ]);
  });

  test("where two policies hold, a scope is added to what both give", async () => {
    const body = { profile: "narrow" };
    expect(await dialled(`${NAME} 80 ${GIVEN} 80`, body)).toEqual(["NXDOMAIN NXDOMAIN", []]);
    const scope_token = await asker.granted([`net:${NAME}:80`], "once", body);
    expect(await dialled(`${NAME} 80 ${GIVEN} 80`, { ...body, scope_token })).toEqual([
      "connected NXDOMAIN",
      ["203.0.113.20:80"],
    ]);
  });

  test("a token for the session works for each of its commands, an isolated one too", async () => {
    const scope_token = await asker.granted([`net:${NAME}:80`], "session");
    for (const cmd of ["python3 dial.py", "python3 -B dial.py"]) {
      const ran = (): Promise<Ran> => place.broker.run({ cmd: `${cmd} ${NAME} 80`, scope_token });
      const { result, seen } = await place.internet.during(ran);
      expect(result.decision.verdict).toBe(cmd.includes("-B") ? "isolate" : "allow");
      expect(seen.connections).toMatchObject([{ to: { address: "203.0.113.20", port: 80 } }]);
    }
  });
});
