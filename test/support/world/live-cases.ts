/** What every backend must do with a command whose input and output travel while it runs. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { TestBroker } from "../broker/broker.ts";
import { StreamClient } from "../broker/stream.ts";

/** @param of the broker of the moment: a case may have started another. */
export function liveCases(of: () => TestBroker): void {
  test("a slow reader slows a command down, and gets every byte in order", async () => {
    const client = await StreamClient.open(of(), { cmd: "seq 1 2000000; touch written" });
    await client.started();
    client.pause();
    await sleep(1500);
    expect(existsSync(join(of().project, "written"))).toBe(false);
    client.resume();
    expect(await client.ended()).toMatchObject({ exit: 0 });
    const lines = client.screen.split("\n");
    expect(lines.length).toBe(2_000_001);
    expect(lines.findIndex((line, at) => line !== String(at + 1))).toBe(2_000_000);
  });

  test("input of any size is the command's, and its end is the end of the file", async () => {
    const bytes = randomBytes(3 * 1024 * 1024 + 1);
    const client = await StreamClient.open(of(), { cmd: "cat" });
    for (let at = 0; at < bytes.length; at += 500_000) client.type(bytes.subarray(at, at + 500_000));
    client.tell({ type: "stdin_eof" });
    expect(await client.ended()).toMatchObject({ exit: 0 });
    expect(client.out.equals(bytes)).toBe(true);
  });

  test("a terminal has its size, echoes, changes its size, and its Ctrl-C interrupts the foreground alone", async () => {
    const argv = ["bash", "--norc", "--noprofile", "-i"];
    const client = await StreamClient.open(of(), {
      ...{ argv, env: { PS1: "READY> " }, pty: true, cols: 100, rows: 30 },
    });
    await client.shows("READY> ");
    client.type("stty size\r");
    await client.shows("30 100\r\n");
    client.tell({ type: "resize", cols: 70, rows: 20 });
    client.type("stty size\r");
    await client.shows("20 70\r\n");
    client.type("sh -c 'echo in''side; exec sleep 1000'\r");
    await client.shows("inside\r\n");
    client.tell({ type: "signal", signal: "SIGINT" });
    client.type("echo code $?\r");
    await client.shows("code 130\r\n");
    client.type("exit 7\r");
    expect(await client.ended()).toMatchObject({ exit: 7 });
  });

  test("Ctrl-Z stops a job, which is told, and SIGCONT continues it", async () => {
    const cmd = "echo ready; until read -r word; do :; done; echo got $word";
    const client = await StreamClient.open(of(), { cmd, pty: true, job_control: true });
    await client.shows("ready");
    client.type("\x1a");
    await client.until(() => client.last?.type === "stopped", "the stopped message");
    client.type("word\r");
    client.tell({ type: "signal", signal: "SIGCONT" });
    expect(await client.ended()).toMatchObject({ exit: 0 });
    expect(client.screen).toContain("got word\r\n");
  });

  test("a signal reaches a command without a terminal", async () => {
    const cmd = "trap 'echo caught; exit 5' USR1; echo begun; while :; do sleep 0.05; done";
    const client = await StreamClient.open(of(), { cmd });
    await client.shows("begun\n");
    client.tell({ type: "signal", signal: "SIGUSR1" });
    expect(await client.ended()).toMatchObject({ exit: 5 });
    expect(client.screen).toBe("begun\ncaught\n");
  });
}
