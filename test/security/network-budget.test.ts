import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import type { Seen } from "../support/network/messages.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const NAME = "files.example.test";
const BUDGET = 1_000_000;
const STREAMS = 50;

/** Uploads `BYTES` over each of `STREAMS` connections at once; prints how many were taken whole, and how many cut. */
const UPLOADS = `
import socket, sys, threading
streams, size = int(sys.argv[1]), int(sys.argv[2])
whole, ready = [], threading.Barrier(streams)
def upload():
    try:
        with socket.create_connection(("${NAME}", 9000), 20) as s:
            s.settimeout(20)
            ready.wait(20)
            s.sendall(bytes(size))
            s.shutdown(socket.SHUT_WR)
            if s.recv(100).decode().strip() == str(size): whole.append(1)
    except (OSError, threading.BrokenBarrierError): ready.abort()
threads = [threading.Thread(target=upload) for _ in range(streams)]
for t in threads: t.start()
for t in threads: t.join()
print(len(whole), streams - len(whole))
`;

describe.each(actorsWith("python3", "nft"))("a budget of bytes, as $kind", (actor) => {
  let place: NetworkPlace;
  const open = async (net: string, more = ""): Promise<void> => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([`${NAME}:9000`, NAME], { net, more }) });
    place.broker.write(`${place.broker.project}/uploads.py`, UPLOADS);
  };
  afterEach(() => place.close());

  const uploads = async (streams: number, size: number): Promise<{ stdout: string; seen: Seen }> => {
    const { result, seen } = await place.during(`python3 uploads.py ${streams} ${size}`);
    expect(result.stderr).toBe("");
    return { stdout: result.stdout, seen };
  };

  const BUDGETS = [
    { of: "the policy's egress budget", net: `  egress_budget: { total_bytes: ${BUDGET} }` },
    { of: "an agent's share", more: `budgets: { window: 24h, default: { max_egress_bytes: ${BUDGET} } }` },
  ];

  describe.each(BUDGETS)("$of", ({ net = "", more = "" }) => {
    beforeEach(() => open(net, more));

    test(`is no byte more than ${BUDGET} by ${STREAMS} uploads at once; afterwards commands run and their connections are refused`, async () => {
      const { stdout, seen } = await uploads(STREAMS, 100_000);
      const received = bytesIn(seen);
      expect(received).toBeLessThanOrEqual(BUDGET);
      // What was held for a stream that could not use it comes back to the others: nearly all of it is used.
      expect(received).toBeGreaterThan(BUDGET * 0.9);
      expect(Number(stdout.split(" ")[1])).toBeGreaterThan(0);
      const again = await place.during("python3 uploads.py 1 1000");
      expect(again.result).toMatchObject({ exit: 0, stdout: "0 1\n" });
      expect(again.result.notices).toMatchObject([{ kind: "budget", count: 1 }]);
      expect(again.seen.connections).toEqual([]);
      // Another connection cannot use what is no longer there, and a download is not what was counted.
      expect(seen.connections.length).toBeLessThanOrEqual(STREAMS);
    });

    test("is not touched by uploads that fit, whole and all at once", async () => {
      const { stdout, seen } = await uploads(STREAMS, 19_000);
      expect(stdout).toBe(`${STREAMS} 0\n`);
      expect(bytesIn(seen)).toBe(STREAMS * 19_000);
      const small = await uploads(1, 1000);
      expect(small.stdout).toBe("1 0\n");
    });

    test("is not spent by what comes in", async () => {
      const { result } = await place.during(
        `curl -sS -o /dev/null -w '%{size_download}' 'http://${NAME}/download?bytes=${3 * BUDGET}'`,
      );
      expect(result.stdout, result.stderr).toBe(String(3 * BUDGET));
      expect((await uploads(10, 90_000)).stdout).toBe("10 0\n");
    });
  });

  test("a second holds an upload back, and does not lose a byte of it", async () => {
    await open("  egress_budget: { bytes_per_sec: 200000 }");
    const { result, seen } = await place.during("python3 uploads.py 4 200000");
    expect(result.stdout, result.stderr).toBe("4 0\n");
    expect(bytesIn(seen)).toBe(800_000);
    // A bucket that is full at first holds one second's bytes.
    expect(result.duration_ms).toBeGreaterThan(2500);
    expect(result.duration_ms).toBeLessThan(8000);
  });
});

function bytesIn(seen: Seen): number {
  return seen.connections.reduce((sum, { received }) => sum + received, 0);
}
