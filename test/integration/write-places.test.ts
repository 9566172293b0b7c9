/** Folders of `fs.write` that are not there yet, and those that `fs.read` does not name. */
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";

const NOBODY = 65534;

/** What a shell needs of a host, and nothing else. */
const PROGRAMS = ["/usr/**", "/bin/**", "/lib/**", "/lib64/**", "/etc/**"];

describe.each(actors())("places of fs.write, as $kind", (actor) => {
  let outside: HomeFolder;
  let broker: TestBroker;
  const at = (name: string): string => join(realpathSync(outside.path), name);
  /** Below a folder of another user's. */
  const foreign = (): string => (actor.uid === 0 ? at("foreign/never") : "/opt/substrate-never");
  beforeAll(async () => {
    outside = new HomeFolder(actor);
    outside.write("there/file", "host\n");
    if (actor.uid === 0) {
      mkdirSync(at("foreign"));
      chownSync(at("foreign"), NOBODY, NOBODY);
    }
    const policy = (read: readonly string[], mode: string): string =>
      JSON.stringify({
        id: mode,
        name: "Places",
        mode,
        fs: {
          read,
          write: [
            "$PROJECT/**",
            ...["there", "fresh", "fresh/below", "deep/er", "parent/child"].map((name) => `${at(name)}/**`),
            at("there/file"),
            `${foreign()}/**`,
          ],
        },
        commands: { isolated: ["env isolated *"] },
      });
    broker = await TestBroker.start(actor, {
      policies: {
        default: policy(["/**"], "enforce").replace('"id":"enforce"', '"id":"default"'),
        limited: policy([...PROGRAMS, "$PROJECT/**"], "enforce").replace('"id":"enforce"', '"id":"limited"'),
        watching: policy(["/**"], "observe").replace('"id":"observe"', '"id":"watching"'),
      },
      config: "agents:\n  limited: { policy: limited }\n  watching: { policy: watching }\n",
    });
  });
  afterAll(async () => {
    await broker.stop();
    outside.remove();
  });
  const socket = (agent: string) => (agent === "test" ? {} : { agent_id: agent });
  const run = async (agent: string, cmd: string) => {
    const answer = await broker.operator("POST", "/v1/execute", {
      agent_id: "test",
      ...socket(agent),
      cwd: broker.project,
      cmd,
    });
    expect([answer.status, answer.document]).toEqual([200, expect.anything()]);
    const reply = answer.document as {
      exit: number;
      stdout_b64: string;
      notices: readonly { readonly kind: string; readonly message: string }[];
    };
    return { ...reply, stdout: Buffer.from(reply.stdout_b64, "base64").toString() };
  };

  describe.each(["test", "limited", "watching"])("under the policy of '%s'", (agent) => {
    test("a folder that was never made is made when a world needs it, as the broker's user's", async () => {
      rmSync(at("fresh"), { recursive: true, force: true });
      expect(await run(agent, `echo made > ${at("fresh/file")} && mkdir ${at("fresh/sub")}`)).toMatchObject({
        exit: 0,
      });
      expect(readFileSync(at("fresh/file"), "utf8")).toBe("made\n");
      expect(statSync(at("fresh"))).toMatchObject({ uid: actor.uid, gid: actor.gid });
      expect(existsSync(at("fresh/below"))).toBe(false);
    });

    test("one that is removed and needed again is made again, without a restart", async () => {
      await run(agent, "true");
      rmSync(at("fresh"), { recursive: true });
      expect(await run(agent, `echo again > ${at("fresh/file")}`)).toMatchObject({ exit: 0 });
      expect(readFileSync(at("fresh/file"), "utf8")).toBe("again\n");
    });

    test("one without a parent is not made, and the reply says so; once the parent is there, it is", async () => {
      rmSync(at("deep"), { recursive: true, force: true });
      await broker.operator("POST", "/v1/world/restart", { all: true });
      const first = await run(agent, `mkdir -p ${at("deep/er")}; true`);
      const about = first.notices.filter(({ message }) => message.includes(at("deep/er")));
      expect(about.map(({ message }) => message).join()).toContain(`'${at("deep")}' does not exist either`);
      expect(existsSync(at("deep"))).toBe(false);
      mkdirSync(at("deep"));
      outside.own();
      expect(await run(agent, `echo x > ${at("deep/er/file")}`)).toMatchObject({ exit: 0 });
      expect(existsSync(at("deep/er/file"))).toBe(true);
    });

    test("one below a folder of somebody else's is not made, and the reply says whose it is", async () => {
      await broker.operator("POST", "/v1/world/restart", { all: true });
      const { notices } = await run(agent, "true");
      expect(notices.filter(({ message }) => message.includes(foreign()))).toMatchObject([
        {
          kind: "denied",
          message: expect.stringMatching(/belongs to user \d+, and the broker runs as user \d+/),
        },
      ]);
      expect(existsSync(foreign())).toBe(false);
    });

    test("a command after the first hears nothing more of it, unless it writes there", async () => {
      await run(agent, "true");
      expect((await run(agent, "true")).notices).toEqual([]);
      const { notices } = await run(agent, `mkdir -p ${foreign()}/sub; true`);
      // Where fs.read shows nothing above it, that is what cannot be made.
      const why = agent === "limited" ? /outside fs\.write/ : /belongs to user \d+/;
      expect(notices.map(({ message }) => message).join()).toMatch(why);
    });
  });

  test("a place that may be written is read too, whatever fs.read says; what lies beside it is not there", async () => {
    outside.write("secret/file", "host\n");
    outside.write("there/file", "host\n");
    const read = await run("limited", `cat ${at("there/file")}; ls ${at("")} ; cat ${at("secret/file")}`);
    expect(read.stdout).toMatch(/^host\n/);
    expect(read.stdout).not.toContain("secret");
    expect(read.exit).not.toBe(0);
    expect(await run("limited", `echo new > ${at("there/file")}`)).toMatchObject({ exit: 0 });
    expect(readFileSync(at("there/file"), "utf8")).toBe("new\n");
  });

  test("policy allow read shows a folder, by its name and by a link, and nothing beside it", async () => {
    outside.write("secret/file", "host\n");
    outside.write("beside/file", "host\n");
    symlinkSync(at("secret"), at("link"));
    const read = `cat ${at("secret/file")} ${at("link/file")}; ls ${at("beside")} 2> /dev/null; true`;
    expect((await run("limited", read)).stdout).toBe("");
    const { code, stdout } = await broker.cli(["policy", "allow", "read", at("link"), "--policy", "limited"]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/link' is a link to '.*secret', so the entry names/),
    ]);
    expect((await run("limited", read)).stdout).toBe("host\nhost\n");
    await run("limited", `echo x > ${at("secret/file")}; true`);
    expect(readFileSync(at("secret/file"), "utf8")).toBe("host\n");
  });

  test("what lies in no tree of the host cannot be written either: it would be lost, and nobody told", async () => {
    for (const place of [at("beside"), "/opt/beside", "/beside"]) {
      const made = await run("limited", `mkdir -p ${place}`);
      expect([place, made.exit]).toEqual([place, 1]);
      expect(made.notices.map(({ message }) => message).join()).toContain("outside fs.write");
    }
    expect(await run("limited", `env isolated true; mkdir -p ${at("beside")}`)).toMatchObject({ exit: 1 });
    expect(await run("limited", "echo x > /tmp/x && cat /tmp/x && echo y > /dev/null")).toMatchObject({
      exit: 0,
      stdout: "x\n",
    });
  });

  test("an isolated command reads and writes there too, and the host gets nothing of it", async () => {
    outside.write("there/file", "host\n");
    rmSync(at("fresh"), { recursive: true, force: true });
    for (const agent of ["test", "limited"]) {
      const reply = await run(
        agent,
        `env isolated true; cat ${at("there/file")} && echo x > ${at("there/new")} && echo y > ${at("fresh/file")} && cat ${at("fresh/file")}`,
      );
      expect([agent, reply.exit, reply.stdout]).toEqual([agent, 0, "host\ny\n"]);
      expect([existsSync(at("there/new")), existsSync(at("fresh"))]).toEqual([false, false]);
    }
  });

  test("with a profile that reads elsewhere, what both may write is read", async () => {
    broker.write(
      join(broker.home, "policies/narrow.yaml"),
      JSON.stringify({
        id: "narrow",
        name: "Narrow",
        selectable: true,
        mode: "enforce",
        fs: { read: PROGRAMS, write: ["$PROJECT/**", `${at("there")}/**`] },
      }),
    );
    outside.write("there/file", "host\n");
    const answer = await broker.operator("POST", "/v1/execute", {
      agent_id: "limited",
      cwd: broker.project,
      profile: "narrow",
      cmd: `cat ${at("there/file")} && echo z > ${at("there/z")}`,
    });
    expect(answer).toMatchObject({ status: 200, document: { exit: 0 } });
    expect(lstatSync(at("there/z")).size).toBe(2);
  });
});
