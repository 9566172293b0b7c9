/** Terminals of a world, through a WebSocket: what the kernel's terminal does, inside as outside. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors } from "../support/users/users.ts";

const bash = (more: object = {}): Readonly<Record<string, unknown>> => ({
  argv: ["bash", "--norc", "--noprofile", "-i"],
  env: { PS1: "READY> " },
  pty: true,
  ...more,
});

describe.each(actors())("terminals, as $kind", (actor) => {
  test("a command has a terminal of its world's own, of the size and kind that was asked for", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "tty; stty size; echo $TERM; ls /dev/pts; ps -o sid=,pgid=,tpgid= -p $$; echo to-err >&2; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all",
        pty: true,
        cols: 100,
        rows: 30,
        term: "vt100",
      });
      expect(await client.ended()).toMatchObject({ exit: 0 });
      expect(client.screen).toMatch(
        /^\/dev\/pts\/0\r\n30 100\r\nvt100\r\n0\s+ptmx\r\n\s*(\d+)\s+\1\s+\1\r\nto-err\r\nall\r\n$/,
      );
      expect(client.err).toHaveLength(0);
      const { span_id: span = "" } = await client.ended();
      expect((await broker.span(span)).replayable).toBe(false);
    });
  });

  test("job control: Ctrl-Z stops, fg goes on, Ctrl-C interrupts, Ctrl-\\ quits, each the foreground alone", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, bash());
      await client.shows("READY> ");
      // The program prints a line when it runs: the terminal echoes the typed line before the program has started.
      const sleeper = "sh -c 'echo in''side $0; exec sleep 1000'";
      client.type(`${sleeper} 1\r`);
      await client.shows("inside 1\r\n");
      client.type("\x1a");
      await client.shows(/\[1\]\+\s+Stopped/);
      client.type("fg\r");
      await client.shows(/fg\r\n[^]*sh -c [^\n]* 1\r\n/);
      client.type("\x03");
      await client.shows(/\^C\r\n[^]*READY> /);
      client.type("echo code $?\r");
      await client.shows("code 130\r\n");
      client.type(`${sleeper} 2\r`);
      await client.shows("inside 2\r\n");
      client.tell({ type: "signal", signal: "SIGQUIT" });
      await client.shows(/inside 2\r\n[^]*READY> /);
      client.type("echo then $?\r");
      await client.shows("then 131\r\n");
      client.type("exit 7\r");
      expect(await client.ended()).toMatchObject({ exit: 7 });
    });
  });

  test("a client with job control is told that Ctrl-Z stopped the command, and continues it; for others the command goes on", async () => {
    await withBroker(actor, {}, async (broker) => {
      const cmd = "echo ready $$; until read -r word; do :; done; echo got $word; ps -o pgid=,tpgid= -p $$";
      for (const job of [true, false]) {
        const client = await StreamClient.open(broker, { cmd, pty: true, job_control: job });
        await client.shows(/ready/);
        client.type("\x1a");
        if (job) {
          await client.until(() => client.last?.type === "stopped", "the stopped message");
          expect(client.last).toEqual({ type: "stopped", signal: "SIGTSTP" });
          client.type("word\r");
          await client.shows("word\r\n");
          client.tell({ type: "signal", signal: "SIGCONT" });
        } else client.type("word\r");
        expect(await client.ended()).toMatchObject({ exit: 0 });
        expect(client.screen).toMatch(/got word\r\n *(\d+) +\1\r\n$/);
        expect(client.messages.map(({ type }) => type)).toEqual([
          "started",
          ...(job ? ["stopped"] : []),
          "exit",
        ]);
      }
    });
  });

  test("a stopped command ends with its client, and job control without a terminal or a client that stays is refused", async () => {
    await withBroker(actor, {}, async (broker) => {
      const marker = `stopped-${randomBytes(6).toString("hex")}`;
      const client = await StreamClient.open(broker, {
        // A builtin waits: dash starts a program by vfork(2), and a stop in that moment halts the child alone, outside too.
        cmd: `: ${marker}; echo ready; read -r word`,
        pty: true,
        job_control: true,
      });
      await client.shows("ready");
      client.type("\x1a");
      await client.until(() => client.last?.type === "stopped", "the stopped message");
      expect(processesWith(marker).length).toBeGreaterThan(0);
      client.leave();
      expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
      for (const wrong of [{}, { pty: true, on_disconnect: "detach" }]) {
        const refused = await StreamClient.open(broker, { cmd: "true", job_control: true, ...wrong });
        expect((await refused.ended()).error).toMatchObject({ code: "invalid_request", path: "job_control" });
      }
      const twice = await StreamClient.open(broker, { cmd: "true", pty: true, outputs: "together" });
      expect((await twice.ended()).error).toMatchObject({ code: "invalid_request", path: "outputs" });
    });
  });

  test("commands with job control start and end while others kill everything that they can reach", async () => {
    await withBroker(actor, {}, async (broker) => {
      let isOver = false;
      const killer = (async () => {
        while (!isOver) await broker.post({ cmd: "kill -9 -1" });
      })();
      const ends = [];
      for (let at = 0; at < 20; at++) {
        const client = await StreamClient.open(broker, { cmd: "sleep 0.02", pty: true, job_control: true });
        ends.push(await client.ended());
      }
      isOver = true;
      await killer;
      expect(ends.filter(({ type }) => type === "exit" || type === "error")).toHaveLength(20);
      const after = await StreamClient.open(broker, { cmd: "tty", pty: true, job_control: true });
      expect(await after.ended()).toMatchObject({ exit: 0 });
    });
  });

  test("a script that closes its terminal and opens it again by name, for a password, is seen and can be typed to", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "exec </dev/null >log 2>&1; for i in 1 2 3; do sleep 0.2; echo round $i >/dev/tty; done; read -r word </dev/tty; echo got $word >/dev/tty; sleep 0.2",
        pty: true,
      });
      await client.shows("round 3");
      client.type("secret\r");
      expect(await client.ended()).toMatchObject({ exit: 0 });
      expect(client.screen).toBe("round 1\r\nround 2\r\nround 3\r\nsecret\r\ngot secret\r\n");
    });
  });

  test("a new size reaches the foreground as SIGWINCH", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done",
        pty: true,
      });
      await client.shows("ready");
      client.tell({ type: "resize", cols: 33, rows: 12 });
      await client.ended();
      expect(client.screen).toContain("12 33\r\n");
    });
  });

  test("the last bytes before the exit are never lost, also with a process that holds the terminal open", async () => {
    await withBroker(actor, {}, async (broker) => {
      const wanted = Array.from({ length: 4000 }, (_, at) => `${at}\n`).join("");
      for (let round = 0; round < 60; round += 1) {
        const rest = round % 3 === 0 ? " & sleep 1000 & wait $!x 2>/dev/null; wait %1" : "";
        const cmd = `stty -opost; seq 0 3999${rest}`;
        const client = await StreamClient.open(broker, { cmd, shell: "bash", pty: true });
        await client.ended();
        expect(client.screen === wanted, `round ${round}: ${client.screen.length} of ${wanted.length}`).toBe(
          true,
        );
      }
    });
  });

  test("random bytes pass a raw terminal unchanged in both directions", async () => {
    await withBroker(actor, {}, async (broker) => {
      const bytes = randomBytes(1024 * 1024);
      const client = await StreamClient.open(broker, {
        cmd: `stty raw -echo; echo ready; head -c ${bytes.length}`,
        pty: true,
      });
      await client.shows("ready\n");
      for (let at = 0; at < bytes.length; at += 50_000) client.type(bytes.subarray(at, at + 50_000));
      await client.ended();
      expect(client.out.subarray("ready\n".length).equals(bytes)).toBe(true);
    });
  });

  test("the end of input is typed as the end-of-file character, also in the middle of a line", async () => {
    await withBroker(actor, {}, async (broker) => {
      for (const text of ["a line\r", "no line end"]) {
        const client = await StreamClient.open(broker, {
          cmd: "stty -echo; echo ready; cat; echo over",
          pty: true,
        });
        await client.shows("ready\r\n");
        client.type(text);
        client.tell({ type: "stdin_eof" });
        expect(await client.ended()).toMatchObject({ exit: 0 });
        expect(client.screen).toContain("over\r\n");
      }
    });
  });

  test("many ends of input, between as much input as fits, do no harm to the world or to other commands", async () => {
    await withBroker(actor, {}, async (broker) => {
      const other = await StreamClient.open(broker, {
        cmd: "until [ -e go ]; do sleep 0.05; done; echo lived",
      });
      const client = await StreamClient.open(broker, {
        cmd: "stty -echo; echo ready; until [ -e go ]; do sleep 0.05; done; cat > /dev/null",
        pty: true,
      });
      await client.shows("ready\r\n");
      const line = `${"x".repeat(63)}\n`;
      for (let round = 0; round < 40; round += 1) {
        client.type(line.repeat(500));
        client.tell({ type: "stdin_eof" });
        client.tell({ type: "stdin_eof" });
      }
      // As much as fits has been sent then, and waits.
      await sleep(1500);
      broker.write(join(broker.project, "go"), "");
      await other.ended();
      expect(other.screen).toBe("lived\n");
      client.tell({ type: "signal", signal: "SIGINT" });
      expect((await client.ended()).type).toBe("exit");
    });
  });

  test("input for a terminal that nobody has open costs nothing and blocks nothing", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "echo ready; exec </dev/null >/dev/null 2>&1; sleep 3",
        pty: true,
        stdin: true,
      });
      await client.shows("ready\r\n");
      await sleep(300);
      for (let round = 0; round < 4; round += 1) client.type(Buffer.alloc(64 * 1024, "x"));
      const { usage } = await client.ended();
      expect(usage).toBeDefined();
      const taken = client.messages.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
      expect(taken).toBe(4 * 64 * 1024);
    });
  });

  test("characters of several bytes that are split over messages arrive whole", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: 'stty -echo; echo ready; read l; echo "<$l>"',
        pty: true,
      });
      await client.shows("ready\r\n");
      for (const byte of Buffer.from("日本é́𝄞\r")) client.type(Buffer.from([byte]));
      await client.ended();
      expect(client.screen).toContain("<日本é́𝄞>\r\n");
    });
  });

  test("a client that leaves hangs the terminal up: what ran there ends", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, bash());
      await client.shows("READY> ");
      client.type("trap 'touch hung-up' HUP TERM; sleep 1000 & wait\r");
      const span = await client.started();
      client.leave();
      await client.until(
        () => broker.spans().some((one) => one.span_id === span && one.outcome !== null),
        "the span's end",
      );
      const end = broker.spans().findLast((one) => one.span_id === span);
      expect(end?.outcome).toBe("cancelled");
    });
  });

  test("twenty terminals at once are each other's strangers", async () => {
    await withBroker(actor, {}, async (broker) => {
      const clients = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          StreamClient.open(broker, { cmd: `read l; echo "got $l-${at}"`, pty: true }),
        ),
      );
      await Promise.all(clients.map((client) => client.started()));
      clients.forEach((client, at) => client.type(`line${at}\r`));
      const ends = await Promise.all(clients.map((client) => client.ended()));
      expect(ends.map(({ exit }) => exit)).toEqual(clients.map(() => 0));
      clients.forEach((client, at) => expect(client.screen).toContain(`got line${at}-${at}\r\n`));
    });
  });
});
