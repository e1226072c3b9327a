import { joinJson } from "../json/join.ts";
import type { RawJson } from "../json/raw.ts";
import { parseAsks } from "../mcp/question.ts";
import type { Answers, Outcome, Resumption } from "../tools/provider.ts";
import { resultTypeOf } from "./conversation.ts";

/**
 * The params of one round of a request that may have to ask something. `head` is the object without its closing brace, in
 * pieces. The answers of the last round follow as the bytes the caller gave.
 */
export function toRoundParams(
  head: readonly (string | RawJson)[],
  resumption: Resumption | undefined,
): RawJson {
  if (resumption === undefined) return joinJson([...head, "}"]);
  const { answers, latest = answers, state } = resumption;
  const hasAnswers = Object.keys(latest).length > 0;
  return joinJson([
    ...head,
    ...(hasAnswers ? [',"inputResponses":', joinAnswers(latest)] : []),
    ...(typeof state === "string" ? [`,"requestState":${JSON.stringify(state)}`] : []),
    "}",
  ]);
}

function joinAnswers(answers: Answers): RawJson {
  const parts = Object.entries(answers).flatMap(([key, answer], index) => [
    `${index === 0 ? "{" : ","}${JSON.stringify(key)}:`,
    answer,
  ]);
  return joinJson([...parts, "}"]);
}

/** What a server's answer to one round means. */
export function toRoundOutcome(result: RawJson): Outcome {
  if (resultTypeOf(result) === "complete") return { kind: "complete", result };
  const state = result.at("requestState")?.value;
  const asks = parseAsks(result.at("inputRequests"));
  return { kind: "input_required", asks, ...(state === undefined ? {} : { state }) };
}
