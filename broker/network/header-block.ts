/** The hosts that a header block of HTTP/2 names, out of its compression (HPACK, RFC 7541). */
import { showAbsolute, showAuthority } from "./authority.ts";
import { decodeHuffman } from "./huffman.ts";

/** All that counts of a field's name: whether its value may name a host. */
type Field = "authority" | "target" | "other";

/** RFC 7541 Appendix A: how many entries the static table has, and which of them can name a host. */
const STATIC_ENTRIES = 61;
const STATIC_FIELDS: ReadonlyMap<number, Field> = new Map([
  [1, "authority"],
  [4, "target"],
  [5, "target"],
  [38, "authority"],
]);

/** By name (RFC 9113 §8.3.1): `host` may stand beside `:authority`, and some servers take a whole URL as path. */
const FIELDS: ReadonlyMap<string, Field> = new Map([
  [":authority", "authority"],
  ["host", "authority"],
  [":path", "target"],
]);

/** RFC 9113 §8.2.1: no capitals, and a colon only where a pseudo-header begins with it. */
const FIELD_NAME = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** Far above any length and any index that fits into a block. */
const MAX_INTEGER_BITS = 28;

/**
 * Shows each host in the first header block of a connection, in order: whatever `:authority`, `host` or an absolute
 * `:path` says. Answers what is wrong with the block, or undefined. Takes time linear in its bytes.
 *
 * Its entries in the dynamic table are never dropped: how large the table may be is for the server to say, whom nobody
 * listens to here. An index counts from the newest entry, so it means the same entry in a smaller table, or none, and a
 * server ends the connection then. Kept of an entry is what its name is: its value was shown when it came.
 */
export function showHosts(block: Uint8Array, see: (name: string) => void): string | undefined {
  const reader = new BlockReader(block, see);
  while (!reader.isAtEnd) {
    const wrong = reader.readField();
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

class BlockReader {
  readonly #block: Uint8Array;
  readonly #see: (name: string) => void;
  /** What was added, the newest last. */
  readonly #added: Field[] = [];
  #at = 0;

  constructor(block: Uint8Array, see: (name: string) => void) {
    this.#block = block;
    this.#see = see;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#block.length;
  }

  /** RFC 7541 §6: by the highest bits of its first byte. */
  readField(): string | undefined {
    const first = this.#block[this.#at] ?? 0;
    if (first >= 0x80) return this.#readIndexed();
    if (first >= 0x40) return this.#readLiteral(6, true);
    if (first >= 0x20) return this.#readInteger(5) === undefined ? CUT_OFF : undefined;
    return this.#readLiteral(4, false);
  }

  /** A whole field of a table. The static ones that could name a host have no value that does. */
  #readIndexed(): string | undefined {
    const index = this.#readInteger(7);
    if (index === undefined) return CUT_OFF;
    return this.#fieldAt(index) === undefined ? `its header has an index ${index} that is none` : undefined;
  }

  #readLiteral(prefix: number, isAdded: boolean): string | undefined {
    const index = this.#readInteger(prefix);
    if (index === undefined) return CUT_OFF;
    const field = index === 0 ? this.#readName() : this.#fieldAt(index);
    if (field === undefined) return "its header has a field without a name that can be read";
    if (isAdded) this.#added.push(field);
    const value = this.#readString();
    if (value === undefined) return CUT_OFF;
    return field === "other" ? undefined : this.#show(field, textOf(value));
  }

  #show(field: "authority" | "target", value: string | undefined): string | undefined {
    if (value === undefined) return "its header names a host in letters that no host has";
    if (field === "authority") showAuthority(value, this.#see);
    else showAbsolute(value, this.#see);
    return undefined;
  }

  #readName(): Field | undefined {
    const coded = this.#readString();
    const name = coded === undefined ? undefined : textOf(coded);
    if (name === undefined || !FIELD_NAME.test(name)) return undefined;
    return FIELDS.get(name) ?? "other";
  }

  #fieldAt(index: number): Field | undefined {
    if (index > STATIC_ENTRIES) return this.#added[this.#added.length - (index - STATIC_ENTRIES)];
    return index === 0 ? undefined : (STATIC_FIELDS.get(index) ?? "other");
  }

  /** RFC 7541 §5.2. */
  #readString(): Coded | undefined {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#readInteger(7);
    if (length === undefined || length > this.#block.length - this.#at) return undefined;
    const bytes = this.#block.subarray(this.#at, this.#at + length);
    this.#at += length;
    return { bytes, isHuffman };
  }

  /** RFC 7541 §5.1. Undefined when it does not end, or is too large to mean anything. */
  #readInteger(prefix: number): number | undefined {
    const most = 2 ** prefix - 1;
    const first = this.#block[this.#at];
    if (first === undefined) return undefined;
    this.#at += 1;
    let value = first & most;
    if (value < most) return value;
    for (let bits = 0; bits < MAX_INTEGER_BITS; bits += 7) {
      const byte = this.#block[this.#at];
      if (byte === undefined) return undefined;
      this.#at += 1;
      value += (byte & 0x7f) * 2 ** bits;
      if (byte < 0x80) return value;
    }
    return undefined;
  }
}

const CUT_OFF = "its header ends within a field";

type Coded = { readonly bytes: Uint8Array; readonly isHuffman: boolean };

function textOf({ bytes, isHuffman }: Coded): string | undefined {
  if (isHuffman) return decodeHuffman(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}
