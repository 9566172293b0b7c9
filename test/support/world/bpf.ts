/** Filters, run without a kernel. */
import type { Architecture } from "../../../world/seccomp/numbers.ts";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
export const AUDIT = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;

export type Call = {
  readonly number: number;
  readonly audit?: number;
  readonly arguments?: readonly bigint[];
};

/** The kernel's interpreter of classic BPF, as far as such filters go. */
export function run(filter: Uint8Array, architecture: Architecture, call: Call): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.audit ?? AUDIT[architecture], 4);
  for (const [at, value] of (call.arguments ?? []).entries()) data.writeBigUInt64LE(value, 16 + 8 * at);
  const code = Buffer.from(filter);
  let accumulator = 0;
  for (let at = 0; at * 8 < code.length; at += 1) {
    const [kind, whenTrue, whenFalse, k] = [
      code.readUInt16LE(at * 8),
      code.readUInt8(at * 8 + 2),
      code.readUInt8(at * 8 + 3),
      code.readUInt32LE(at * 8 + 4),
    ];
    if (kind === 0x06) return k;
    if (kind === 0x20) accumulator = data.readUInt32LE(k);
    else if (kind === 0x15) at += accumulator === k ? whenTrue : whenFalse;
    else if (kind === 0x35) at += accumulator >= k ? whenTrue : whenFalse;
    else if (kind === 0x45) at += (accumulator & k) !== 0 ? whenTrue : whenFalse;
    else throw new Error(`Instruction ${kind} at ${at} is unknown`);
  }
  throw new Error("The filter ends without an answer");
}
