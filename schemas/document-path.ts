import { plainText } from "./quoted-value.ts";

/** Where in a document: the names and list positions from its root. */
export type Pointer = readonly (string | number)[];

/** The steps of a JSON Pointer (RFC 6901); a step into a list becomes a number. */
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

/** The value there, or undefined. */
export function valueAt(document: unknown, pointer: Pointer): unknown {
  return pointer.reduce(childOf, document);
}

/** `commands.denied[2].pattern`, `env.FOO`, `env["A B"]`; empty for the document itself. */
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
