import type { Shape } from "../json/index.ts";
import { defineMessageShape } from "../rpc/index.ts";
import { metaKeys } from "./meta.ts";

/**
 * The members the protocol gives a meaning to, found in the one scan of a message. A second spelling of any of them in
 * `params` is refused: the request that is carried out must be the one that was authorised (CVE-2026-27896, GHSA-4gph-2hhr-5mwg).
 */
export const messageShape: Shape = defineMessageShape(
  {
    name: true,
    uri: true,
    taskId: true,
    arguments: true,
    ref: { type: true, name: true, uri: true },
    cursor: true,
    requestState: true,
    inputResponses: true,
    task: true,
    requestId: true,
    progressToken: true,
    idempotencyKey: true,
    _meta: {
      progressToken: true,
      [metaKeys.protocolVersion]: true,
      [metaKeys.clientCapabilities]: true,
      [metaKeys.clientInfo]: true,
      [metaKeys.logLevel]: true,
      [metaKeys.idempotencyKey]: true,
    },
  },
  { resultType: true, _meta: true, ttlMs: true, cacheScope: true, structuredContent: true, isError: true },
);
