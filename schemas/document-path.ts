import { plainText } from "./quoted-value.ts";

/** A place in a document: names and list positions from the root. */
export type Pointer = readonly (string | number)[];

/** Splits a JSON Pointer (RFC 6901) into steps; a step into a list becomes a number. */
export function pointerOf(document: unknown, instancePath: string): (string | number)[] {
  const pointer: (string | number)[] = [];
  let value = document;
  for (const token of instancePath.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    const step = Array.isArray(value) ? Number(name) : name;
    pointer.push(step);
    value = childOf(value, step);
  }
  return pointer;
}

/** Reads the value at the pointer; undefined for a missing value. */
export function valueAt(document: unknown, pointer: Pointer): unknown {
  return pointer.reduce(childOf, document);
}

/** Writes a pointer for people: `commands.denied[2].pattern`, `env.FOO`, `env["A B"]`; empty for the whole document. */
export function pathText(pointer: Pointer): string {
  let text = "";
  for (const step of pointer) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z0-9_$@-]{1,80}$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `["${plainText(step)}"]`;
  }
  return text;
}

function childOf(value: unknown, step: string | number): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
  return (value as Record<string | number, unknown>)[step];
}
