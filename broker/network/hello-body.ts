/** Parses the fields of a ClientHello (RFC 8446 §4.1.2) and its host names (RFC 6066 §3). */

/** legacy_version and random. */
const FIXED_FIELDS = 34;
const SERVER_NAME_EXTENSION = 0;
const HOST_NAME = 0;

export type Hello = { readonly names: readonly string[]; readonly extensions: ReadonlySet<number> };

/** Parses the body of a ClientHello; undefined when malformed (RFC 8446 §4.1.2). */
export function readHello(body: Uint8Array): Hello | undefined {
  const hello = new Fields(body);
  hello.skip(FIXED_FIELDS);
  hello.vector(1);
  hello.vector(2);
  hello.vector(1);
  // ClientHellos up to TLS 1.2 may lack extensions entirely (RFC 5246 §7.4.1.2).
  if (hello.isEmpty) return hello.isBroken ? undefined : { names: [], extensions: new Set() };
  const extensions = hello.vector(2);
  return hello.isBroken || !hello.isEmpty ? undefined : readExtensions(extensions);
}

/** Refuses a second server_name: RFC 8446 §4.2 forbids repeats, and servers differ in their choice. */
function readExtensions(fields: Fields): Hello | undefined {
  const extensions = new Set<number>();
  let names: readonly string[] = [];
  while (!fields.isEmpty) {
    const type = fields.number(2);
    const data = fields.vector(2);
    if (fields.isBroken) return undefined;
    if (type === SERVER_NAME_EXTENSION) {
      const listed = extensions.has(type) ? undefined : namesOfList(data);
      if (listed === undefined) return undefined;
      names = listed;
    }
    extensions.add(type);
  }
  return { names, extensions };
}

/** RFC 6066 §3: a non-empty list, where host_name is the only defined type; other types are malformed. */
function namesOfList(data: Fields): readonly string[] | undefined {
  const list = data.vector(2);
  if (data.isBroken || !data.isEmpty || list.isEmpty) return undefined;
  const names: string[] = [];
  while (!list.isEmpty) {
    const type = list.number(1);
    const name = list.vector(2);
    if (list.isBroken || type !== HOST_NAME) return undefined;
    names.push(name.latin1());
  }
  return names;
}

/** Reads fields in sequence. Too few bytes make the object broken and empty; nothing throws. */
class Fields {
  #rest: Uint8Array;
  #isBroken = false;

  constructor(bytes: Uint8Array) {
    this.#rest = bytes;
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  get isEmpty(): boolean {
    return this.#rest.length === 0;
  }

  skip(length: number): void {
    this.#take(length);
  }

  /** Reads a big-endian unsigned number of `size` bytes. */
  number(size: 1 | 2): number {
    const [first = 0, second = 0] = this.#take(size);
    return size === 1 ? first : first * 256 + second;
  }

  /** Reads a vector with a length prefix of `size` bytes. */
  vector(size: 1 | 2): Fields {
    return new Fields(this.#take(this.number(size)));
  }

  latin1(): string {
    return Buffer.from(this.#rest).toString("latin1");
  }

  #take(length: number): Uint8Array {
    if (length > this.#rest.length) {
      this.#isBroken = true;
      this.#rest = new Uint8Array(0);
      return this.#rest;
    }
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }
}
