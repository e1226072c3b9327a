import { Client } from "@modelcontextprotocol/sdk/client/index.js";

/**
 * The plain client of the official SDK, version 1, on a transport of it.
 *
 * @param {import("@modelcontextprotocol/sdk/shared/transport.js").Transport} transport
 * @returns {Promise<import("./contract.mjs").OpenClient>}
 */
export async function openSdkV1(transport) {
  const client = new Client({ name: "field-sdk-v1", version: "1.0.0" });
  await client.connect(transport);
  return {
    list: () => listPages((cursor) => client.listTools(cursor === undefined ? {} : { cursor })),
    call: (tool, args) => client.callTool({ name: tool, arguments: args }),
    close: () => client.close(),
  };
}

/**
 * The names on all pages of a list.
 *
 * @param {(cursor: string | undefined) => Promise<{ tools: { name: string }[], nextCursor?: string | undefined }>} listPage
 */
export async function listPages(listPage) {
  const names = [];
  let cursor;
  do {
    const page = await listPage(cursor);
    names.push(...page.tools.map(({ name }) => name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}
