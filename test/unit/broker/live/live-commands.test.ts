import { expect, test } from "vitest";
import { LiveCommands } from "../../../../broker/live/live-commands.ts";

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
