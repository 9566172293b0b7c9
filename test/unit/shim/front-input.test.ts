/** What the native front sends to a command: standard input, and signals. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { ended, FrontPlace } from "../../support/front/front-place.ts";
import { BINARY } from "../../support/front/stream-server.ts";

const place = new FrontPlace();
afterAll(() => place.remove());
afterEach(() => place.stopServing());

describe("standard input", () => {
  test("of any length arrives whole, never more than 256 KiB ahead of the command, and then its end", async () => {
    const stdin = Buffer.alloc(1_500_000, "0123456789abcdef\n");
    let most = 0;
    await place.serve(async (call) => {
      const request = await call.start();
      expect(request).toMatchObject({ cmd: "cat", stdin: true });
      for (let taken = 0; taken < stdin.length; ) {
        await call.until(() => call.input().length > taken);
        await sleep(5);
        const ahead = call.input().length - taken;
        most = Math.max(most, ahead);
        taken += ahead;
        call.text({ type: "stdin_taken", bytes: ahead });
      }
      await call.until(() => call.texts().length > 0);
      expect(call.texts()).toEqual([{ type: "stdin_eof" }]);
      expect(call.input().equals(stdin)).toBe(true);
      const sizes = call.frames
        .filter(({ opcode }) => opcode === BINARY)
        .map(({ payload }) => payload.length);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536);
      call.exit(0);
    });
    expect(await place.run(["exec", "--", "cat"], { stdin })).toMatchObject({ code: 0, stderr: "" });
    expect(most).toBeLessThanOrEqual(262_144);
  });

  test("that a command does not take stays with its writer after 256 KiB, and the command's end is the end", async () => {
    await place.serve(async (call) => {
      await call.start();
      await call.until(() => call.input().length === 262_144);
      await sleep(100);
      expect(call.input().length).toBe(262_144);
      call.exit(4);
    });
    expect(await place.run(["exec", "--", "true"], { stdin: Buffer.alloc(4_000_000) })).toMatchObject({
      code: 4,
    });
  });

  test("that stays open and silent keeps nobody from ending", async () => {
    await place.serve(async (call) => {
      await call.start();
      await sleep(100);
      call.exit(0);
    });
    const child = place.start(["exec", "--", "true"]);
    expect(await ended(child)).toMatchObject({ code: 0, stderr: "" });
  });

  test("is not asked for where it is the null device", async () => {
    await place.serve(async (call) => {
      expect(await call.start()).toMatchObject({ stdin: false });
      call.exit(0);
    });
    const child = place.start(["exec", "--", "true"], { stdio: ["ignore", "pipe", "pipe"] });
    expect(await ended(child)).toMatchObject({ code: 0 });
  });
});

describe("a signal", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "%s is the command's first, whose exit code counts",
    async (name) => {
      await place.serve(async (call) => {
        await call.start();
        child.kill(name);
        await call.until(() => call.texts().length > 0);
        expect(call.texts()).toEqual([{ type: "signal", signal: name }]);
        call.output("cleaned up\n");
        call.exit(42);
      });
      const child = place.start(["exec", "--", "serve"]);
      expect(await ended(child)).toMatchObject({ code: 42, stderr: "" });
    },
  );

  test("that comes a second time ends the call, also while nobody reads the output", async () => {
    await place.serve(async (call) => {
      await call.start();
      call.output(Buffer.alloc(2_000_000));
      await sleep(300);
      child.kill("SIGINT");
      await call.until(() => call.texts().length > 0);
      child.kill("SIGTERM");
      await call.untilClosed();
    });
    const child = place.start(["exec", "--", "serve"]);
    const [code] = await once(child, "exit");
    expect(code).toBe(143);
  });

  test("before the command has started ends the call", async () => {
    await place.serve(async (call) => {
      call.accept();
      await call.request();
      child.kill("SIGINT");
      await call.untilClosed();
    });
    const child = place.start(["exec", "--", "serve"]);
    expect(await ended(child)).toMatchObject({ code: 130, stderr: "" });
  });

  test("before any answer of the broker ends the call", async () => {
    await place.serve(async (call) => {
      await call.request();
      child.kill("SIGTERM");
      await call.untilClosed();
    });
    const child = place.start(["exec", "--", "serve"]);
    expect(await ended(child)).toMatchObject({ code: 143, stderr: "" });
  });
});
