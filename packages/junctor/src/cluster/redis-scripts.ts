import { createHash } from "node:crypto";
import { StoreError } from "@junctor/core/errors";
import type { RedisConnection } from "./redis-connection.ts";

/** A script that the engine runs as one step. */
export interface EngineScript {
  readonly text: string;
  readonly sha: string;
}

function defineScript(text: string): EngineScript {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** KEYS: the lease. ARGV: holder, time to live. Gives the holder. */
export const claimScript: EngineScript = defineScript(`
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return ARGV[1]`);

/** KEYS: leases. ARGV: holder, time to live. Gives 1 for each that the holder has, 0 for others. */
export const renewScript: EngineScript = defineScript(`
local kept = {}
for index, key in ipairs(KEYS) do
  local holder = redis.call("GET", key)
  if holder and holder ~= ARGV[1] then
    kept[index] = 0
  else
    redis.call("SET", key, ARGV[1], "PX", ARGV[2])
    kept[index] = 1
  end
end
return kept`);

/** KEYS: the lease. ARGV: holder. */
export const releaseScript: EngineScript = defineScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("DEL", KEYS[1]) end
return 0`);

/**
 * KEYS: the set of all ids. ARGV: id, facts, time to live, the start of the keys with the facts. Gives ids and facts in turn, and takes
 * those ids out of the set whose facts have expired.
 */
export const registerScript: EngineScript = defineScript(`
redis.call("SET", ARGV[4] .. ARGV[1], ARGV[2], "PX", ARGV[3])
redis.call("SADD", KEYS[1], ARGV[1])
local found = {}
for _, id in ipairs(redis.call("SMEMBERS", KEYS[1])) do
  local facts = redis.call("GET", ARGV[4] .. id)
  if facts then
    found[#found + 1] = id
    found[#found + 1] = facts
  else
    redis.call("SREM", KEYS[1], id)
  end
end
return found`);

/** KEYS: the limit. ARGV: milliseconds a token, burst, count, and the time if it is not the engine's. Does what \`takeTokens\` of the store in memory does. */
export const takeScript: EngineScript = defineScript(`
local every, burst, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(ARGV[4])
if not now then
  local time = redis.call("TIME")
  now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
end
local span = every * burst
local start = math.min(math.max(tonumber(redis.call("GET", KEYS[1]) or now), now), now + span)
local there = math.floor((now + span - start) / every + 1e-6)
local given = math.max(0, math.min(count, there))
if given == 0 then return {0, math.max(1, math.ceil(start + every - now - span))} end
local free = start + given * every
redis.call("SET", KEYS[1], string.format("%.17g", free), "PX", math.max(1, math.ceil(free - now)))
return {given, 0}`);

/** Runs a script. The engine is sent its text only when it does not know it yet. */
export async function runScript(
  connection: RedisConnection,
  { text, sha }: EngineScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args];
  try {
    return await connection.send(["EVALSHA", sha, ...rest]);
  } catch (error) {
    if (!(error instanceof StoreError && error.message.includes("NOSCRIPT"))) throw error;
    return connection.send(["EVAL", text, ...rest]);
  }
}
