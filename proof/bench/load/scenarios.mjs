// What is asked, and what a right answer is. Every call has an id and a text nobody sent before.

/** @typedef {"small" | "stream" | "list" | "large"} Scenario */
/** @typedef {{ content?: { text?: string }[], tools?: { name: string }[], nextCursor?: string }} Result */
/** @typedef {{ id?: unknown, method?: string, params?: { progressToken?: unknown }, result?: Result, error?: unknown }} Message */

export const framesPerStream = 20;
export const largeBytes = 2 ** 20;
export const listedTools = 500;

/** An answer that is not the right one: the only thing that fails a benchmark. */
export class WrongAnswer extends Error {}

/** @type {Record<Scenario, string | undefined>} the tool a scenario calls */
export const toolOf = { small: "echo", stream: "stream", large: "large", list: undefined };

/**
 * @param {Scenario} scenario
 * @param {readonly Message[]} messages all that was said to one request
 * @param {number} id
 * @param {string} nonce
 */
export function checkAnswer(scenario, messages, id, nonce) {
  const answer = messages.at(-1);
  const frames = messages.slice(0, -1);
  const expectedFrames = scenario === "stream" ? framesPerStream : 0;
  if (
    frames.length !== expectedFrames ||
    frames.some((each) => each.method !== "notifications/progress" || each.params?.progressToken !== id) ||
    answer?.id !== id ||
    !isRightResult(scenario, answer.result, nonce)
  )
    throw new WrongAnswer(
      `${scenario} ${id} ${nonce}: ${frames.length} frames and ${abridge(JSON.stringify(answer))}`,
    );
}

/**
 * The same for answers that would cost more to parse than to make: that it is this call's, whole, and as long as the
 * first one, which was parsed.
 *
 * @param {Scenario} scenario
 * @param {string} body
 * @param {number} id
 * @param {string} nonce
 */
export function checkLongBody(scenario, body, id, nonce) {
  const isWhole = scenario === "list" ? body.includes(`"tool-${listedTools - 1}"`) : body.includes(nonce);
  const isLong = scenario === "list" || body.length > largeBytes;
  if (!isWhole || !isLong || !(body.includes(`"id":${id},`) || body.includes(`"id":${id}}`)))
    throw new WrongAnswer(`${scenario} ${id} ${nonce}: ${body.length} bytes, ${abridge(body)}`);
}

/**
 * @param {Scenario} scenario
 * @param {Result | undefined} result
 * @param {string} nonce
 */
function isRightResult(scenario, result, nonce) {
  const text = result?.content?.[0]?.text;
  if (scenario === "list") return (result?.tools?.length ?? 0) >= listedTools;
  if (scenario === "large") return text !== undefined && text.startsWith(nonce) && text.length > largeBytes;
  return text === nonce;
}

/** @param {string | undefined} text */
export function abridge(text = "nothing") {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
