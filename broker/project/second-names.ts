/**
 * A protected folder under another name. A second mount of a tree (`mount --bind`, Toolbox, autofs, a btrfs top level), or a
 * file system that ignores case, gives one folder two paths, and a rule that compares paths sees one of them.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { MountsNow, type MountTable } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";

/** The folders that no other name may open. Real paths. */
export type Guarded = {
  readonly home: string;
  readonly hidden: readonly string[];
  readonly installation: string;
};

/** What a folder has to do with a guarded one. `name` is where it is, or what it holds, by the usual name. */
export type SecondName = { readonly how: "is" | "holds"; readonly name: string };

type Looked = {
  readonly identity: string;
  readonly table: MountTable;
  readonly until: number;
  readonly names: readonly SecondName[];
};

/**
 * A folder that was looked at is looked at again when another one has its path, and otherwise after this time: reading the
 * mount table costs as much as a tenth of a command, and only a person with root's rights changes it.
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
   * Every other name of a folder, of what is mounted below it, and of the guarded folders that it holds. A folder whose own
   * path is below a guarded one, or above it, needs no other name to be known by.
   *
   * @param identity device and inode of the folder, as they are now.
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

  /** For what the mount table does not tell: the same folder by device and inode. */
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

/** The folder and all above it. */
function chain(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...chain(parent)];
}

function identityAt(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}
