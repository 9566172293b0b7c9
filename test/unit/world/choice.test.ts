import { describe, expect, test } from "vitest";
import { backendNames } from "../../../api/cli/backend-names.ts";
import type { Isolation } from "../../../schemas/generated/types.ts";
import {
  type BackendChoice,
  type World,
  type WorldBackend,
  WorldUnavailable,
} from "../../../world/backend.ts";
import { FirstThatWorks } from "../../../world/choice.ts";
import { LaunchFailed, isHostRefusal } from "../../../world/linux/launch.ts";

const NEVER = new AbortController().signal;

/** A backend whose probes go as the list says, the last entry for ever. */
class Scripted implements WorldBackend {
  readonly name: string;
  readonly held = null;
  probes = 0;
  closed = false;
  readonly #script: readonly (Error | "works" | "hangs")[];

  constructor(name: string, ...script: readonly (Error | "works" | "hangs")[]) {
    this.name = name;
    this.#script = script;
  }

  probe(signal: AbortSignal): Promise<Isolation> {
    const step = this.#script[Math.min(this.probes++, this.#script.length - 1)];
    if (step === "works") return Promise.resolve({ backend: this.name } as Isolation);
    if (step === "hangs")
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new WorldUnavailable("too slow", "wait")));
      });
    return Promise.reject(step ?? new Error(`${this.name} has no script`));
  }

  start(id: string): Promise<World> {
    return Promise.resolve({ id: `${this.name}:${id}` } as World);
  }

  filterHash(): null {
    return null;
  }

  dropLeft(): Promise<number> {
    return Promise.resolve(0);
  }

  dropHeld(): Promise<void> {
    return Promise.resolve();
  }

  expireHeld(): Promise<number> {
    return Promise.resolve(7);
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

function refused(what: string): WorldUnavailable {
  return new WorldUnavailable(`${what} is refused`, `Mend ${what}`);
}

function chooser(...backends: readonly Scripted[]): { chosen: FirstThatWorks; choices: BackendChoice[] } {
  const choices: BackendChoice[] = [];
  const candidates = backends.map((backend) => ({
    backend,
    yields: (error: WorldUnavailable) => error.message.endsWith("refused"),
  }));
  return { chosen: new FirstThatWorks(candidates, (choice) => choices.push(choice)), choices };
}

describe("the first backend that works", () => {
  test("is the first of the list, and the others are never tried", async () => {
    const [one, two] = [new Scripted("one", "works"), new Scripted("two", "works")];
    const { chosen, choices } = chooser(one, two);
    expect((await chosen.start("w", {} as never, NEVER)).id).toBe("one:w");
    expect([one.probes, two.probes]).toEqual([1, 0]);
    expect(choices).toEqual([{ backend: "one", refused: [] }]);
  });

  test("is the next one when the host refuses one, is told of once, and stays", async () => {
    const { chosen, choices } = chooser(
      new Scripted("one", refused("one"), "works"),
      new Scripted("two", "works"),
    );
    const worlds = await Promise.all(["a", "b"].map((id) => chosen.start(id, {} as never, NEVER)));
    expect(worlds.map(({ id }) => id)).toEqual(["two:a", "two:b"]);
    expect(chosen.name).toBe("two");
    expect(await chosen.probe(NEVER)).toEqual({ backend: "two" });
    expect(choices).toEqual([
      { backend: "two", refused: [{ backend: "one", message: "one is refused", hint: "Mend one" }] },
    ]);
  });

  test("is none after a failure that is no refusal: that failure is the answer, and the next call tries again", async () => {
    const { chosen, choices } = chooser(
      new Scripted("one", new WorldUnavailable("out of memory", "wait"), "works"),
      new Scripted("two", "works"),
    );
    await expect(chosen.probe(NEVER)).rejects.toThrow("out of memory");
    expect(choices).toEqual([]);
    expect(await chosen.probe(NEVER)).toEqual({ backend: "one" });
  });

  test("is none when all refuse: the error has each reason and each mend, and the next call tries again", async () => {
    const { chosen } = chooser(
      new Scripted("one", refused("one")),
      new Scripted("two", refused("two"), "works"),
    );
    await expect(chosen.probe(NEVER)).rejects.toMatchObject({
      message: "Cannot make a world on this host. one: one is refused; two: two is refused",
      hint: "Mend one. Or: Mend two",
    });
    expect(await chosen.probe(NEVER)).toEqual({ backend: "two" });
  });

  test("is none when the caller's time is over: a slow host is not given another isolation", async () => {
    const patience = new AbortController();
    const two = new Scripted("two", "works");
    const { chosen } = chooser(new Scripted("one", "hangs"), two);
    const probing = chosen.probe(patience.signal);
    patience.abort(new Error("over"));
    await expect(probing).rejects.toThrow("too slow");
    expect(two.probes).toBe(0);
  });

  test("closing gives up a search and closes every backend", async () => {
    const [one, two] = [new Scripted("one", "hangs"), new Scripted("two", "works")];
    const { chosen } = chooser(one, two);
    const probing = chosen.probe(NEVER);
    const [given] = await Promise.allSettled([probing, chosen.close()]);
    expect(given).toMatchObject({ status: "rejected", reason: { message: "too slow" } });
    expect([one.closed, two.closed, two.probes]).toEqual([true, true, 0]);
  });

  test("held changes expire before any backend is chosen", async () => {
    const one = new Scripted("one", "works");
    expect(await chooser(one).chosen.expireHeld("/layers", 1)).toBe(7);
    expect(one.probes).toBe(0);
  });
});

describe("a host's refusal", () => {
  test.each([
    ["unshare user", "EPERM", true],
    ["unshare user", "ENOSPC", true],
    ["write", "EACCES", true],
    ["unshare", "ENOSYS", true],
    ["unshare user", "ENOMEM", false],
    ["fork", "EAGAIN", false],
    ["protocol", "EINVAL", false],
  ])("%s with %s: %s", (step, errno, expected) => {
    expect(isHostRefusal(new LaunchFailed(step, "", errno))).toBe(expected);
  });

  test("is not what has another cause", () => {
    expect(isHostRefusal(new WorldUnavailable("it was not ready in time", ""))).toBe(false);
  });
});

describe("SUBSTRATE_BACKEND", () => {
  test("unset or empty, every backend is tried, the host's own first and docker last", () => {
    expect(backendNames(undefined, "linux")).toEqual(["linux", "podman", "podman:runc", "docker"]);
    expect(backendNames(undefined, "darwin")).toEqual(["lima"]);
    expect(backendNames("", "linux")).toEqual(backendNames(undefined, "linux"));
  });

  test.each([
    ["linux", ["linux"]],
    ["podman", ["podman", "podman:runc"]],
    ["docker", ["docker"]],
  ])("'%s' forces it", (word, names) => {
    expect(backendNames(word, "linux")).toEqual(names);
  });

  test.each(["Linux", "auto", "constructor", "podman,docker"])("'%s' is refused", (word) => {
    expect(() => backendNames(word, "linux")).toThrow(
      /: it must be one of linux, podman, docker, lima, agent$/,
    );
  });
});
