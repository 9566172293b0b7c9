/**
 * Text of a message: JSON, with bytes as `{"$bytes": base64}` and a bigint as `{"$int": digits}`. No document of the protocol has keys
 * that a command or a user chooses, so nothing else can look like these two.
 */
export function encodeMessage(message: unknown): string {
  return JSON.stringify(plain(message));
}

/** Not a replacer of `JSON.stringify`: that one sees a Buffer as a list of numbers. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return { $int: value.toString() };
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array)
    return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

/** Puts bytes and bigints back into a parsed message. Throws on digits that are none. */
export function decodeValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(decodeValue);
  if ("$bytes" in value && typeof value.$bytes === "string") return Buffer.from(value.$bytes, "base64");
  if ("$int" in value && typeof value.$int === "string") return BigInt(value.$int);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, decodeValue(each)]));
}
