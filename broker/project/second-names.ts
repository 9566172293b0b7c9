/**
 * Finds protected folders under other names. A second mount (`mount --bind`, Toolbox, autofs, a btrfs top level), or a
 * case-insensitive file system, gives a folder two paths, and rules on paths see only one.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { MountsNow, type MountTable } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";

/** Folders protected under all their names. Real paths. */
export type Guarded = {
  readonly home: string;
  readonly hidden: readonly string[];
  readonly installation: string;
};

/** A folder's relation to a guarded folder. `name` is the usual name of the folder, or of its contents. */
export type SecondName = { readonly how: "is" | "holds"; readonly name: string };

type Looked = {
  readonly identity: string;
  readonly table: MountTable;
  readonly until: number;
  readonly names: readonly SecondName[];
};

/**
 * Results stay valid for this time, unless another folder takes the path: reading the mount table costs up to a tenth of a
 * command, and only root can change it.
 */
const BELIEVED_MS = 5000;

const MAX_LOOKED = 256;

export class SecondNames {
  readonly #guarded: Guarded;
  readonly #mounts: Pick<MountsNow, "read">;
  readonly #looked = new BoundedMap<string, Looked>(MAX_LOOKED);

  constructor(guarded: Guarded, mounts: Pick<MountsNow, "read"> = new MountsNow()) {
    this.#guarded = guarded;
    this.#mounts = mounts;
  }

  /**
   * Returns every other name of a folder, of mounts below, and of guarded folders inside. A folder whose own path is already
   * below or above a guarded folder is recognized without other names.
   *
   * @param identity the folder's current device and inode.
   */
  of(folder: string, identity: string): readonly SecondName[] {
    const known = this.#looked.get(folder);
    const now = performance.now();
    if (known?.identity === identity && now < known.until) return known.names;
    const table = this.#mounts.read();
    if (known?.identity === identity && known.table === table) {
      this.#looked.set(folder, { ...known, until: now + BELIEVED_MS });
      return known.names;
    }
    const names = [...this.#byMounts(folder, table), ...this.#byIdentity(folder)];
    this.#looked.set(folder, { identity, table, until: now + BELIEVED_MS, names });
    return names;
  }

  #byMounts(folder: string, table: MountTable): readonly SecondName[] {
    const own = wholeNames(table, folder).map((name) => ({ how: "is", name }) as const);
    const below = table
      .pointsBelow(folder)
      .flatMap((point) => wholeNames(table, point).map((name) => ({ how: "holds", name }) as const));
    const parts = this.#all().flatMap((guarded) =>
      table.otherNames(guarded).flatMap(({ path, part }): readonly SecondName[] => {
        const usual = part === "" ? guarded : join(guarded, part);
        if (isWithin(folder, path)) return [{ how: "is", name: join(usual, folder.slice(path.length)) }];
        return isWithin(path, folder) ? [{ how: "holds", name: usual }] : [];
      }),
    );
    return [...own, ...below, ...parts];
  }

  /** Compares device and inode, for second names missing in the mount table. */
  #byIdentity(folder: string): readonly SecondName[] {
    const found: SecondName[] = [];
    for (const guarded of this.#all()) {
      const [own, ...above] = chain(guarded).map(identityAt);
      if (own === undefined) continue;
      const names = chain(folder);
      for (const at of names) {
        if (at === guarded || identityAt(at) !== own) continue;
        found.push({ how: "is", name: join(guarded, folder.slice(at.length)) });
        break;
      }
      if (!isWithin(guarded, folder) && above.includes(identityAt(folder)))
        found.push({ how: "holds", name: guarded });
    }
    return found;
  }

  #all(): readonly string[] {
    const { home, hidden, installation } = this.#guarded;
    return [home, ...hidden, installation];
  }
}

function wholeNames(table: MountTable, path: string): readonly string[] {
  return table.otherNames(path).flatMap((other) => (other.part === "" ? [other.path] : []));
}

/** Returns the folder and all its parents. */
function chain(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...chain(parent)];
}

function identityAt(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}
