/** The cgroup of one world. */
import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import type { WorldLimits } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import { type CgroupBase, dropBase, findBase, thisHost } from "./base.ts";
import { type Controller, enable, errnoOf, has, put } from "./files.ts";
import { groupName, type Maker, thisMaker } from "./names.ts";
import { groupFiles } from "./plan.ts";
import { removeGroup, sweep } from "./sweep.ts";

/** Controllers that each command's own group has: cpu.max holds for all of them together. */
const PER_COMMAND: readonly Controller[] = ["memory", "pids"];

/** How often, and how far apart, an ended world's group is tried again while its last process is dying. */
const REMOVE_TRIES = 20;
const REMOVE_RETRY_MS = 100;

/** How often a base that is gone is made again for one world. */
const BASE_TRIES = 5;

export type WorldGroup = {
  readonly name: string;
  readonly controllers: readonly Controller[];
  /** Open for init; `handedOver` closes it. */
  readonly fd: number;
  handedOver(): void;
  /** Removes what init has left. Never throws. */
  remove(): void;
};

/** The groups of this broker's worlds. The base is found, and left-overs are swept, when the first world asks. */
export class WorldGroups {
  readonly #maker: Maker = thisMaker();
  #found: CgroupBase | undefined;
  #made = 0;

  /** `refusal`: why there is none after all, once what looked usable was not. */
  base(refusal?: string): CgroupBase {
    if (refusal !== undefined) return { kind: "off", why: refusal };
    this.#found ??= this.#find();
    return this.#found;
  }

  /** A group with its limits set; undefined where there can be none. Throws {@link WorldUnavailable}. */
  make(limits: WorldLimits, base: CgroupBase): WorldGroup | undefined {
    if (base.kind === "off") return undefined;
    const name = this.#claim(base.folder);
    const folder = join(base.folder, name);
    try {
      return open(folder, name, fill(folder, limits, base.controllers));
    } catch (error) {
      removeGroup(folder);
      throw unmade(folder, error);
    }
  }

  /** Makes a folder that nobody has: another backend of this process counts from one too. */
  #claim(base: string): string {
    for (let tries = 0; ; ) {
      this.#made += 1;
      const name = groupName(this.#maker, this.#made);
      try {
        mkdirSync(join(base, name));
        return name;
      } catch (error) {
        const code = errnoOf(error);
        // Another broker has stopped and taken the empty base along: it is made again, with its controllers.
        const isBack = code === "ENOENT" && tries < BASE_TRIES && this.#refound(base);
        if (code !== "EEXIST" && !isBack) throw unmade(join(base, name), error);
        if (isBack) tries += 1;
      }
    }
  }

  #refound(folder: string): boolean {
    this.#found = this.#find();
    return this.#found.kind === "usable" && this.#found.folder === folder;
  }

  /** No world of this broker has a group any more. */
  close(): void {
    if (this.#found !== undefined) dropBase(this.#found);
    this.#found = undefined;
  }

  #find(): CgroupBase {
    const base = findBase(thisHost(groupName(this.#maker, 0)));
    if (base.kind === "usable") sweep(base.folder, this.#maker);
    return base;
  }
}

function fill(folder: string, limits: WorldLimits, wanted: readonly Controller[]): readonly Controller[] {
  const controllers = enable(folder, wanted);
  if (controllers.length < wanted.length) throw new Error(`only ${controllers.join(", ")} can be enabled`);
  mkdirSync(join(folder, "init"));
  const commands = join(folder, "commands");
  mkdirSync(commands);
  for (const { file, value, optional } of groupFiles(limits, controllers))
    if (optional !== true || has(commands, file)) put(commands, file, value);
  const own = PER_COMMAND.filter((controller) => controllers.includes(controller));
  if (enable(commands, own).length < own.length) throw new Error("commands get no controllers of their own");
  return controllers;
}

function unmade(folder: string, error: unknown): WorldUnavailable {
  return new WorldUnavailable(
    `Cannot make the cgroup '${folder}' with the world's limits: ${errnoOf(error)}`,
    "Look at cgroup.max.descendants and at who else writes there",
    { cause: error },
  );
}

function open(folder: string, name: string, controllers: readonly Controller[]): WorldGroup {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  return {
    name,
    controllers,
    fd,
    handedOver: () => closeSync(fd),
    remove: () => removePatiently(folder, REMOVE_TRIES),
  };
}

function removePatiently(folder: string, tries: number): void {
  if (removeGroup(folder) || tries === 0) return;
  setTimeout(() => removePatiently(folder, tries - 1), REMOVE_RETRY_MS).unref();
}
