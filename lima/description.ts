/** What `limactl create` is given: the shipped template, with what only this host knows. */
import { parseDocument } from "yaml";
import { WorldUnavailable } from "../world/backend.ts";
import type { Mount } from "./limactl.ts";

/** Where the machine finds the host's installation; lima/provision.sh copies it from there. */
export const INSTALLATION_MOUNT = "/mnt/substrate";

/** The agent's socket in the machine. */
export const GUEST_SOCKET = "/run/substrate-agent/agent.sock";

export type Ground = {
  /** Absolute: the person's home; the folders of projects; the installation; and the socket that leads to the agent. */
  readonly home: string;
  readonly projects: readonly string[];
  readonly installation: string;
  readonly socket: string;
};

/**
 * The folders that the machine shows, in the order in which it mounts them: a project may lie in the home. Throws
 * {@link WorldUnavailable} for a name that Lima would read as a template.
 */
export function mountsOf({ home, projects, installation }: Ground): readonly Mount[] {
  const unusable = [home, ...projects, installation].find((path) => path.includes("{{"));
  if (unusable !== undefined)
    throw new WorldUnavailable(
      `Lima cannot show the folder '${unusable}' in the virtual machine: it reads '{{' as a template`,
      "Rename the folder, or name another one under 'projects' in config.yaml",
    );
  return [
    { location: home, writable: false },
    ...projects.map((location) => ({ location, writable: true })),
    { location: installation, mountPoint: INSTALLATION_MOUNT, writable: false },
  ];
}

/** @param template the text of lima/substrate.yaml. Throws for a text that is none. */
export function describeMachine(template: string, ground: Ground): string {
  const document = parseDocument(template);
  if (document.errors[0] !== undefined) throw document.errors[0];
  document.set("mounts", document.createNode(mountsOf(ground)));
  const forwards = document.get("portForwards", true);
  const agent = { guestSocket: GUEST_SOCKET, hostSocket: ground.socket };
  document.set(
    "portForwards",
    document.createNode([agent, ...((forwards as { toJSON(): unknown[] }).toJSON() ?? [])]),
  );
  return document.toString({ lineWidth: 0 });
}
