/** The one spelling of names as these tests need it; the product's is `hostName` of `broker/network/names/names.ts`. */
export function spell(text: string): string | null {
  const name = text.toLowerCase();
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(name) ? name : null;
}
