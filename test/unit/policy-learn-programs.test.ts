import { describe, expect, test } from "vitest";
import { learn, LISTED, values } from "../support/policy/learned.ts";

const GIT = "/usr/bin/git";

describe("what a running command started, and a rule would have stopped", () => {
  test("gets the rule that allows it, as a command gets it", () => {
    const proposal = learn(LISTED, [
      { program: GIT, argv: [GIT, "rev-parse", "HEAD"] },
      { program: GIT, argv: [GIT, "rev-parse", "HEAD"] },
    ]);
    expect(values(proposal)).toEqual(["commands.allowed /usr/bin/git rev-parse HEAD"]);
    expect(proposal.additions[0]?.seen.count).toBe(2);
    expect(proposal.checked.learned).toBe(1);
  });

  test("gets none where a denial stops it, and is named there", () => {
    const proposal = learn(LISTED, [{ program: "/usr/bin/sudo", argv: ["/usr/bin/sudo", "true"] }]);
    expect(values(proposal)).toEqual([]);
    expect(proposal.commands.map(({ fate }) => fate.kind)).toEqual(["denied"]);
  });

  test.each([
    ["its words were cut", { program: GIT, argv: [GIT, "log"], cut: true }],
    ["a credential in them was replaced", { program: GIT, argv: [GIT, "[redacted:token]"] }],
    ["its folder is not known", { program: "/home/ann/app/sub/run.sh", argv: ["./run.sh", "x"] }],
    ["its words are a count of many", { program: GIT, cmd: "12 more" }],
    ["it was allowed", { program: GIT, argv: [GIT, "log"], verdict: "allow" }],
  ] as const)("is not learned from where %s", (_why, told) => {
    const proposal = learn(LISTED, [told]);
    expect(values(proposal)).toEqual([]);
    expect(proposal.commands).toEqual([]);
  });
});
