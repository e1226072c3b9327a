/** The token of an `Authorization` header, undefined when the header has none, `malformed` when it cannot be read. */
export function parseBearer(
  header: string | undefined,
): { readonly bearer: string } | "malformed" | undefined {
  if (header === undefined || !/^bearer(?: |$)/i.test(header)) return undefined;
  const bearer = /^bearer +([!-~]+) *$/i.exec(header)?.[1];
  return bearer === undefined ? "malformed" : { bearer };
}
