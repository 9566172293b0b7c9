import { describe, expect, test } from "vitest";
import type { WorldSpec } from "../../../world/backend.ts";
import { LimaBackend } from "../../../lima/backend.ts";

const backend = (projects: readonly string[]): LimaBackend =>
  new LimaBackend({
    version: "0.0.0",
    uid: 1000,
    store: "0123456789abcdef",
    socket: "/nowhere/lima-agent.sock",
    takeOut: (path) => path,
    ground: { home: "/Users/me", installation: "/opt/substrate" },
    projects: () => projects,
    template: "/nowhere/substrate.yaml",
    file: "/nowhere/lima.yaml",
    environment: {},
    note: () => {},
  });

describe("the backend of the virtual machine", () => {
  test("without folders for projects says where to name them, and asks Lima nothing", async () => {
    await expect(backend([]).probe(new AbortController().signal)).rejects.toMatchObject({
      message: expect.stringMatching(/does not know which folders the virtual machine may show/),
      hint: expect.stringMatching(/'projects: \[~\/code\]'/),
    });
  });

  test("refuses a project that the machine does not show, by name", async () => {
    const spec = { project: "/Users/me/codes", access: { kind: "direct" } } as WorldSpec;
    await expect(
      backend(["/Users/me/code"]).start("wld_1", spec, new AbortController().signal),
    ).rejects.toThrow(/does not show '\/Users\/me\/codes'/);
  });
});
