import { describe, expect, test } from "vitest";
import { WorldUnavailable } from "../../../../world/model/unavailable.ts";
import { hostsNetwork, networkWord } from "../../../../world/network/launch.ts";

const NOTHING = { ports: [], ranges: [] };
const REFUSED = { network: undefined, refusal: "the kernel says EPERM" };

describe("the vector's word for a network that could not be made", () => {
  test("is 'off' where init has unshared none either, whatever was asked for", () => {
    expect(networkWord(REFUSED, NOTHING, false)).toBe("off: not unshared");
    expect(networkWord(REFUSED, { ports: [443], ranges: [] }, false)).toBe("off: not unshared");
  });

  test("is 'off' where the world has the host's, and says what that opens", () => {
    const word = networkWord(hostsNetwork(undefined), NOTHING, false);
    expect(word).toMatch(/^off: the host's network \(world\.isolate_network: false\)/);
    expect(() => hostsNetwork("a container has its own")).toThrow(WorldUnavailable);
  });

  test("is 'on' for an empty one when nothing was asked for, and names the cause when something was", () => {
    expect(networkWord(REFUSED, NOTHING, true)).toBe("on");
    for (const rules of [
      { ports: [443], ranges: [] },
      { ports: [], ranges: [{ cidr: "10.0.0.0/8", ports: "any" as const }] },
    ])
      expect(networkWord(REFUSED, rules, true)).toBe(
        "degraded: no host can be reached: the kernel says EPERM",
      );
  });
});
