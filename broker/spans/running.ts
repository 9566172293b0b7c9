/** Spans that are open in this broker, and the file of their first line: it is not dropped before they are closed. */
export class Running {
  readonly #files = new Map<string, number>();

  begin(span: string, file: number): void {
    this.#files.set(span, file);
  }

  end(span: string): void {
    this.#files.delete(span);
  }

  has(span: string): boolean {
    return this.#files.has(span);
  }

  /** Infinite while nothing runs. */
  get oldestFile(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const file of this.#files.values()) oldest = Math.min(oldest, file);
    return oldest;
  }
}
