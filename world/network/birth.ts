/** Waits until a network's helper has made its sockets. */
import type { ChildProcess } from "node:child_process";
import { Socket as UdpSocket } from "node:dgram";
import { Server } from "node:net";
import { WorldUnavailable, abortError } from "../model/unavailable.ts";
import { errnoName } from "../model/errno.ts";

/** The helper's messages, one field group each; a socket comes with `dns`, `to` and `connected`. */
export type Said = {
  readonly ready?: number;
  readonly failed?: { readonly step: string; readonly errno: number };
  readonly dns?: "udp" | "tcp";
  readonly to?: string;
  readonly port?: number;
  readonly inode?: number;
  readonly rules?: string;
  readonly connected?: number;
  readonly flushed?: number;
  readonly refused?: number;
  readonly errno?: number;
};

export type Born = { readonly port: number; readonly udp: UdpSocket; readonly tcp: Server };

/** Throws {@link WorldUnavailable} on failure, or when `signal` aborts; the caller ends the child. */
export function birth(child: ChildProcess, signal: AbortSignal): Promise<Born> {
  return new Promise((resolve, reject) => {
    const got: { udp?: UdpSocket; tcp?: Server } = {};
    const settle = (act: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      child.removeAllListeners("message");
      child.removeAllListeners("exit");
      child.removeAllListeners("error");
      act();
    };
    const fail = (why: string): void => {
      got.udp?.close();
      got.tcp?.close();
      settle(() =>
        reject(new WorldUnavailable(`Cannot make a world's network: ${why}`, "Run 'substrate world doctor'")),
      );
      // Close sockets that still arrive: an open socket without an owner would keep this process alive.
      child.on("message", (_said, late) => {
        if (late instanceof Server || late instanceof UdpSocket) late.close();
      });
    };
    const onAbort = (): void => fail(abortError(signal).message);
    signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) => fail(error.message));
    child.once("exit", (code, name) => fail(`its helper ended with ${name ?? `exit code ${code}`}`));
    child.on("message", (said: Said, handle) => {
      if (said.dns === "tcp" && handle instanceof Server) got.tcp = handle;
      else if (said.dns === "udp") got.udp = handle as UdpSocket;
      else if (said.failed !== undefined)
        fail(`${said.failed.step} failed with ${errnoName(said.failed.errno)}`);
      else if (said.ready !== undefined && got.udp !== undefined && got.tcp !== undefined) {
        const born = { port: said.ready, udp: got.udp, tcp: got.tcp };
        settle(() => resolve(born));
      }
    });
  });
}
