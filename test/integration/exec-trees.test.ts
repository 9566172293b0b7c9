import { chmodSync, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { actors, runAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { linuxSince } from "../support/run/needs.ts";

const POLICY = `id: default
name: x
mode: enforce
commands: { denied: ["expr *", "sudo *"], ask: ["bc *"] }
approval: { interactive: true, timeout_secs: 60 }
`;

/** Before, they tell how a process ended to its parent alone. */
const TELLS_ENDS = linuxSince(6, 15);

const PROJECTS = 10;
const BUILDS = 5;
const FILES = 4;

/** A library of a few files, and a program that is linked with it and run. */
function writeBuild(broker: TestBroker, folder: string): void {
  const names = Array.from({ length: FILES }, (_, each) => `f${each}`);
  for (const name of names) broker.write(join(folder, `${name}.c`), `int ${name}(int x) { return x + 1; }\n`);
  const calls = names.map((name) => `${name}(0)`).join(" + ");
  const declared = names.map((name) => `int ${name}(int);`).join(" ");
  broker.write(join(folder, "main.c"), `${declared}\nint main(void) { return ${calls} != ${FILES}; }\n`);
  const objects = names.map((name) => `${name}.o`).join(" ");
  const rules = [`all: main\n\t./main && touch done`, `main: main.o lib.a\n\tcc -o $@ main.o lib.a`];
  broker.write(join(folder, "Makefile"), `${rules.join("\n")}\nlib.a: ${objects}\n\tar rcs $@ ${objects}\n`);
}

/** The one last line of each span. */
function lastLines(spans: readonly Span[]): ReadonlyMap<string, Span> {
  return new Map(spans.map((span) => [span.span_id, span]));
}

/** From a span up to the first whose parent is none, or is not on record. */
function topOf(span: Span, all: ReadonlyMap<string, Span>): Span {
  const parent = span.parent_span === null ? undefined : all.get(span.parent_span);
  return parent === undefined ? span : topOf(parent, all);
}

describe.each(actors())("as $kind", (actor) => {
  test("50 builds at once in 10 worlds, each behind a shim: all succeed, and their programs form trees without orphans", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const projects = Array.from({ length: PROJECTS }, (_, each) => join(broker.folder, `project${each}`));
      const folders = projects.flatMap((project) =>
        Array.from({ length: BUILDS }, (_, each) => join(project, `build${each}`)),
      );
      for (const folder of folders) writeBuild(broker, folder);
      // The tool is a program of the person's, which has its work done by the broker: below the shim's own span.
      const bin = join(broker.folder, "bin");
      const { node, launcher } = await installationFor(actor);
      const exec = `'${node}' '${launcher}'`;
      broker.write(join(bin, "build"), `#!/bin/sh\nexec ${exec} exec -- make -s -j2 -C "$1"\n`);
      chmodSync(join(bin, "build"), 0o755);
      const path = `${join(broker.home, "shims")}:${bin}:/usr/bin:/bin`;
      const installed = await broker.cli(["shim", "install", "build"], {
        env: { PATH: `${bin}:/usr/bin:/bin` },
      });
      expect(installed).toMatchObject({ code: 0 });
      const runs = await Promise.all(
        folders.map((folder) =>
          runAs(actor, ["build", folder], {
            cwd: join(folder, ".."),
            env: { PATH: path, SUBSTRATE_HOME: broker.home },
          }),
        ),
      );
      expect(runs.filter(({ code }) => code !== 0)).toEqual([]);
      expect(folders.filter((folder) => !existsSync(join(folder, "done")))).toEqual([]);
      await eventually(() => endsOfShims(broker.spans()) === folders.length, 10_000);

      const spans = broker.spans();
      const all = lastLines(spans);
      const programs = [...all.values()].filter(({ event_type }) => event_type === "exec");
      // cc, cc1 and as for each file, the linker's two, make's shells, ar and the program itself.
      expect(programs.length).toBeGreaterThan(folders.length * (3 * FILES + 5));
      const orphans = programs.filter(({ parent_span }) => parent_span === null || !all.has(parent_span));
      expect(orphans).toEqual([]);
      const tops = new Set(programs.map((span) => topOf(span, all)));
      expect(tops.size).toBe(folders.length);
      expect([...tops].every(({ component }) => component === "shim")).toBe(true);
      expect(new Set([...all.values()].map(({ world_id }) => world_id).filter(Boolean)).size).toBe(PROJECTS);
      const ended = programs.filter(
        ({ outcome, program }) => outcome === "ended" && program?.replaced !== true,
      );
      const untold = ended.filter(({ exit, signal }) => exit === null && signal === null);
      if (TELLS_ENDS) expect(untold).toEqual([]);
    } finally {
      await broker.stop();
    }
  }, 240_000);
});

function endsOfShims(spans: readonly Span[]): number {
  return spans.filter(
    ({ component, event_type }) => component === "shim" && event_type === "command_complete",
  ).length;
}

describe.each(actors())("as $kind", (actor) => {
  test("an npm install with life-cycle scripts is drawn as a tree", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const scripts = { preinstall: "node -e 1", postinstall: "sh -c 'ls package.json | wc -l'" };
      broker.write(
        join(broker.project, "package.json"),
        JSON.stringify({ name: "a", version: "1.0.0", scripts }),
      );
      const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
      const { span_id: span, stderr } = await broker.run({
        cmd: "npm install --offline --no-audit --no-fund",
        env,
      });
      const drawn = await broker.cli(["trace", span, "--tree"]);
      expect(drawn.code, stderr).toBe(0);
      const lines = drawn.stdout.split("\n").filter((line) => line.includes("─ spn_"));
      // How deep a line stands: two columns and the line's own for each step.
      const depthOf = (text: string): number =>
        lines.find((line) => line.includes(text))?.search(/spn_/) ?? -1;
      expect(depthOf("npm install")).toBeGreaterThan(-1);
      for (const [outer, inner] of [
        ["npm install", "-c 'node -e 1'"],
        ["-c 'node -e 1'", "  node -e 1"],
        ["wc -l'", "  ls package.json"],
        ["wc -l'", "  wc -l"],
      ] as const)
        expect(depthOf(inner), `${inner} below ${outer}:\n${drawn.stdout}`).toBeGreaterThan(depthOf(outer));
      expect(drawn.stdout).toMatch(/exit 0 .* ls package\.json/);
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("as $kind, a build under a broker that", (actor) => {
  const SCRIPT = `touch begun
i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); echo $i > progress; done
expr 1 + 1 > sum; echo $? > denied
touch after
`;

  async function withBuild(
    use: (broker: TestBroker, reply: Promise<unknown>, at: (name: string) => string) => Promise<void>,
  ): Promise<void> {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const at = (name: string): string => join(broker.project, name);
      broker.write(at("build.sh"), SCRIPT);
      const reply = broker.post({ cmd: "sh build.sh", timeout_ms: 120_000 }).catch((error: unknown) => error);
      expect(await eventually(() => existsSync(at("begun")), 20_000)).toBe(true);
      await use(broker, reply, at);
    } finally {
      await broker.stop();
    }
  }

  test("stands still goes on with what no rule concerns, and is denied the rest after the time-out", async () => {
    await withBuild(async (broker, reply, at) => {
      process.kill(broker.process.pid ?? 0, "SIGSTOP");
      try {
        expect(await eventually(() => existsSync(at("after")), 30_000)).toBe(true);
        expect(readFileSync(at("progress"), "utf8")).toBe("400\n");
        expect(readFileSync(at("denied"), "utf8")).toBe("126\n");
        expect(readFileSync(at("sum"), "utf8")).toBe("");
      } finally {
        process.kill(broker.process.pid ?? 0, "SIGCONT");
      }
      expect(await reply).toMatchObject({ status: 200, document: { exit: 0 } });
      const programs = broker.spans().filter(({ event_type }) => event_type === "exec");
      expect(new Set(programs.map(({ span_id }) => span_id)).size).toBeGreaterThanOrEqual(401);
    });
  });

  test("is killed is gone within two seconds, with what waited for an answer; the next one starts clean", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    const at = (name: string): string => join(broker.project, name);
    let running = broker;
    try {
      broker.write(at("asks.sh"), "(while :; do date +%s%N > alive; sleep 0.05; done) & bc 1\n");
      const reply = broker
        .post({ cmd: "sh asks.sh", timeout_ms: 60_000, approval_wait_ms: 60_000 })
        .catch((error: unknown) => error);
      const waits = async (): Promise<boolean> => {
        const { document } = await broker.operator("GET", "/v1/approvals");
        return JSON.stringify(document).includes("apr_");
      };
      expect(await eventually(waits, 20_000)).toBe(true);
      await broker.kill("SIGKILL");
      await reply;
      await sleep(2000);
      const alive = readFileSync(at("alive"), "utf8");
      await sleep(300);
      expect(readFileSync(at("alive"), "utf8")).toBe(alive);
      const next = await broker.again();
      running = next;
      expect(await next.run("echo on")).toMatchObject({ stdout: "on\n" });
      const lost = next.spans().filter(({ outcome }) => outcome === "lost");
      expect(lost.length).toBeGreaterThan(0);
      expect(await next.cli(["trace", "verify"])).toMatchObject({ code: 0 });
    } finally {
      await running.stop();
    }
  });
});
