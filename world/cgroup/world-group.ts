/** Makes and removes the cgroup of one world. */
import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import type { WorldLimits } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import { type CgroupBase, dropBase, findBase, thisHost } from "./base.ts";
import { type Controller, enable, errnoOf, has, put } from "./files.ts";
import { groupName, type Maker, thisMaker } from "./names.ts";
import { groupFiles } from "./plan.ts";
import { removeGroup, sweep } from "./sweep.ts";

/** Controllers of each command's own cgroup; cpu.max covers all commands together. */
const PER_COMMAND: readonly Controller[] = ["memory", "pids"];

/** Retries, and their distance, for removing an ended world's cgroup while its last process is dying. */
const REMOVE_TRIES = 20;
const REMOVE_RETRY_MS = 100;

/** Retries per world for making a vanished base again. */
const BASE_TRIES = 5;

export type WorldGroup = {
  readonly name: string;
  readonly controllers: readonly Controller[];
  /** Open for init; `handedOver` closes the descriptor. */
  readonly fd: number;
  handedOver(): void;
  /** Removes the parts not removed by init. Never throws. */
  remove(): void;
};

/** The cgroups of this broker's worlds. The first world finds the base and sweeps left-overs. */
export class WorldGroups {
  readonly #maker: Maker = thisMaker();
  #found: CgroupBase | undefined;
  #made = 0;

  /** `refusal`: why an apparently usable cgroup failed. */
  base(refusal?: string): CgroupBase {
    if (refusal !== undefined) return { kind: "off", why: refusal };
    this.#found ??= this.#find();
    return this.#found;
  }

  /** Makes a cgroup with its limits set; undefined where cgroups are off. Throws {@link WorldUnavailable}. */
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

  /** Makes a folder with a free name: another backend of this process counts from one too. */
  #claim(base: string): string {
    for (let tries = 0; ; ) {
      this.#made += 1;
      const name = groupName(this.#maker, this.#made);
      try {
        mkdirSync(join(base, name));
        return name;
      } catch (error) {
        const code = errnoOf(error);
        // Another broker has stopped and removed the empty base: make the base again, with its controllers.
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

  /** Removes the base; call when no world of this broker has a cgroup. */
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
    "Check cgroup.max.descendants, and which other programs write there",
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
