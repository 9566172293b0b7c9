/** Whose commands they are: the agent, its socket, and the fields that every call to the broker has. */
import { isSocket } from "../../broker/model/host-paths.ts";

export type Whose = {
  /** The agent's own socket where config.yaml names the agent, else the shared one. Looked up before each call. */
  readonly socket: () => string;
  readonly callerShell: object;
  readonly spot: (cwd: string) => {
    readonly agent_id: string;
    readonly cwd: string;
    readonly profile?: string;
  };
};

export function whose(options: {
  readonly agent: string;
  readonly profile: string | undefined;
  readonly sockets: { readonly shared: string; readonly own: string };
  readonly callerShell: object;
}): Whose {
  const { agent, profile, sockets, callerShell } = options;
  return {
    socket: () => (isSocket(sockets.own) ? sockets.own : sockets.shared),
    callerShell,
    spot: (cwd) => ({ agent_id: agent, cwd, ...(profile === undefined ? {} : { profile }) }),
  };
}
