/** A person for tests: who looks at what waits on the operator's socket, and answers. */
import type {
  Approval,
  ApprovalDecision,
  ApprovalsReply,
  ErrorReply,
  ExecuteReply,
  Span,
} from "../../../schemas/generated/types.ts";
import { validateApprovalsReply } from "../../../schemas/generated/validators.js";
import { eventually, type TestBroker } from "./broker.ts";

type Body = Readonly<Record<string, unknown>>;

/** Status and error of a call that was refused, or status 200 and what it printed. */
export type Told = { readonly status: number; readonly stdout?: string } & Partial<ErrorReply["error"]>;

export class Person {
  readonly #broker: TestBroker;

  constructor(broker: TestBroker) {
    this.#broker = broker;
  }

  async list(): Promise<ApprovalsReply> {
    const { status, document } = await this.#broker.operator("GET", "/v1/approvals");
    if (status !== 200 || !validateApprovalsReply(document))
      throw new Error(`Expected the questions that wait, received ${status}: ${JSON.stringify(document)}`);
    return document;
  }

  /** The question of that id; it must wait. */
  async question(id: string | undefined): Promise<Approval> {
    const found = (await this.list()).approvals.find(({ approval_id }) => approval_id === id);
    if (found === undefined) throw new Error(`No question '${id}' waits`);
    return found;
  }

  /** The first question that a call waits for. */
  async waitedFor(): Promise<Approval> {
    let found: Approval | undefined;
    const isThere = await eventually(async () => {
      found = (await this.list()).approvals.find(({ waiting }) => waiting > 0);
      return found !== undefined;
    }, 10_000);
    if (!isThere || found === undefined) throw new Error("No call waits for an answer");
    return found;
  }

  async answer(id: string | undefined, decision: ApprovalDecision): Promise<Told> {
    const { status, document } = await this.#broker.operator("POST", `/v1/approvals/${id}`, { decision });
    return status === 200 ? { status } : { status, ...(document as ErrorReply).error };
  }

  /** Makes a call, and answers what it asks; returns the question's id. */
  async approve(body: Body, decision: ApprovalDecision): Promise<string> {
    const asked = await this.told(body);
    if (asked.code !== "approval_required" || asked.approval_id === undefined)
      throw new Error(`Expected a question, received ${JSON.stringify(asked)}`);
    const { status } = await this.answer(asked.approval_id, decision);
    if (status !== 200) throw new Error(`Expected the answer to count, received ${status}`);
    return asked.approval_id;
  }

  async told(body: Body, signal?: AbortSignal): Promise<Told> {
    const { status, document } = await this.#broker.post(body, signal);
    if (status !== 200) return { status, ...(document as ErrorReply).error };
    return { status, stdout: Buffer.from((document as ExecuteReply).stdout_b64, "base64").toString() };
  }

  /** The lines of the trace about one question, in their order. */
  events(id: string | undefined): readonly Span[] {
    return this.#broker.spans().filter((span) => span.event_type === "approval" && span.approval_id === id);
  }
}
