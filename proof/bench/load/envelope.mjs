// How a request is worded in each era.

export const revisions = { legacy: "2025-11-25", modern: "2026-07-28" };
/** @typedef {keyof typeof revisions} Era */

export const clientInfo = { name: "bench", version: "1.0.0" };

const modernMeta = {
  "io.modelcontextprotocol/protocolVersion": revisions.modern,
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": clientInfo,
};

/** @param {number} id */
export function initialize(id) {
  const params = { protocolVersion: revisions.legacy, capabilities: {}, clientInfo };
  return JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", params });
}

export const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

/**
 * @param {Era} era
 * @param {number} id
 * @param {string} method
 * @param {object} params
 * @param {{ hasProgress?: boolean, isTraced?: boolean }} more whether the call's progress is wanted, under a token that is the
 *   id; whether its caller traces it
 */
export function request(era, id, method, params, { hasProgress = false, isTraced = false } = {}) {
  const meta = {
    ...(era === "modern" ? modernMeta : {}),
    ...(hasProgress ? { progressToken: id } : {}),
    ...(isTraced ? { traceparent: `00-${toHex(id, 32)}-${toHex(id, 16)}-01` } : {}),
  };
  const hasMeta = era === "modern" || hasProgress || isTraced;
  return JSON.stringify({
    jsonrpc: "2.0",
    id,
    method,
    params: hasMeta ? { ...params, _meta: meta } : params,
  });
}

/** @param {number} number @param {number} digits */
function toHex(number, digits) {
  return number.toString(16).padStart(digits, "0");
}
