/** The machine's states with a stand-in for `limactl`: no Lima runs here. What a real one does with the verbs is not proved. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Limactl, type Mount } from "../../../lima/limactl.ts";
import { LimaMachine } from "../../../lima/machine.ts";

/** Keeps the machines in a file, and each call in another. `slow` makes a start last that many milliseconds. */
const STAND_IN = `#!${process.execPath}
const fs = require("node:fs");
const state = JSON.parse(fs.readFileSync("STATE", "utf8"));
const words = process.argv.slice(2);
fs.appendFileSync("CALLS", JSON.stringify(words) + "\\n");
const [verb] = words, name = words.at(-1);
const save = () => fs.writeFileSync("STATE", JSON.stringify(state));
const of = (wanted) => state.machines.find((each) => each.name === wanted);
if (verb === "--version") console.log("limactl version " + state.version);
else if (verb === "list") for (const each of state.machines) console.log(JSON.stringify(each));
else if (verb === "create") {
  const { mounts } = JSON.parse(fs.readFileSync(name, "utf8"));
  state.machines.push({ name: words.find((word) => word.startsWith("--name=")).slice(7), status: "Stopped", dir: "/d", config: { mounts } });
  save();
} else if (verb === "start") {
  if (state.fails) { console.error('time="x" level=fatal msg=' + JSON.stringify(state.fails)); process.exit(1); }
  setTimeout(() => { of(name).status = "Running"; delete of(name).cut; delete of(name).agent; save(); }, state.slow ?? 0);
} else if (verb === "stop") { of(name).status = "Stopped"; save(); }
else if (verb === "edit") {
  of(name).config.mounts = JSON.parse(words.find((word) => word.startsWith(".mounts = ")).slice(10));
  save();
} else if (verb === "shell") {
  if (state.gone) { console.error("sudo: /mnt/substrate/lima/provision.sh: command not found"); process.exit(1); }
  if (words.slice(1).join("|") !== "--workdir=/|substrate|sudo|/mnt/substrate/lima/provision.sh") process.exit(3);
  delete of("substrate").agent;
  if (state.stays) of("substrate").agent = "old";
  save();
} else process.exit(2);
`;

const MOUNTS: readonly Mount[] = [{ location: `/Users/me/it's "mine" $HOME`, writable: true }];

describe("the virtual machine", () => {
  let folder: string;
  let state: string;
  let calls: string;
  const steps: string[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "substrate-lima-"));
    state = join(folder, "state.json");
    calls = join(folder, "calls");
    const program = STAND_IN.replaceAll("STATE", state).replaceAll("CALLS", calls);
    writeFileSync(join(folder, "limactl"), program);
    chmodSync(join(folder, "limactl"), 0o755);
    steps.splice(0);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const given = (more: object = {}): void =>
    writeFileSync(state, JSON.stringify({ version: "1.2.0", machines: [], ...more }));

  const one = (status: string, more: object = {}): object => ({
    machines: [{ name: "substrate", status, dir: "/d", config: { mounts: MOUNTS }, ...more }],
  });

  function machine(path = `${folder}:${dirname(process.execPath)}`): LimaMachine {
    return new LimaMachine({
      name: "substrate",
      limactl: new Limactl({ environment: { PATH: path }, onLine: () => {} }),
      mounts: () => MOUNTS,
      describe: () => Promise.resolve(JSON.stringify({ mounts: MOUNTS })),
      file: join(folder, "lima.yaml"),
      greet: () => {
        const { machines } = JSON.parse(readFileSync(state, "utf8")) as {
          machines: { status: string; agent?: string; cut?: boolean }[];
        };
        const [first] = machines;
        return first?.status === "Running" && first.cut !== true
          ? Promise.resolve(first.agent !== "old")
          : Promise.reject(new Error("ENOENT"));
      },
      provision: "/mnt/substrate/lima/provision.sh",
      silenceMs: 1000,
      onStep: (step) => steps.push(step),
    });
  }

  const ready = (of: LimaMachine): Promise<void> => of.ready(new AbortController().signal);

  const verbs = (): readonly string[] =>
    readFileSync(calls, "utf8")
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as string[])[0] ?? "")
      .filter((verb) => verb !== "--version" && verb !== "list");

  test("is made and started where there is none, with its folders' names intact", async () => {
    given();
    await ready(machine());
    expect(verbs()).toEqual(["create", "start"]);
    const { machines } = JSON.parse(readFileSync(state, "utf8")) as { machines: { config: object }[] };
    expect(machines[0]?.config).toEqual({ mounts: MOUNTS });
  });

  test("is started where it was stopped, and left alone where it runs and its agent answers", async () => {
    given(one("Stopped"));
    await ready(machine());
    expect(verbs()).toEqual(["start"]);
    await ready(machine());
    expect(verbs()).toEqual(["start"]);
  });

  test("is stopped and started where its forward was lost, for Lima does not make it again, and left running where it answers late", async () => {
    given(one("Running", { cut: true }));
    await ready(machine());
    expect(verbs()).toEqual(["stop", "start"]);
    given(one("Running", { cut: true }));
    setTimeout(() => given(one("Running")), 300);
    await ready(machine());
    expect(verbs()).toEqual(["stop", "start"]);
  });

  test("is upgraded where another version's agent answers, and that it stays so is an error", async () => {
    given(one("Running", { agent: "old" }));
    await ready(machine());
    expect(verbs()).toEqual(["shell"]);
    given({ ...one("Running", { agent: "old" }), stays: true });
    await expect(ready(machine())).rejects.toMatchObject({
      message: expect.stringMatching(/stayed another version after its upgrade/),
    });
  });

  test("is upgraded by a start where it still shows the folder that npm has replaced", async () => {
    given({ ...one("Running", { agent: "old" }), gone: true });
    await ready(machine());
    expect(verbs()).toEqual(["shell", "stop", "start"]);
  });

  test("is stopped and started for a folder that it does not show yet", async () => {
    given(one("Running", { config: { mounts: [{ location: "~", writable: false }] } }));
    await ready(machine());
    expect(verbs()).toEqual(["stop", "edit", "start"]);
    const { machines } = JSON.parse(readFileSync(state, "utf8")) as { machines: { config: object }[] };
    expect(machines[0]?.config).toEqual({ mounts: MOUNTS });
  });

  test("that takes minutes is told with its step to whoever waits, is started once, and is then ready", async () => {
    given({ ...one("Stopped"), slow: 6000 });
    const slow = machine();
    const first = await Promise.allSettled([ready(slow), ready(slow)]);
    for (const each of first) {
      expect(each).toMatchObject({
        status: "rejected",
        reason: {
          name: "WorldUnavailable",
          message: expect.stringMatching(
            /^The virtual machine 'substrate' is not ready yet: it is starting, for \d+ s$/,
          ),
        },
      });
    }
    await ready(slow);
    expect(verbs()).toEqual(["start"]);
    expect(steps).toEqual(["looking for it", "it is starting", "its agent is starting"]);
  });

  test.each([
    ["is broken", one("Broken", { errors: ["no pid"] }), /'substrate' is broken: no pid/, /stop --force/],
    [
      "fails to start",
      { ...one("Stopped"), fails: 'the "vz" driver' },
      /'limactl start' ended with 1: .*vz/,
      /ha\.stderr/,
    ],
    ["is managed by an old Lima", { version: "0.23.2" }, /Lima 0\.23 is too old/, /brew install lima/],
  ] as const)("that %s is an error with what Lima said and a remedy", async (_title, more, message, hint) => {
    given(more);
    await expect(ready(machine())).rejects.toMatchObject({
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
    expect(existsSync(calls)).toBe(true);
  });

  test("without Lima is an error that names it and how to install it", async () => {
    given();
    await expect(ready(machine(join(folder, "nowhere")))).rejects.toMatchObject({
      message: expect.stringMatching(
        /needs a Linux VM here: Lima, which manages the virtual machine, is not installed/,
      ),
      hint: expect.stringMatching(/brew install lima/),
    });
  });
});
