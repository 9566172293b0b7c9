/** Type of openapi.js, which schemas/generate.mjs writes. */
export declare const openapi: {
  readonly openapi: string;
  readonly paths: { readonly [path: string]: { readonly [method: string]: object } };
};
