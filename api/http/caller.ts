/** Identity of a caller, given by the socket of the connection. */
export type Caller =
  /** `agent.sock`: the caller chooses a name, except the names of agents with their own socket (`reserved`). */
  | { readonly kind: "label"; readonly reserved: Pick<ReadonlySet<string>, "has"> }
  /** An agent's own socket: the socket alone fixes the agent. */
  | { readonly kind: "agent"; readonly agent: string }
  /** `control.sock`: the operator, allowed to see every agent. */
  | { readonly kind: "operator" };

/** Whether the caller may see an agent's spans and sessions; without an agent (`null`), only the operator may. */
export function maySee(caller: Caller, agent: string | null): boolean {
  if (caller.kind === "operator") return true;
  if (agent === null) return false;
  return caller.kind === "agent" ? caller.agent === agent : !caller.reserved.has(agent);
}
