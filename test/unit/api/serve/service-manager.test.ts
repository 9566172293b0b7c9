import { describe, expect, test } from "vitest";
import {
  HandOverRefused,
  pathsByInode,
  serviceManager,
  withoutServiceManager,
} from "../../../../api/serve/service-manager.ts";

const TABLE = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 101 /home/ann/with space/agent.sock
0000000000000000: 00000002 00000000 00010000 0001 01 102 @/home/ann/abstract.sock
0000000000000000: 00000003 00000000 00000000 0001 03 103 /home/ann/connected.sock
0000000000000000: 00000002 00000000 00010000 0005 01 104 /home/ann/packets.sock
0000000000000000: 00000002 00000000 00000000 0002 01 105
`;

describe("what a service manager hands over", () => {
  test("only a listening stream socket with a path counts, whatever the path holds", () => {
    expect([...pathsByInode(TABLE)]).toEqual([["101", "/home/ann/with space/agent.sock"]]);
  });

  test("sockets for another process are not taken: a shell that a service started passes the variables on", () => {
    const { sockets } = serviceManager({ LISTEN_FDS: "2", LISTEN_PID: "1" }, 4242);
    expect(sockets.size).toBe(0);
  });

  test("a descriptor that is no listening socket ends the start", () => {
    expect(() => serviceManager({ LISTEN_FDS: "1", LISTEN_PID: "4242" }, 4242)).toThrow(HandOverRefused);
  });

  test("a Type=notify unit that starts Node itself is told so, not left to time out", () => {
    expect(() => serviceManager({ NOTIFY_SOCKET: "/run/systemd/notify" }, 1)).toThrow(/\.build\/substrate/);
  });

  test.each(["", "-1", "0x3", "9999", "1;2"])("SUBSTRATE_NOTIFY_FD='%s' is refused", (fd) => {
    expect(() => serviceManager({ SUBSTRATE_NOTIFY_FD: fd }, 1)).toThrow(HandOverRefused);
  });

  test("the watchdog hears three signs in its time, and none from a process it does not watch", () => {
    expect(serviceManager({ WATCHDOG_USEC: "60000000" }, 7).watchdogMs).toBe(20_000);
    expect(serviceManager({ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "7" }, 7).watchdogMs).toBe(20_000);
    expect(serviceManager({ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "8" }, 7).watchdogMs).toBeUndefined();
    expect(serviceManager({}, 7).watchdogMs).toBeUndefined();
  });

  test("programs that the broker starts get none of these variables, and all others", () => {
    const own = {
      LISTEN_FDS: "2",
      LISTEN_PID: "7",
      LISTEN_FDNAMES: "a:b",
      WATCHDOG_USEC: "1",
      WATCHDOG_PID: "7",
    };
    const more = { NOTIFY_SOCKET: "/x", SUBSTRATE_NOTIFY_FD: "5", INVOCATION_ID: "abc" };
    expect(withoutServiceManager({ ...own, ...more, PATH: "/bin", LISTEN: "mine" })).toEqual({
      PATH: "/bin",
      LISTEN: "mine",
    });
  });
});
