import { expect, test } from "vitest";
import type { LiveCommand } from "../../../../broker/live/live-command.ts";
import { LiveCommands } from "../../../../broker/live/live-commands.ts";

test("an agent's ended commands are forgotten for its own newer ones, and no other's", () => {
  const commands = new LiveCommands();
  const end = (span: string, caller: string): void => {
    commands.add(span, { isAttached: false, outcome: {} } as unknown as LiveCommand);
    commands.ended(span, caller);
  };
  end("first", "agent:a");
  for (let n = 0; n < 100; n++) end(`b${n}`, "agent:b");
  expect(["first", "b0", "b67", "b68", "b99"].filter((span) => commands.of(span) !== undefined)).toEqual([
    "first",
    "b68",
    "b99",
  ]);
});

test("an agent's commands that may be detached leave room for another's, and all agents' for the operator's", () => {
  const commands = new LiveCommands();
  const taken = (caller: string): number => {
    let count = 0;
    while (count < 1000 && commands.count(caller)) count += 1;
    return count;
  };
  expect(taken("agent:a")).toBe(100);
  expect(["agent:b", "label", "agent:c", "agent:d"].map(taken)).toEqual([100, 100, 100, 0]);
  expect(taken("operator")).toBe(100);
  commands.countBack("agent:b");
  expect(taken("agent:d")).toBe(1);
});
