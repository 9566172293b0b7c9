/** `substrate completion`, at the Tab key of real shells. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node-pty";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { needs } from "../support/run/needs.ts";
import { actors, changeTo, runAs } from "../support/users/users.ts";

const SHELLS = {
  bash: { words: ["bash", "--norc", "--noprofile", "-i"], before: "bind 'set enable-bracketed-paste off'; " },
  zsh: { words: ["zsh", "-f", "-i"], before: "autoload -Uz compinit && compinit -u -D; " },
  fish: { words: ["fish", "--no-config", "-i"], before: "" },
} as const;

describe.each(actors().slice(0, 1))("completion, as $kind", (actor) => {
  test.each(["bash", "zsh", "fish"] as const)(
    "of %s knows commands, their commands and options",
    async (shell) => {
      if (shell !== "bash") needs(shell);
      const { node, launcher } = await installationFor(actor);
      const { stdout: script, stderr } = await runAs(actor, [node, launcher, "completion", shell]);
      expect(stderr).toBe("");
      const folder = mkdtempSync(join(tmpdir(), "substrate-completion-"));
      const { words, before } = SHELLS[shell];
      writeFileSync(join(folder, "script"), script);
      const [program = "", ...rest] = [...changeTo(actor), ...words];
      const env = { PATH: "/usr/bin:/bin", HOME: folder, TERM: "xterm", LANG: "C.UTF-8" };
      const terminal = spawn(program, rest, { cwd: folder, cols: 200, env });
      let text = "";
      terminal.onData((data) => (text += data));
      const sees = async (wanted: RegExp): Promise<void> => {
        const found = await eventually(() => wanted.test(stripVTControlCharacters(text)), 15_000);
        expect(found, `${wanted} in ${JSON.stringify(text.slice(-800))}`).toBe(true);
        text = "";
      };
      try {
        terminal.write(`${before}. ./script; echo rea""dy\r`);
        await sees(/ready\r\n/);
        for (const [typed, completed] of [
          ["substrate polic", /substrate policy /],
          ["substrate policy sho", /substrate policy show /],
          ["substrate trace list --jso", /substrate trace list --json/],
        ] as const) {
          terminal.write(`${typed}\t`);
          await sees(completed);
          terminal.write("\u0015");
        }
      } finally {
        terminal.kill("SIGKILL");
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
