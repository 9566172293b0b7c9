/** Shows a question as a desktop notification. A machine without a desktop or without `notify-send` shows none; nothing fails. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import type { Approval } from "../../../schemas/generated/types.ts";
import { hostPath } from "../../../broker/project/host-path.ts";
import { parseConfig } from "../../../broker/settings/config.ts";
import { approvalLines } from "../words/approval-words.ts";
import { PLAIN } from "../words/colours.ts";
import { withoutGaps } from "../terminal/rows.ts";
import { harmlessExcerpt, type Terminal } from "../terminal/terminal.ts";

/** Longest text, and longest line of it: servers cut longer texts anyway. */
const MAX_TEXT = 1000;
const MAX_LINE = 400;

const PROGRAM_MS = 5000;

/** Whether notifications can be seen here, and config.yaml does not switch them off. */
export function hasDesktop({ environment, home }: Terminal): boolean {
  const { DBUS_SESSION_BUS_ADDRESS: bus, DISPLAY, WAYLAND_DISPLAY } = environment;
  if (!bus && !DISPLAY && !WAYLAND_DISPLAY) return false;
  try {
    if (!existsSync(home.config)) return true;
    const parsed = parseConfig(readFileSync(home.config, "utf8"), home.config);
    return "ok" in parsed && parsed.ok.approvals?.notify !== false;
  } catch {
    // An unreadable file, ignoring: it may say that questions must not be shown on the desktop.
    return false;
  }
}

export function notify({ environment }: Terminal, approval: Approval): void {
  // Every user of the machine reads the words of a program: no values of variables and no input.
  const { env, stdin_text: input, ...subject } = approval.subject;
  const lines = approvalLines(PLAIN, { ...approval, subject }).map(withoutGaps);
  const body = lines.map((line) => harmlessExcerpt(line, MAX_LINE)).join("\n");
  // Nobody answers by a part: a command's end may be what matters.
  const isWhole =
    env === undefined &&
    input === undefined &&
    body.length <= MAX_TEXT &&
    lines.every((line) => line.length <= MAX_LINE);
  const next = isWhole ? `substrate approve ${approval.approval_id} --once` : "substrate approvals shows all";
  const words = [
    "--app-name=Substrate",
    "--",
    "A command waits for your answer",
    `${escaped(body.slice(0, MAX_TEXT))}\n${next}`,
  ];
  // A question comes when an agent wants it to.
  spawn("notify-send", words, {
    env: { ...environment, PATH: hostPath(environment["PATH"], homedir()) },
    cwd: "/",
    stdio: "ignore",
    timeout: PROGRAM_MS,
  })
    .once("error", () => {
      // No notify-send, ignoring: the terminal shows the question.
    })
    .unref();
}

/** Desktops read the body as markup. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
