/** Calls for scopes, for tests: asking, a person's yes, and what came of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApprovalDecision, ErrorReply, RequestScopesReply } from "../../../schemas/generated/types.ts";
import { validateRequestScopesReply } from "../../../schemas/generated/validators.js";
import type { Actor } from "../users/users.ts";
import { Person } from "./approvals.ts";
import { type BrokerOptions, TestBroker } from "./broker.ts";
import { HomeFolder } from "../users/folders.ts";

type Body = Readonly<Record<string, unknown>>;

/** Status and error of a call that was refused, or status 200 and its reply. */
export type Asked = { readonly status: number } & Partial<RequestScopesReply> & Partial<ErrorReply["error"]>;

export class ScopeAsker {
  readonly #broker: TestBroker;
  readonly #person: Person;

  constructor(broker: TestBroker) {
    this.#broker = broker;
    this.#person = new Person(broker);
  }

  async ask(scopes: readonly string[], body: Body = {}): Promise<Asked> {
    const whole = { agent_id: "test", cwd: this.#broker.project, scopes, ...body };
    const { status, document } = await this.#broker.call("POST", "/v1/request_scopes", whole);
    if (status !== 200) return { status, ...(document as ErrorReply).error };
    if (!validateRequestScopesReply(document))
      throw new Error(`Expected a token, received ${JSON.stringify(document)}`);
    return { status, ...document };
  }

  /** A token that a person said yes to. */
  async granted(scopes: readonly string[], how: ApprovalDecision = "once", body: Body = {}): Promise<string> {
    const asked = await this.ask(scopes, body);
    if (asked.code !== "approval_required")
      throw new Error(`Expected a question, received ${JSON.stringify(asked)}`);
    await this.#person.answer(asked.approval_id, how);
    return await this.token(scopes, body);
  }

  /** A token that comes at once. */
  async token(scopes: readonly string[], body: Body = {}): Promise<string> {
    const { scope_token, ...rest } = await this.ask(scopes, body);
    if (scope_token === undefined) throw new Error(`Expected a token, received ${JSON.stringify(rest)}`);
    return scope_token;
  }
}

/** A broker and, beside its project, files that a scope could open: in the actor's home, which worlds show as it is. */
export class ScopeGround {
  readonly #folder: HomeFolder;
  #broker: TestBroker;

  private constructor(folder: HomeFolder, broker: TestBroker) {
    this.#folder = folder;
    this.#broker = broker;
  }

  static async make(actor: Actor, options: BrokerOptions): Promise<ScopeGround> {
    const folder = new HomeFolder(actor);
    const broker = await TestBroker.start(actor, { ...options, folder: folder.path });
    for (const name of ["shared/old", "shared/frozen", "shared/secret/key", "shared/a.pem"])
      folder.write(name, `${name}\n`);
    for (const name of ["shared-not/old", "other/old"]) folder.write(name, `${name}\n`);
    return new ScopeGround(folder, broker);
  }

  get path(): string {
    return this.#folder.path;
  }

  get broker(): TestBroker {
    return this.#broker;
  }

  get asker(): ScopeAsker {
    return new ScopeAsker(this.#broker);
  }

  /** The broker was killed: the same with another one. */
  async restarted(): Promise<this> {
    this.#broker = await this.#broker.again();
    return this;
  }

  at(name: string): string {
    return join(this.path, name);
  }

  text(name: string): string {
    return readFileSync(this.at(name), "utf8");
  }

  /** Writes a file as the actor's own. */
  write(name: string, content: string): string {
    return this.#folder.write(name, content);
  }

  /** Gives everything to the actor. */
  own(): void {
    this.#folder.own();
  }

  async remove(): Promise<void> {
    await this.#broker.stop();
    this.#folder.remove();
  }
}
