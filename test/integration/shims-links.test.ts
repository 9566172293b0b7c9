/** Which program a shim stands for, by whatever way it is started: judged by what the program behind it did. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";
import { pathWithShims, SHIM_POLICY, toolFor } from "../shims.ts";
import { type Ended, runAs } from "../users.ts";

describe.each(actors().slice(0, 1))("a shim, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: SHIM_POLICY },
    });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  const shim = (): string => join(broker.home, "shims/tool");

  /** Whatever would call itself for ever is gone after five seconds. */
  function shell(script: string, path = pathWithShims(broker, bin)): Promise<Ended> {
    const env = { PATH: path, SUBSTRATE_HOME: broker.home };
    return runAs(actor, ["/usr/bin/timeout", "5", "/bin/sh", "-c", script], {
      cwd: broker.project,
      env,
    });
  }

  function executable(path: string, text: string): string {
    broker.write(path, text);
    chmodSync(path, 0o755);
    return path;
  }

  test("stands for the same program behind further links, as those of a venv", async () => {
    const link = join(broker.project, "other-name");
    symlinkSync(shim(), link);
    expect(await shell(`'${link}' words a`)).toMatchObject({
      code: 0,
      stdout: "words|a|",
      stderr: "",
    });
    expect((await shell(`'${link}' denied touch '${link}-touched'`)).code).toBe(126);
    expect(existsSync(`${link}-touched`)).toBe(false);
  });

  test("in the first line of a script is that program with the script, also where PATH has the script", async () => {
    const script = executable(join(bin, "script"), `#!${shim()} words\n`);
    expect(await shell("script a")).toMatchObject({
      code: 0,
      stdout: `words|${script}|a|`,
      stderr: "",
    });
  });

  test("of another installation is no program behind it", async () => {
    const other = join(broker.folder, "other");
    mkdirSync(other);
    copyFileSync(readlinkSync(shim()), join(other, "substrate-shim"));
    chmodSync(other, 0o755);
    symlinkSync(join(other, "substrate-shim"), join(other, "tool"));
    const path = `${join(broker.home, "shims")}:${other}:${bin}:/usr/bin:/bin`;
    expect(await shell("tool words apart", path)).toMatchObject({
      code: 0,
      stdout: "words|apart|",
      stderr: "",
    });
    const cmd = JSON.stringify(["tool", "words", "apart"]);
    const starts = broker.spans().filter((span) => span.cmd === cmd && span.event_type === "command_start");
    expect(starts.length).toBe(1);
  });

  test("looks for it in the working directory where PATH has an empty folder, and the rules do too", async () => {
    const path = `${join(broker.home, "shims")}::${bin}:/usr/bin:/bin`;
    executable(join(broker.project, "tool"), "#!/bin/sh\necho here\n");
    expect((await shell("tool twin", path)).stdout).toBe("here\n");
    const denied = SHIM_POLICY.replace("denied: [", `denied: ["${join(broker.project, "tool")} *", `);
    broker.write(join(broker.home, "policies/default.yaml"), denied);
    expect(await shell("tool twin", path)).toMatchObject({
      code: 126,
      stdout: "",
    });
  });

  test("is the program that its name leads to, also behind many folders of PATH", async () => {
    const [impostor, tool] = [join(broker.folder, "many/impostor"), join(broker.folder, "many/tool")];
    executable(impostor, "#!/bin/sh\necho started\n");
    symlinkSync(impostor, tool);
    const behind = (folders: readonly string[]): string =>
      [join(broker.home, "shims"), ...folders, join(broker.folder, "many"), "/usr/bin:/bin"].join(":");
    const policy = SHIM_POLICY.replace("denied: [", 'denied: ["impostor seen *", ');
    broker.write(join(broker.home, "policies/default.yaml"), policy);
    const folders = Array.from({ length: 200 }, (_, at) => join(broker.folder, `no-${at}`));
    expect((await shell("tool twin x", behind(folders))).stdout).toBe("started\n");
    expect(await shell("tool seen x", behind(folders))).toMatchObject({ code: 126, stdout: "" });
    // The same folders again are no further ones.
    expect((await shell("tool twin x", behind([...folders, ...folders]))).stdout).toBe("started\n");
    expect(await shell("tool seen x", behind([...folders, ...folders]))).toMatchObject({
      code: 126,
      stdout: "",
    });
    const far = behind(Array.from({ length: 300 }, (_, at) => join(broker.folder, `no-${at}`)));
    const refused = await shell("tool twin x", far);
    expect([refused.code, refused.stderr]).toEqual([126, expect.stringContaining("too long to be checked")]);
    broker.write(join(broker.home, "policies/default.yaml"), policy.replace("enforce", "observe"));
    expect((await shell("tool seen x", far)).stdout).toBe("started\n");
  });

  test("starts a file without a first line as execvp(3) and every shell do", async () => {
    executable(join(bin, "tool"), `printf '%s|' "$0" "$@"\n`);
    expect(await shell("tool a b")).toMatchObject({
      code: 0,
      stdout: `${join(bin, "tool")}|a|b|`,
      stderr: "",
    });
  });
});
