/** Who is calling, told by the socket the call came through. */
export type Caller =
  /** `agent.sock`: the call names itself. Agents with a socket of their own are not to be had here. */
  | { readonly kind: "label"; readonly reserved: Pick<ReadonlySet<string>, "has"> }
  /** An agent's own socket: it is that agent, whatever it says. */
  | { readonly kind: "agent"; readonly agent: string }
  /** `control.sock`: the operator, who sees every agent. */
  | { readonly kind: "operator" };

/** Whether the caller may see what belongs to an agent; what belongs to none is the operator's. */
export function maySee(caller: Caller, agent: string | null): boolean {
  if (caller.kind === "operator") return true;
  if (agent === null) return false;
  return caller.kind === "agent" ? caller.agent === agent : !caller.reserved.has(agent);
}
