/**
 * Assembles the table into classic BPF for seccomp(2): eight bytes per instruction, little-endian (code u16, jump if true u8,
 * jump if false u8, k u32; include/uapi/linux/filter.h).
 */
import { createHash } from "node:crypto";
import { constants } from "node:os";
import { type Architecture, AUDIT, callNumber, X32_BIT } from "./numbers.ts";
import type { FileCall } from "./file-calls.ts";
import type { ArgumentTest, SeccompAction, SeccompRule } from "./table.ts";

/** BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_{JEQ,JGE,JSET} | BPF_K, BPF_RET | BPF_K. */
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in struct seccomp_data; an argument has eight bytes, low half first. */
const AT_NUMBER = 0;
const AT_ARCHITECTURE = 4;
const AT_ARGUMENTS = 16;

/** SECCOMP_RET_ALLOW, _KILL_PROCESS, _ERRNO, _USER_NOTIF (include/uapi/linux/seccomp.h). */
const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const ERRNO = 0x0005_0000;
const USER_NOTIF = 0x7fc0_0000;

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, k: number];

/** Return values of a program: for an applicable rule, and for calls by other interfaces. */
type Answers = {
  readonly rule: (rule: SeccompRule) => number;
  /** Calls by another architecture: i386 on x86-64. */
  readonly foreign: number;
  readonly x32: number;
};

/** Assembles a filter as the bytes of a BPF program; calls without a rule are allowed. */
export function assembleFilter(rules: readonly SeccompRule[], architecture: Architecture): Uint8Array {
  return assemble(rules, architecture, {
    rule: ({ action }) => refuse(action),
    foreign: KILL_PROCESS,
    x32: refuse("ENOSYS"),
  });
}

/**
 * Assembles the filter of log mode: notifies a listener instead of refusing; only rules without a report are refused here.
 * `told`: calls to allow, but notify as well.
 */
export function assembleLogFilter(
  rules: readonly SeccompRule[],
  architecture: Architecture,
  told: readonly FileCall[] = [],
): Uint8Array {
  const answers: Answers = {
    rule: ({ action, inLogMode }) => (inLogMode?.told === false ? refuse(action) : USER_NOTIF),
    foreign: USER_NOTIF,
    x32: USER_NOTIF,
  };
  return assemble(rules, architecture, answers, toldBlocks(told, architecture));
}

/**
 * Assembles the guard: the calls that the listener refuses even in log mode. Other interfaces are refused entirely: their numbers
 * differ, so the rules here would not recognise a nested user namespace.
 */
export function assembleGuard(rules: readonly SeccompRule[], architecture: Architecture): Uint8Array {
  const staying = rules.flatMap(({ call, action, reason, when, inLogMode }): readonly SeccompRule[] => {
    const condition = inLogMode?.when ?? when;
    if (inLogMode === undefined) return [];
    return [{ call, action, reason, ...(condition === undefined ? {} : { when: condition }) }];
  });
  return assemble(staying, architecture, {
    rule: ({ action }) => refuse(action),
    foreign: refuse("ENOSYS"),
    x32: refuse("ENOSYS"),
  });
}

/**
 * Assembles a filter to be loaded on top of a filter that handles other architectures and x32: the strictest answer of several
 * filters counts (seccomp(2)). Each command loads such a filter, so every instruction costs. `told`: calls to notify.
 */
export function assembleShortFilter(
  rules: readonly SeccompRule[],
  architecture: Architecture,
  told: readonly FileCall[] = [],
): Uint8Array {
  const blocks = ruleBlocks(rules, architecture, ({ action }) => refuse(action));
  const asking = toldBlocks(told, architecture);
  return encode([[LOAD, 0, 0, AT_NUMBER], ...blocks, ...asking, [RETURN, 0, 0, ALLOW]]);
}

/** Returns `sha256:` and hex: worlds with equal hashes refuse the same calls. */
export function filterHash(...programs: readonly Uint8Array[]): string {
  return `sha256:${createHash("sha256").update(Buffer.concat(programs)).digest("hex")}`;
}

function assemble(
  rules: readonly SeccompRule[],
  architecture: Architecture,
  answers: Answers,
  more: readonly Instruction[] = [],
): Uint8Array {
  return encode([
    [LOAD, 0, 0, AT_ARCHITECTURE],
    [JUMP_EQUAL, 1, 0, AUDIT[architecture]],
    [RETURN, 0, 0, answers.foreign],
    [LOAD, 0, 0, AT_NUMBER],
    ...(architecture === "x64" ? x32Block(answers.x32) : []),
    ...ruleBlocks(rules, architecture, answers.rule),
    ...more,
    [RETURN, 0, 0, ALLOW],
  ]);
}

function x32Block(answer: number): readonly Instruction[] {
  return [
    [JUMP_AT_LEAST, 0, 1, X32_BIT],
    [RETURN, 0, 0, answer],
  ];
}

function ruleBlocks(
  rules: readonly SeccompRule[],
  architecture: Architecture,
  answer: Answers["rule"],
): readonly Instruction[] {
  return rules.flatMap((rule) => {
    const number = callNumber(rule.call, architecture);
    return number === null ? [] : ruleBlock(rule, number, answer(rule));
  });
}

/** Calls notified unconditionally share one return, so each costs one instruction. */
function toldBlocks(calls: readonly FileCall[], architecture: Architecture): readonly Instruction[] {
  const numbered = calls.map((row) => ({ ...row, number: callNumber(row.call, architecture) }));
  const known = numbered.flatMap(({ number, when }) => (number === null ? [] : [{ number, when }]));
  const always = known.filter(({ when }) => when === undefined);
  const sometimes = known.filter(({ when }) => when !== undefined);
  const jumps = always.map(({ number }, at): Instruction => {
    const left = always.length - 1 - at;
    return [JUMP_EQUAL, left, left === 0 ? 1 : 0, number];
  });
  return [
    ...sometimes.flatMap((row) => ruleBlock(row, row.number, USER_NOTIF)),
    ...(jumps.length === 0 ? [] : [...jumps, [RETURN, 0, 0, USER_NOTIF] as const]),
  ];
}

/** The accumulator holds the call number before and after each block. */
function ruleBlock(
  rule: { readonly when?: readonly ArgumentTest[] | undefined },
  number: number,
  answer: number,
): readonly Instruction[] {
  const denial: Instruction = [RETURN, 0, 0, answer];
  const tests = rule.when ?? [];
  if (tests.length === 0) return [[JUMP_EQUAL, 0, 1, number], denial];
  const body = testBlocks(tests, [denial]);
  const restore: Instruction = [LOAD, 0, 0, AT_NUMBER];
  return [[JUMP_EQUAL, 0, body.length + 1, number], ...body, restore];
}

/** A failed test jumps to the end of the block. */
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
    // A match jumps to the next test (isIn) or to the block's end (notIn); a mismatch of the last value does the opposite.
    const found = "isIn" in test ? left : left + skip;
    const missed = left > 0 ? 0 : "isIn" in test ? skip : 0;
    return [JUMP_EQUAL, found, missed, value];
  });
  return [load, ...compare];
}

function refuse(action: SeccompAction): number {
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
