/**
 * From the table to the classic BPF program that seccomp(2) takes: eight bytes an instruction, little-endian
 * (code u16, jump if true u8, jump if false u8, k u32; include/uapi/linux/filter.h).
 */
import { createHash } from "node:crypto";
import { constants } from "node:os";
import { type Architecture, callNumber } from "./numbers.ts";
import type { ArgumentTest, SeccompAction, SeccompRule } from "./table.ts";

/** BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_{JEQ,JGE,JSET} | BPF_K, BPF_RET | BPF_K. */
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in struct seccomp_data; an argument has eight bytes, its low half first. */
const AT_NUMBER = 0;
const AT_ARCHITECTURE = 4;
const AT_ARGUMENTS = 16;

/** SECCOMP_RET_ALLOW, _KILL_PROCESS, _ERRNO (include/uapi/linux/seccomp.h). */
const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const ERRNO = 0x0005_0000;

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64; calls of any other architecture (i386 on x86-64) end the process. */
const AUDIT: Readonly<Record<Architecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

/** Numbers of the x32 interface have this bit: the same calls by another name. */
const X32_BIT = 0x4000_0000;

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, k: number];

/** A filter as the bytes of a BPF program; everything that no rule denies is allowed. */
export function assembleFilter(rules: readonly SeccompRule[], architecture: Architecture): Uint8Array {
  const numbered = rules.flatMap((rule) => {
    const number = callNumber(rule.call, architecture);
    return number === null ? [] : [{ rule, number }];
  });
  return encode([
    [LOAD, 0, 0, AT_ARCHITECTURE],
    [JUMP_EQUAL, 1, 0, AUDIT[architecture]],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, AT_NUMBER],
    ...(architecture === "x64" ? refuseX32() : []),
    ...numbered.flatMap(({ rule, number }) => ruleBlock(rule, number)),
    [RETURN, 0, 0, ALLOW],
  ]);
}

/** `sha256:` and hex: two worlds with the same one refuse the same. */
export function filterHash(filter: Uint8Array): string {
  return `sha256:${createHash("sha256").update(filter).digest("hex")}`;
}

function refuseX32(): readonly Instruction[] {
  return [
    [JUMP_AT_LEAST, 0, 1, X32_BIT],
    [RETURN, 0, 0, answer("ENOSYS")],
  ];
}

/** The number stands in the accumulator before a block and again after it. */
function ruleBlock(rule: SeccompRule, number: number): readonly Instruction[] {
  const denial: Instruction = [RETURN, 0, 0, answer(rule.action)];
  const tests = rule.when ?? [];
  if (tests.length === 0) return [[JUMP_EQUAL, 0, 1, number], denial];
  const body = testBlocks(tests, [denial]);
  const restore: Instruction = [LOAD, 0, 0, AT_NUMBER];
  return [[JUMP_EQUAL, 0, body.length + 1, number], ...body, restore];
}

/** Each test jumps past everything behind it when it does not hold. */
function testBlocks(tests: readonly ArgumentTest[], end: readonly Instruction[]): readonly Instruction[] {
  return tests.reduceRight<readonly Instruction[]>(
    (rest, test) => [...testBlock(test, rest.length), ...rest],
    end,
  );
}

function testBlock(test: ArgumentTest, skip: number): readonly Instruction[] {
  const load: Instruction = [LOAD, 0, 0, AT_ARGUMENTS + 8 * test.argument];
  if ("anyOf" in test) return [load, [JUMP_ANY_BIT, 0, skip, test.anyOf]];
  const values = "isIn" in test ? test.isIn : test.notIn;
  const compare = values.map((value, at): Instruction => {
    const left = values.length - 1 - at;
    // A value that is found leads to what follows (isIn) or past it (notIn); so does the last that is not, the other way.
    const found = "isIn" in test ? left : left + skip;
    const missed = left > 0 ? 0 : "isIn" in test ? skip : 0;
    return [JUMP_EQUAL, found, missed, value];
  });
  return [load, ...compare];
}

function answer(action: SeccompAction): number {
  return ERRNO | constants.errno[action];
}

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, [code, whenTrue, whenFalse, k]] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(whenTrue, at * 8 + 2);
    bytes.writeUInt8(whenFalse, at * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, at * 8 + 4);
  }
  return bytes;
}
