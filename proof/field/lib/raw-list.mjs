/** @typedef {{ names: string[], meta: Record<string, unknown> }} RawList */

const revision = "2026-07-28";

/**
 * All tools that a gateway lists over HTTP, asked for in the modern protocol with nothing but fetch.
 *
 * @param {string} url
 * @returns {Promise<RawList>}
 */
export async function listRaw(url) {
  /** @type {RawList} */
  const list = { names: [], meta: {} };
  /** @type {string | undefined} */
  let cursor;
  do {
    const { tools, nextCursor, _meta } = await askForTools(url, cursor);
    list.names.push(...tools.map((/** @type {{ name: string }} */ { name }) => name));
    Object.assign(list.meta, _meta);
    cursor = nextCursor;
  } while (cursor !== undefined);
  return list;
}

/** @param {string} url @param {string | undefined} cursor */
async function askForTools(url, cursor) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json",
      "mcp-protocol-version": revision,
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/list",
      params: cursor === undefined ? { _meta } : { cursor, _meta },
    }),
  });
  const { result, error } = /** @type {any} */ (await response.json());
  if (result === undefined) throw new Error(`the gateway does not list its tools: ${JSON.stringify(error)}`);
  return result;
}

/**
 * How many names each server has. A gateway puts the name of its server before each name.
 *
 * @param {readonly string[]} names
 * @returns {Map<string, number>}
 */
export function countByServer(names) {
  const counts = new Map();
  for (const name of names) {
    const server = name.slice(0, name.indexOf("__"));
    counts.set(server, (counts.get(server) ?? 0) + 1);
  }
  return counts;
}
